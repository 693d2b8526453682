package savefile

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// watched is a store of two targets in a directory that notes its operations. Its first records are written.
type watched struct {
	*Store
	dir  *tempDir
	a, b *number
	ops  chan string
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	if disk.Direct == 0 {
		t.Skip("this system has no direct writes")
	}
	w := &watched{dir: newTempDir(t), a: &number{name: "a"}, b: &number{name: "b"}, ops: make(chan string, 10_000)}
	list := []Target{w.a, w.b}
	w.Store = openNumbers(t, w.dir, &list)
	for range 2 { // both files have a snapshot, and a record behind it
		if err := w.Flush(false); err != nil {
			t.Fatal(err)
		}
	}
	w.dir.refuse = w.note
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *watched) note(op string) error {
	switch op {
	case "write", "direct", "sync", "refused write", "refused direct":
		w.ops <- op
	}
	return nil
}

// want compares the operations since the last call.
func (w *watched) want(t *testing.T, ops ...string) {
	t.Helper()
	written(w.Store)
	var got []string
	for len(w.ops) > 0 {
		got = append(got, <-w.ops)
	}
	if !slices.Equal(got, ops) {
		t.Errorf("operations %v, want %v", got, ops)
	}
}

// found compares what a process that starts now would find.
func (w *watched) found(t *testing.T, a, b uint64) {
	t.Helper()
	written(w.Store)
	saved := readNumbers(t, w.dir)
	if got := [2]uint64{saved.Targets["a"].Value, saved.Targets["b"].Value}; got != [2]uint64{a, b} || saved.Damaged > 0 {
		t.Errorf("a start finds %v, want %d and %d; %d places are damaged", got, a, b, saved.Damaged)
	}
}

// A single record is written alone, and is durable after Sync as any other. While the page cache has a record that is not on the
// disk, the next ones go there, too; so do those of many cells, and more than a few between two flushes.
func TestRecordIsWrittenAlone(t *testing.T) {
	w := newWatched(t)
	w.a.set(1)
	ticket := w.Write(w.a)
	w.want(t, "direct")
	w.found(t, 1, 0)
	if w.a.relied != 0 {
		t.Error("the record counts as durable before Sync")
	}
	if err := w.Sync(ticket); err != nil || w.a.relied != 1 {
		t.Errorf("synced: %v, relies on %d", err, w.a.relied)
	}
	w.want(t, "sync")

	w.Learn(segment.Mark{Log: segment.ID{1}, Commit: 1})
	if err := w.Flush(true); err != nil {
		t.Fatal(err)
	}
	w.want(t, "direct") // the record of the log, not synced
	w.b.set(2)
	if err := w.Sync(w.Write(w.b)); err != nil {
		t.Fatal(err)
	}
	w.want(t, "direct", "sync")

	w.a.set(3)
	w.b.set(4)
	if err := w.Flush(true); err != nil { // a batch of records
		t.Fatal(err)
	}
	w.want(t, "write", "write", "sync")
	w.found(t, 3, 4)

	var want []string
	for n := range uint64(maxAlone + 2) {
		w.a.set(10 + n)
		w.Write(w.a)
		written(w.Store)
		want = append(want, "direct")
	}
	want[maxAlone], want[maxAlone+1] = "write", "write"
	w.want(t, want...)
	if err := w.Flush(true); err != nil {
		t.Fatal(err)
	}
	w.want(t, "sync")
	w.a.set(1 << 40)
	w.Write(w.a)
	w.want(t, "direct")
	w.found(t, 1<<40, 4)
}

// The record of the log goes through the page cache, and is not synced: so does the next record, although it is alone between two
// flushes.
func TestRecordBesideADirtyPage(t *testing.T) {
	w := newWatched(t)
	var ticket uint64
	var want []string
	for n := range uint64(maxAlone) {
		w.a.set(1 + n)
		ticket = w.Write(w.a)
		written(w.Store)
		want = append(want, "direct")
	}
	if err := w.Sync(ticket); err != nil {
		t.Fatal(err)
	}
	w.want(t, append(want, "sync")...)
	w.Learn(segment.Mark{Log: segment.ID{1}, Commit: 1})
	if err := w.Flush(true); err != nil {
		t.Fatal(err)
	}
	w.want(t, "write")
	w.b.set(5)
	ticket = w.Write(w.b)
	w.want(t, "write")
	if err := w.Sync(ticket); err != nil {
		t.Fatal(err)
	}
	w.b.set(6)
	w.Write(w.b)
	w.want(t, "sync", "direct")
	w.found(t, maxAlone, 6)
}

// While a direct write waits for the disk, Write returns, and a round waits. What is written meanwhile follows.
func TestDirectWriteHangs(t *testing.T) {
	w := newWatched(t)
	began, held := make(chan struct{}), make(chan struct{})
	begin, release := sync.OnceFunc(func() { close(began) }), sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	w.dir.refuse = func(op string) error {
		if op == "direct" {
			begin()
			<-held
		}
		return w.note(op)
	}
	w.a.set(1)
	w.Write(w.a)
	<-began
	w.b.set(2)
	w.Write(w.b)
	w.a.set(3)
	ticket := w.Write(w.a)
	done := make(chan error)
	go func() { done <- w.Sync(ticket) }()
	if err := w.Check(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		t.Fatalf("synced before the record is written: %v", err)
	case op := <-w.ops:
		t.Fatalf("%s beside the direct write", op)
	default:
	}
	release()
	if err := <-done; err != nil || w.a.relied != 3 || w.b.relied != 2 {
		t.Errorf("%v, relied on %d and %d", err, w.a.relied, w.b.relied)
	}
	w.want(t, "direct", "write", "sync")
	w.found(t, 3, 2)
}

