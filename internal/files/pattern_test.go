package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"hwsagent/internal/files"
)

// TestMatch: Match lists the files that filepath.Glob lists.
func TestMatch(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"d/b.yml", "d/a.yml", "d/c.json", "e/a.yml", "[x].yml"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, pattern := range []string{"d/*.yml", "./d/*.yml", "d//?.yml", "*/a.yml", "d/a.yml", "d/none.yml", "none/*.yml", "d/a.yml/*.yml", "*.yml", `\[x\].yml`, "d/*", ""} {
		want, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		got, err := files.Match(pattern)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", pattern, got, err, want)
		}
		for _, name := range got {
			if !files.Matches(pattern, name) {
				t.Errorf("%q is not of %q", name, pattern)
			}
		}
	}
	if files.Matches("d/*.yml", filepath.Join("d", "c.json")) {
		t.Error("a file of another name matches")
	}
}

// TestMatchReportsErrors: a wrong pattern, and a directory that cannot be read, are errors.
func TestMatchReportsErrors(t *testing.T) {
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Skip("symbolic links:", err)
	}
	for _, pattern := range []string{"[", filepath.Join(loop, "*.yml"), filepath.Join(loop, "a.yml")} {
		if got, err := files.Match(pattern); err == nil {
			t.Errorf("%q: %q without an error", pattern, got)
		}
	}
}
