//go:build unix

package scrape

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestListFilesUnknown: while the directory of the files cannot be read, they keep
// their targets; and so does a file that is empty for a moment, until its program has written it.
func TestListFilesUnknown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lists")
	file := func(name string) string { return filepath.Join(dir, name) }
	failed := newSDMetrics().fileFailed
	r := &reader{patterns: []string{file("*.json"), file("b.yml"), file(".") + "/c*.yml"}, interval: time.Hour,
		failed: failed, logger: slog.New(slog.DiscardHandler), guard: quietGuard(t), files: map[string]*listFile{}}
	now := time.Now()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	looks := func(what, want string, failures float64) {
		t.Helper()
		now = now.Add(time.Second)
		before := testutil.ToFloat64(failed)
		if got := told(r.look(now)); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		if got := testutil.ToFloat64(failed) - before; got != failures {
			t.Errorf("%s: %v failures, want %v", what, got, failures)
		}
	}
	looks("no directory", "", 0)
	must(os.Mkdir(dir, 0o700))
	must(os.WriteFile(file("a.json"), []byte(`[{"targets": ["a:1"]}]`), 0o600))
	must(os.WriteFile(file("b.yml"), []byte("- targets: [b:1]\n"), 0o600))
	must(os.WriteFile(file("c1.yml"), []byte("- targets: [c:1]\n"), 0o600))
	looks("new files", "a.json:0[a:1] b.yml:0[b:1] c1.yml:0[c:1]", 0)

	must(os.Rename(dir, dir+".away"))
	must(os.Symlink(dir, dir)) // it cannot be read: it leads to itself
	looks("the directory cannot be read", "", 3)
	looks("and still cannot", "", 3)
	must(os.Remove(dir))
	must(os.Rename(dir+".away", dir))
	looks("it can again", "", 0)

	must(os.Truncate(file("b.yml"), 0))
	looks("a file is written", "", 0)
	must(os.WriteFile(file("b.yml"), []byte("- targets: [b:2]\n"), 0o600))
	looks("it is written", "b.yml:0[b:2]", 0)
	must(os.Truncate(file("b.yml"), 0))
	looks("it is empty", "", 0)
	looks("it stays empty", "b.yml:0[]", 0)
	looks("and has nothing more to say", "", 0)

	must(os.RemoveAll(dir))
	looks("the directory is gone", "a.json:0[] c1.yml:0[]", 0)
}
