package replant

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mistake is one patch.
type mistake struct {
	name   string // of the file, without its ending
	path   string
	what   string
	seenIn string // "" if it was ours only
	proofs []proof
	files  []string // that the diff touches, relative to the module's root
}

// proof is a test that turns red on a mistake.
type proof struct {
	pkg, test string
	says      *regexp.Regexp // in the output of the red test
	slow      bool           // takes minutes: the full tier only
}

func (p proof) String() string { return strings.TrimPrefix(p.pkg, "./") + "." + p.test }

// parseMistake reads a patch's head and the names of its files.
func parseMistake(path, text string) (m mistake, err error) {
	m = mistake{name: strings.TrimSuffix(filepath.Base(path), ".patch"), path: path}
	head, diff, ok := strings.Cut(text, "\ndiff --git ")
	if !ok {
		return m, errors.New("no line begins with diff --git")
	}
	for line := range strings.Lines(head + "\n") {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": ")
		switch {
		case !strings.HasPrefix(line, "#"):
			return m, fmt.Errorf("line %q above the diff is not a comment", line)
		case !ok:
			continue // free words
		}
		switch key {
		case "Mistake":
			m.what = value
		case "Seen in":
			m.seenIn = value
		case "Caught by", "Caught in minutes by":
			p, err := parseProof(value)
			if err != nil {
				return m, err
			}
			p.slow = key != "Caught by"
			m.proofs = append(m.proofs, p)
		}
	}
	scan := bufio.NewScanner(strings.NewReader(diff))
	for scan.Scan() {
		for _, side := range []string{"--- a/", "+++ b/"} {
			if file, ok := strings.CutPrefix(scan.Text(), side); ok && !slices.Contains(m.files, file) {
				m.files = append(m.files, file)
			}
		}
	}
	return m, scan.Err()
}

// parseProof reads "package Test: regular expression".
func parseProof(s string) (p proof, err error) {
	where, says, ok := strings.Cut(s, ": ")
	if p.pkg, p.test, _ = strings.Cut(where, " "); !ok || !strings.HasPrefix(p.pkg, "./") || !strings.HasPrefix(p.test, "Test") && !strings.HasPrefix(p.test, "Fuzz") || says == "" {
		return p, fmt.Errorf("proof %q is not of the form ./package TestName: what it says", s)
	}
	p.says, err = regexp.Compile(says)
	return p, err
}

// mistakes reads all patches.
func mistakes(t *testing.T) []mistake {
	t.Helper()
	paths, err := filepath.Glob("patches/*.patch")
	if err != nil {
		t.Fatal(err)
	}
	var all []mistake
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMistake(path, string(text))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, m)
	}
	return all
}

// The list itself has the right form: a description of each mistake, the tests that detect it, names that exist, and
// changes only to the product.
func TestListForm(t *testing.T) {
	all := mistakes(t)
	if len(all) < 25 {
		t.Fatalf("only %d patches: the list is not read", len(all))
	}
	for _, m := range all {
		if m.what == "" || len(m.files) == 0 {
			t.Errorf("%s: says %q and touches %v", m.path, m.what, m.files)
		}
		if len(m.proofs) == 0 {
			t.Errorf("%s: no test is named that turns red", m.path)
		}
		for _, f := range m.files {
			if strings.HasSuffix(f, "_test.go") || strings.HasPrefix(f, "e2e/") || !strings.HasSuffix(f, ".go") {
				t.Errorf("%s: changes %s, which is not the product", m.path, f)
			}
		}
		for _, p := range m.proofs {
			if !hasTest(t, p) {
				t.Errorf("%s: there is no %s", m.path, p)
			}
		}
	}
}

// hasTest looks for the test's function in its package.
func hasTest(t *testing.T, p proof) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, p.pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "\nfunc "+p.test+"(") {
			return true
		}
	}
	return false
}

func TestParseMistake(t *testing.T) {
	const diff = "diff --git a/wal/x.go b/wal/x.go\n--- a/wal/x.go\n+++ b/wal/x.go\n@@ -1 +1 @@\n-a\n+b\n"
	m, err := parseMistake("patches/x.patch", "# Mistake: a: b\n# Caught by: ./wal TestX: want \\d+\n# Caught in minutes by: ./e2e/crashlab TestY: lost\n#\n# More words.\n"+diff)
	if err != nil || m.name != "x" || m.what != "a: b" || len(m.proofs) != 2 || m.proofs[0].slow || !m.proofs[1].slow ||
		!slices.Equal(m.files, []string{"wal/x.go"}) || m.proofs[0].String() != "wal.TestX" {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range []string{
		"# Mistake: no diff\n",
		"words\n" + diff,
		"# Caught by: wal TestX: y\n" + diff,
		"# Caught by: ./wal X: y\n" + diff,
		"# Caught by: ./wal TestX\n" + diff,
		"# Caught by: ./wal TestX: (\n" + diff,
	} {
		if _, err := parseMistake("x.patch", bad); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
}
