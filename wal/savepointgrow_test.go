package wal

import (
	"errors"
	"os"
	"slices"
	"testing"
)

// A file of savepoints gets a length that is known as whole, whatever length it had and whatever the disk refuses meanwhile;
// what is reported is the length that it has.
func TestGrowFile(t *testing.T) {
	const unit = minSavepointFile
	for _, c := range []struct {
		size, want, becomes int64
		refuses             string
		refused             int64 // what it is then
	}{
		{0, unit, unit, "write", 0},
		{0, unit, unit, "sync", 0},
		{unit, 4 * unit, 4 * unit, "write", unit},
		{unit, unit, unit, "", 0},
		{4 * unit, unit, 4 * unit, "", 0},
		{3 * unit, 4 * unit, 4 * unit, "write", 2 * unit},
		{3 * unit, unit, 2 * unit, "truncate", 3 * unit},
		{cellSize, unit, unit, "sync", 0},
	} {
		for _, refuses := range slices.Compact([]string{"", c.refuses}) {
			dir := newMemDir()
			f, err := dir.open("x", os.O_RDWR|os.O_CREATE)
			if err == nil {
				err = f.Truncate(c.size)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := c.becomes
			if refuses != "" {
				want = c.refused
				failing(dir, refuses)
			}
			got, err := growFile(f, c.size, c.want)
			if length := int64(dir.entries["x"].data.size); got != want || length != want || (err != nil) != (refuses != "") {
				t.Errorf("%d bytes, wanted %d, refused %q: %d, the file has %d: %v", c.size, c.want, refuses, got, length, err)
			}
		}
	}
}

// A file that cannot be opened costs nothing but the snapshot that was to be written to it; and one that is the same as it was
// when it is looked at once more stays as it is.
func TestSavepointFileCannotBeOpened(t *testing.T) {
	dir := newMemDir()
	ts := registryOf(t, dir, "a")
	generation := ts.store.generation
	for i := range savepointNames {
		ts.store.vanished(i)
	}
	if err := ts.save(); err != nil || ts.store.generation != generation {
		t.Errorf("files that are well were written anew: %v", err)
	}
	again, err := openTargets(dir.kill(), targetsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again.store.unsure = false // nothing but the snapshot's file is opened
	well := again.store.dir
	again.store.dir = brokenDir{well, func(op string) error {
		if op == "open "+savepointNames[1-again.store.active] {
			return errDisk
		}
		return nil
	}}
	if err := again.begin(Mark{}); !errors.Is(err, errDisk) {
		t.Errorf("the file cannot be opened: %v", err)
	}
	again.store.dir = well
	if err := errors.Join(again.begin(Mark{}), again.close()); err != nil {
		t.Error(err)
	}
}