// Where the disk refuses a direct write, the same record goes through the page cache, and so do all others from then on. Where
// that fails, too, the other file gets all records.
func TestDirectWriteIsRefused(t *testing.T) {
	for _, both := range []bool{false, true} {
		t.Run(fmt.Sprintf("the page cache as well: %t", both), func(t *testing.T) {
			w := newWatched(t)
			broken := true
			w.dir.refuse = func(op string) error {
				if op == "direct" || broken && both && op == "write" {
					_ = w.note("refused " + op)
					return syscall.EINVAL
				}
				return w.note(op)
			}
			w.a.set(1)
			w.Write(w.a)
			written(w.Store)
			broken = false
			w.b.set(2)
			if err := w.Sync(w.Write(w.b)); err != nil || w.a.relied != 1 || w.b.relied != 2 {
				t.Errorf("%v, relied on %d and %d", err, w.a.relied, w.b.relied)
			}
			if both {
				w.want(t, "refused direct", "refused write", "write", "sync", "write") // a snapshot, and the record that proves it
			} else {
				w.want(t, "refused direct", "write", "write", "sync")
			}
			w.found(t, 1, 2)
		})
	}
}

// The disk refuses a record both ways, and each snapshot, for longer than a look at the files is due. The file that has the records is
// not taken for one that another process has overwritten: it is the only one that a start could read.
func TestRefusedRecordIsNotTakenForAnother(t *testing.T) {
	w := newWatched(t)
	w.a.set(1)
	if err := w.Sync(w.Write(w.a)); err != nil {
		t.Fatal(err)
	}
	refused := 0
	w.dir.refuse = func(op string) error {
		if op == "direct" || op == "write" {
			refused++
			return syscall.EIO
		}
		return w.note(op)
	}
	w.a.set(2)
	w.Write(w.a)
	for range 3 {
		written(w.Store)
		if err := w.Check(); err != nil {
			t.Error(err)
		}
		if err := w.Flush(false); err == nil {
			t.Error("the disk refuses writes, and records count as durable")
		}
	}
	if refused < 3 {
		t.Errorf("%d writes were refused", refused)
	}
	w.found(t, 1, 0)
	w.dir.refuse = w.note
	if err := w.Flush(false); err != nil {
		t.Error(err)
	}
	w.found(t, 2, 0)
}

// Another file that has the name by now gets no record.
func TestNoDirectWriteToAnotherFile(t *testing.T) {
	if disk.Direct == 0 {
		t.Skip("this system has no direct writes")
	}
	dir := newTempDir(t)
	replaced := 0
	dir.refuse = func(op string) error {
		if op == "open direct" { // between the two openings
			replaced++
			for _, name := range names {
				path := filepath.Join(dir.path, name)
				if _, err := os.Stat(path); err == nil {
					if err := os.WriteFile(path+"x", make([]byte, 10*cellSize), 0o600); err != nil {
						t.Error(err)
					}
					if err := os.Rename(path+"x", path); err != nil {
						t.Error(err)
					}
				}
			}
		}
		return nil
	}
	a := &number{name: "a"}
	list := []Target{a}
	s := openNumbers(t, dir, &list)
	a.set(1)
	s.Write(a)
	written(s)
	for _, name := range names {
		if b, err := os.ReadFile(filepath.Join(dir.path, name)); err == nil && !segment.AllZero(b) {
			t.Errorf("%s has records", name)
		}
	}
	if replaced == 0 {
		t.Error("no file was replaced")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// On a file system with direct writes, what is written directly is what the page cache shows afterwards, also where it had the page
// before.
func TestDirectWriteOfTheSystem(t *testing.T) {
	root, err := disk.Open(filepath.Join(t.TempDir(), "savepoints"), func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	a := &number{name: "a"}
	list := []Target{a}
	s, _, err := Open(root, slog.New(slog.DiscardHandler), func(yield func(Target) bool) { slices.Values(list)(yield) }, decodeNumber)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Flush(false); err != nil {
			t.Fatal(err)
		}
	}
	if s.alone.files[s.active] == nil {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		t.Skip("the file system of the temporary directory has no direct writes")
	}
	for n := range uint64(100) {
		a.set(n + 1)
		ticket := s.Write(a)
		if n%3 > 0 { // every third record goes through the page cache behind the one before
			written(s)
		}
		if n%2 == 0 {
			written(s)
			if got := readNumbers(t, root); got.Targets["a"].Value != n+1 || got.Damaged > 0 {
				t.Fatalf("record %d: %+v", n+1, got)
			}
		}
		if n%5 == 0 {
			if err := s.Sync(ticket); err != nil {
				t.Fatal(err)
			}
			if err := s.Flush(true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s.alone.refused {
		t.Error("the file system refused a direct write")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := readNumbers(t, root); got.Targets["a"].Value != 100 || got.Damaged > 0 {
		t.Errorf("at the end: %+v", got)
	}
}
