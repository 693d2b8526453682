package savefile

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hwsagent/wal/internal/segment"
)

// number is a target whose savepoint is a number.
type number struct {
	name        string
	n, relied   uint64
	written, ok bool // ok: there is a record
}

func (t *number) set(n uint64) { t.n, t.written = n, false }

func (t *number) Name() string { return t.name }

func (t *number) Encode(b []byte, always bool) ([]byte, Credit, bool) {
	if t.written && !always {
		return b, Credit{}, false
	}
	c := Credit{First: !t.ok, Acked: segment.Mark{Commit: t.n}}
	t.written, t.ok = true, true
	return binary.AppendUvarint(b, t.n), c, true
}

func (t *number) Unwritten() { t.written = false }

func (t *number) RelyOn(acked segment.Mark) { t.relied = acked.Commit }

// openNumbers opens a store of those targets, and makes the files.
func openNumbers(t *testing.T, dir Directory, list *[]Target) *Store {
	t.Helper()
	s, _, err := Open(dir, slog.New(slog.DiscardHandler), func(yield func(Target) bool) { slices.Values(*list)(yield) }, decodeNumber)
	if err == nil {
		err = s.Flush(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readNumbers(t *testing.T, dir Directory) Saved[uint64] {
	t.Helper()
	saved, err := Read(dir, slog.New(slog.DiscardHandler), decodeNumber)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// What is written is found by the next process at once, through many snapshots; a target may rely on it after Sync only. A target
// that was renamed or has ended is not found under its old name.
func TestWhatIsWrittenIsFound(t *testing.T) {
	dir := newTempDir(t)
	a, b := &number{name: "a"}, &number{name: "b"}
	list := []Target{a, b}
	s := openNumbers(t, dir, &list)
	began := s.generation
	var ticket uint64
	for n := range uint64(2000) {
		a.set(n + 1)
		ticket = s.Write(a)
		if got := readNumbers(t, dir).Targets["a"]; n%100 == 0 && (got == nil || got.Value != n+1) {
			t.Fatalf("record %d: found %+v", n+1, got)
		}
		if n%50 == 0 {
			if a.relied > n {
				t.Fatalf("record %d counts as durable before Sync", n+1)
			}
			if err := s.Sync(ticket); err != nil || a.relied != n+1 {
				t.Fatalf("record %d is not durable after Sync, %d is: %v", n+1, a.relied, err)
			}
		}
	}
	if err := s.Sync(ticket); err != nil || s.generation < began+2 {
		t.Errorf("no snapshots: generation %d: %v", s.generation, err)
	}
	c := &number{name: "c", n: 7}
	if err := s.End("a", c, func() { list = []Target{b, c} }); err != nil {
		t.Fatal(err)
	}
	if err := s.End("b", nil, func() { list = []Target{c} }); err != nil {
		t.Fatal(err)
	}
	if got := readNumbers(t, dir); len(got.Targets) != 1 || got.Targets["c"].Value != 7 || got.Damaged > 0 {
		t.Errorf("%+v", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A file of savepoints gets a length that is known as whole, whatever length it had and whatever the disk refuses meanwhile;
// what is reported is the length that it has.
func TestGrowFile(t *testing.T) {
	const unit = minFile
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
			dir := newTempDir(t)
			f, err := dir.Open("x", os.O_RDWR|os.O_CREATE)
			if err == nil {
				err = f.Truncate(c.size)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := c.becomes
			if refuses != "" {
				want = c.refused
				dir.failing(refuses)
			}
			got, err := growFile(f, c.size, c.want)
			if length := dir.size(t, "x"); got != want || length != want || (err != nil) != (refuses != "") {
				t.Errorf("%d bytes, wanted %d, refused %q: %d, the file has %d: %v", c.size, c.want, refuses, got, length, err)
			}
		}
	}
}

// A file that cannot be opened costs nothing but the snapshot that was to be written to it; and one that is the same as it was
// when it is looked at once more stays as it is.
func TestFileCannotBeOpened(t *testing.T) {
	dir := newTempDir(t)
	list := []Target{&number{name: "a"}}
	s := openNumbers(t, dir, &list)
	generation := s.generation
	for i := range names {
		s.vanished(i)
	}
	if err := s.Flush(true); err != nil || s.generation != generation {
		t.Errorf("files that are well were written anew: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	again, _, err := Open(dir, slog.New(slog.DiscardHandler), slices.Values(list), decodeNumber)
	if err != nil {
		t.Fatal(err)
	}
	again.unsure = false // nothing but the snapshot's file is opened
	dir.failing("open " + names[1-again.active])
	if err := again.Flush(false); !errors.Is(err, errDisk) {
		t.Errorf("the file cannot be opened: %v", err)
	}
	dir.failing()
	if err := errors.Join(again.Flush(false), again.Close()); err != nil {
		t.Error(err)
	}
}

// Check notices a file that was removed, replaced or cut short from outside.
func TestCheck(t *testing.T) {
	change := map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			b, err := os.ReadFile(path)
			return errors.Join(err, os.Remove(path), os.WriteFile(path, b, 0o600))
		},
		"cut short": func(path string) error { return os.Truncate(path, minFile/2) },
	}
	for what, change := range change {
		dir := newTempDir(t)
		var said strings.Builder
		a := &number{name: "a"}
		list := []Target{a}
		s := openNumbers(t, dir, &list)
		s.logger = slog.New(slog.NewTextHandler(&said, nil))
		flush := func() {
			t.Helper()
			if err := s.Flush(false); err != nil {
				t.Fatal(err)
			}
		}
		flush()
		a.set(7)
		flush()
		if err := s.Check(); err != nil || said.Len() > 0 {
			t.Errorf("%s: %v, %s", what, err, said.String())
		}
		if err := change(filepath.Join(dir.path, names[s.active])); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err != nil || !strings.Contains(said.String(), what) {
			t.Errorf("%s is not noticed: %v, %s", what, err, said.String())
		}
		flush()
		found := readNumbers(t, dir)
		if kept := found.Targets["a"]; kept == nil || kept.Value != 7 || kept.Doubt || found.Damaged > 0 {
			t.Errorf("%s: %+v", what, found)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The durable end of the log is written at once, and synced with the next record of a target.
func TestLogRecordWaitsForASync(t *testing.T) {
	dir, syncs := newTempDir(t), 0
	a := &number{name: "a"}
	list := []Target{a}
	s := openNumbers(t, dir, &list)
	flush := func(patient bool) {
		t.Helper()
		if err := s.Flush(patient); err != nil {
			t.Fatal(err)
		}
	}
	flush(false)
	flush(false) // the record that proves the snapshot
	dir.refuse = func(op string) error {
		if op == "sync" {
			syncs++
		}
		return nil
	}
	for commit := uint64(1); commit <= 1000; commit++ {
		s.Learn(segment.Mark{Log: segment.ID{1}, Commit: commit})
		flush(true)
		if commit%50 > 0 {
			continue
		}
		if found := readNumbers(t, dir); found.Log.Durable.Commit != commit {
			t.Fatalf("a kill leaves %d for %d", found.Log.Durable.Commit, commit)
		}
	}
	if snapshots := 1000 / (minFile / cellSize * 3 / 8); syncs > 3*snapshots+3 {
		t.Errorf("%d syncs for 1000 records of the log and %d snapshots", syncs, snapshots)
	}
	a.set(1)
	before := syncs
	if flush(true); syncs != before+1 || s.synced != s.sequence {
		t.Errorf("a record of a target: %d syncs, synced %d of %d", syncs-before, s.synced, s.sequence)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A closed store says so, a file that cannot be looked at is an error, and a foreign one that cannot be opened is none.
func TestStoreErrors(t *testing.T) {
	dir := newTempDir(t)
	a := &number{name: "a"}
	list := []Target{a}
	s := openNumbers(t, dir, &list)
	dir.failing("look")
	if err := s.Check(); !errors.Is(err, errDisk) {
		t.Errorf("checked: %v", err)
	}
	dir.failing()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	a.set(5)
	if err := s.Sync(s.Write(a) + 1); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	foreign := newTempDir(t)
	if err := os.WriteFile(foreign.path+"/x", []byte("hwsp"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(foreign, slog.New(slog.DiscardHandler), decodeNumber); err == nil {
		t.Error("savepoints of the earlier format are taken")
	}
	foreign.failing("open")
	if _, err := Read(foreign, slog.New(slog.DiscardHandler), decodeNumber); err != nil {
		t.Errorf("a foreign file that cannot be opened: %v", err)
	}
}

// What is noted of the log while a snapshot is being written is durable afterwards, as what is noted of a target.
func TestLogNotedAmidASnapshot(t *testing.T) {
	dir := newTempDir(t)
	list := []Target{&number{name: "a"}}
	s := openNumbers(t, dir, &list)
	s.Learn(segment.Mark{Log: segment.ID{1}, Commit: 5})
	noted := false
	dir.refuse = func(op string) error {
		if op == "sync" && !noted {
			noted = true
			s.Learn(segment.Mark{Log: segment.ID{1}, Commit: 6})
			s.mu.Lock()
			s.putAllLocked(false)
			s.mu.Unlock()
		}
		return nil
	}
	s.Renew()
	if err := s.Flush(false); err != nil || !noted {
		t.Fatalf("no snapshot was written: %v", err)
	}
	dir.refuse = func(string) error { return nil }
	if err := s.Flush(false); err != nil {
		t.Fatal(err)
	}
	if got := readNumbers(t, dir).Log.Durable.Commit; got != 6 {
		t.Errorf("durable up to commit %d", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
