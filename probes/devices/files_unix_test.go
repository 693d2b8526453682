//go:build unix

package devices

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesUnknown: while the directory of a pattern cannot be read, their
// devices stay.
func TestFilesUnknown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lists")
	pattern := filepath.Join(dir, ".") + "/./a*.yaml"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var f Files
	read := func(what string, files int, problem string) {
		t.Helper()
		contents, problems := f.Read(pattern)
		if len(contents) != files || len(problems) == 0 != (problem == "") || len(problems) > 0 && !strings.Contains(problems[0].Text, problem) {
			t.Errorf("%s: %v, problems %v; want %d files, %q", what, contents, problems, files, problem)
		}
	}
	read("no directory", 0, "no file matches")
	must(os.Mkdir(dir, 0o700))
	must(os.WriteFile(filepath.Join(dir, "a1.yaml"), []byte("[{targets: [192.0.2.7]}]"), 0o600))
	must(os.WriteFile(filepath.Join(dir, "b.yaml"), []byte("[{targets: [192.0.2.8]}]"), 0o600))
	read("a file", 1, "")
	before := f.Changes([]string{pattern})
	must(os.Rename(dir, dir+".away"))
	must(os.Symlink(dir, dir)) // it cannot be read: it leads to itself
	read("the directory cannot be read", 1, "symbolic links")
	if f.Changes([]string{pattern}) == before {
		t.Error("the problem is no change")
	}
	must(os.Remove(dir))
	must(os.Rename(dir+".away", dir))
	read("it can again", 1, "")
	must(os.RemoveAll(dir))
	read("it is gone", 0, "no file matches")
}
