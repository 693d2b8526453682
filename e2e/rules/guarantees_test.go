package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuaranteesAreProved: each row of docs/guarantees.md names at least one test, and each test that the page names exists.
func TestGuaranteesAreProved(t *testing.T) {
	page, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	name := regexp.MustCompile(`\bTest[A-Z0-9]\w*`)
	for _, n := range name.FindAllString(string(page), -1) {
		if !tests[n] {
			t.Errorf("docs/guarantees.md names %s, which is no test", n)
		}
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| event |") {
			continue
		}
		if rows++; len(cells) != 5 || !name.MatchString(cells[3]) {
			t.Errorf("docs/guarantees.md: want event, loss and test: %s", line)
		}
	}
	if rows < 30 || rows > 45 {
		t.Errorf("docs/guarantees.md has %d events, want 30 to 45", rows)
	}
}

// testNames returns the names of all tests of this repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && len(d.Name()) > 2 && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
