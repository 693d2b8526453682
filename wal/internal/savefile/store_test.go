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
	name      string
	n, relied uint64
	written   bool
}

func (t *number) set(n uint64) { t.n, t.written = n, false }

func (t *number) Name() string { return t.name }

func (t *number) Encode(b []byte, always bool) ([]byte, segment.Mark, bool) {
	if t.written && !always {
		return b, segment.Mark{}, false
	}
	t.written = true
	return binary.AppendUvarint(b, t.n), segment.Mark{Commit: t.n}, true
}

func (t *number) Unwritten() { t.written = false }

func (t *number) RelyOn(acked segment.Mark) { t.relied = acked.Commit }

// openNumbers opens a store of those targets, and makes the files.
func openNumbers(t *testing.T, dir Directory, list *[]Target) *Store {
	t.Helper()
	s, _, err := Open(dir, slog.New(slog.DiscardHandler), func(yield func(Target) bool) { slices.Values(*list)(yield) })
	if err == nil {
		err = s.Flush(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// found is what the next process finds.
type found struct {
	numbers map[string]uint64
	Saved
}

func readNumbers(t *testing.T, dir Directory) found {
	t.Helper()
	saved, err := Read(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return foundOf(t, saved)
}

func foundOf(t testing.TB, saved Saved) found {
	t.Helper()
	f := found{numbers: map[string]uint64{}, Saved: saved}
	for name, body := range saved.Targets {
		n, size := binary.Uvarint(body)
		if size != len(body) {
			t.Fatalf("target %q has %x", name, body)
		}
		f.numbers[name] = n
	}
	return f
}

// What is written is found by the next process at once, through many turns of the files; a target may rely on it after Sync only. A target
// that was renamed or has ended is not found under its old name.
func TestWhatIsWrittenIsFound(t *testing.T) {
	dir := newTempDir(t)
	a, b := &number{name: "a"}, &number{name: "b"}
	list := []Target{a, b}
	s := openNumbers(t, dir, &list)
	began := s.head.since
	var need uint64
	for n := range uint64(2000) {
		a.set(n + 1)
		need = s.Write(a)
		if n%100 == 0 && readNumbers(t, dir).numbers["a"] != n+1 {
			t.Fatalf("record %d is not found", n+1)
		}
		if n%50 == 0 {
			if a.relied > n {
				t.Fatalf("record %d counts as durable before Sync", n+1)
			}
			if err := s.Sync(need); err != nil || a.relied != n+1 {
				t.Fatalf("record %d is not durable after Sync, %d is: %v", n+1, a.relied, err)
			}
		}
	}
	if err := s.Sync(need); err != nil || s.head.since == began {
		t.Errorf("no other file was begun: %v", err)
	}
	c := &number{name: "c", n: 7}
	if err := s.End("a", c, func() { list = []Target{b, c} }); err != nil {
		t.Fatal(err)
	}
	if err := s.End("b", nil, func() { list = []Target{c} }); err != nil {
		t.Fatal(err)
	}
	if got := readNumbers(t, dir); len(got.numbers) != 1 || got.numbers["c"] != 7 || got.Bad > 0 {
		t.Errorf("%+v", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A file that cannot be opened costs nothing but the turn; and one that is the same as it was when it is looked at stays as it is.
func TestFileCannotBeOpened(t *testing.T) {
	dir := newTempDir(t)
	list := []Target{&number{name: "a"}}
	s := openNumbers(t, dir, &list)
	since := s.head.since
	if err := errors.Join(s.Check(), s.Flush(true)); err != nil || s.head.since != since {
		t.Errorf("files that are well were written anew: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	again, _, err := Open(dir, slog.New(slog.DiscardHandler), slices.Values(list))
	if err != nil {
		t.Fatal(err)
	}
	again.unsure = false // nothing but the other file is opened
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
		if found := readNumbers(t, dir); found.numbers["a"] != 7 || found.Bad > 0 {
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
	flush(false) // the record that proves the state
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
	if turns := 1000 / (minFile / slotSize / 2); syncs > 2*turns {
		t.Errorf("%d syncs for 1000 records of the log and %d turns", syncs, turns)
	}
	a.set(1)
	before := syncs
	if flush(true); syncs != before+1 || a.relied != 1 {
		t.Errorf("a record of a target: %d syncs, relied on %d", syncs-before, a.relied)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A closed store says so, and a file that cannot be looked at is an error.
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
}

// What is noted of the log while a file is begun is durable afterwards, as what is noted of a target.
func TestLogNotedAmidATurn(t *testing.T) {
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
		t.Fatalf("no file was begun: %v", err)
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
