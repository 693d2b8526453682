package deadletter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"hwsagent/remotewrite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func letter(i int) remotewrite.Letter {
	return remotewrite.Letter{
		Time: time.Unix(int64(i), 0).UTC(), Series: fmt.Sprintf(`{__name__="m%d"}`, i), Timestamp: int64(i),
		Value: "NaN", Reason: "rejected", Status: 400, Text: "no \"such\"\nthing",
	}
}

func open(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func list(t *testing.T, s *Store) []remotewrite.Letter {
	t.Helper()
	ls, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	return ls
}

func TestLettersSurvive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, dir, Options{})
	want := []remotewrite.Letter{letter(1), letter(2), letter(3)}
	if err := s.Put(want[:2]); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.Put(want) == nil {
		t.Error("a closed store takes letters")
	}
	s = open(t, dir, Options{})
	if err := s.Put(want[2:]); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, list(t, s)); d != "" || s.Count() != 3 {
		t.Errorf("%d letters; -want +got:\n%s", s.Count(), d)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, current): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, %v, want %v", path, info.Mode().Perm(), err, mode)
		}
	}
}

func TestTornTailAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	if err := s.Put([]remotewrite.Letter{letter(1), letter(2)}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, current))
	if err != nil {
		t.Fatal(err)
	}
	first := strings.IndexByte(string(whole), '\n') + 1
	for n := range len(whole) {
		torn := t.TempDir()
		if err := os.WriteFile(filepath.Join(torn, current), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, torn, Options{})
		if err := s.Put([]remotewrite.Letter{letter(3)}); err != nil {
			t.Fatal(err)
		}
		want := []remotewrite.Letter{letter(3)}
		if n >= first {
			want = []remotewrite.Letter{letter(1), letter(3)}
		}
		if d := cmp.Diff(want, list(t, s)); d != "" || s.Count() != len(want) {
			t.Fatalf("torn after %d bytes: %d letters; -want +got:\n%s", n, s.Count(), d)
		}
		_ = s.Close()
	}
}

func TestBounds(t *testing.T) {
	for name, o := range map[string]Options{"letters": {MaxLetters: 10}, "bytes": {MaxBytes: 2000}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, o)
			for i := range 100 {
				if err := s.Put([]remotewrite.Letter{letter(i)}); err != nil {
					t.Fatal(err)
				}
				ls := list(t, s)
				if len(ls) != s.Count() {
					t.Fatalf("%d letters, Count says %d", len(ls), s.Count())
				}
				if ls[len(ls)-1].Timestamp != int64(i) {
					t.Fatalf("the newest letter is %d, want %d", ls[len(ls)-1].Timestamp, i)
				}
			}
			var bytes int64
			for _, f := range []string{current, previous} {
				info, err := os.Stat(filepath.Join(dir, f))
				if err != nil {
					t.Fatal(err)
				}
				bytes += info.Size()
			}
			if n := s.Count(); n < 5 || n > 10 || bytes > 2000 {
				t.Errorf("%d letters in %d bytes", n, bytes)
			}
		})
	}
}

func TestGarbageIsSkipped(t *testing.T) {
	dir := t.TempDir()
	text := "no json\n" + strings.Repeat("x", 3*maxLine) + "\n{}\n"
	if err := os.WriteFile(filepath.Join(dir, current), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := open(t, dir, Options{}); s.Count() != 1 {
		t.Errorf("%d letters, want the one that can be read", s.Count())
	}
}

func TestLongLetterIsShortened(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	l := letter(1)
	l.Series = strings.Repeat("x", 1<<20)
	if err := s.Put([]remotewrite.Letter{l}); err != nil {
		t.Fatal(err)
	}
	if ls := list(t, s); len(ls) != 1 || len(ls[0].Series) > maxLine {
		t.Errorf("%d letters", len(ls))
	}
}

// A person reads the letters and removes them while the agent runs: the next ones are kept.
func TestFilesRemoved(t *testing.T) {
	for _, how := range []string{"file", "directory"} {
		t.Run(how, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "letters")
			s := open(t, dir, Options{})
			if err := s.Put([]remotewrite.Letter{letter(1)}); err != nil {
				t.Fatal(err)
			}
			path := dir
			if how == "file" {
				path = filepath.Join(dir, current)
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if err := s.Put([]remotewrite.Letter{letter(2 + i)}); err != nil {
					t.Fatal(err)
				}
			}
			if got := list(t, s); len(got) != 3 || s.Count() != 3 {
				t.Errorf("%d letters, count %d, want the three that came after", len(got), s.Count())
			}
		})
	}
}

// Letters are durable when Put returns nil: the savepoint passes their samples then. After
// an error none of them is there, and those from before are.
func TestPutIsDurable(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	var broken error
	var durable int64 // bytes of the current file
	fails := 0
	s.sync = func(f *os.File) error {
		if broken != nil {
			fails++
			return broken
		}
		info, err := f.Stat()
		if err == nil {
			durable, err = info.Size(), f.Sync()
		}
		return err
	}
	check := func(want ...remotewrite.Letter) {
		t.Helper()
		if diff := cmp.Diff(want, list(t, s)); diff != "" {
			t.Error(diff)
		}
		info, err := os.Stat(filepath.Join(dir, current))
		if err != nil || info.Size() != durable {
			t.Errorf("the file has %d bytes, of which %d are durable: %v", info.Size(), durable, err)
		}
	}
	put := func(i int) error { return s.Put([]remotewrite.Letter{letter(i)}) }
	if err := put(1); err != nil {
		t.Fatal(err)
	}
	check(letter(1))
	broken = syscall.EIO
	if err := put(2); !errors.Is(err, broken) || fails != 1 {
		t.Errorf("put on a broken disk: %v, %d syncs failed", err, fails)
	}
	check(letter(1))
	broken = nil
	if err := put(3); err != nil {
		t.Fatal(err)
	}
	check(letter(1), letter(3))
}

// Cleared letters are gone for every reader, and the store still works.
func TestClear(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{MaxLetters: 4})
	if err != nil {
		t.Fatal(err)
	}
	put := func(n int) {
		t.Helper()
		for i := range n {
			if err := s.Put([]remotewrite.Letter{{Value: fmt.Sprint(i)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(4) // in both files
	if n, err := s.Clear(); n != 4 || err != nil || s.Count() != 0 {
		t.Errorf("cleared %d, %v, %d are left", n, err, s.Count())
	}
	put(1)
	if all, err := List(dir); len(all) != 1 || err != nil || s.Count() != 1 {
		t.Errorf("then there are %v, %v", all, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Clear(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	for range 2 {
		if err := Remove(dir); err != nil {
			t.Errorf("remove: %v", err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is there: %v", err)
	}
}
