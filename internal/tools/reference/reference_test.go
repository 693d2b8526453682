package reference

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// Sample has the kinds of comments that Field reads.
type Sample struct {
	// Listen is where it listens, see [Sample]; default x.
	Listen string
	Size   int // of all a|b
	None   bool
}

func TestField(t *testing.T) {
	c, err := NewComments("../../..")
	if err != nil {
		t.Fatal(err)
	}
	// A test's own types are not read, so read them as of a package of their own.
	dir := t.TempDir()
	text, err := os.ReadFile("reference_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sample.go"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if c.packages[reflect.TypeFor[Sample]().PkgPath()], err = c.read(dir); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{"Listen": "where it listens; default x", "Size": `of all a\|b`, "None": ""} {
		if got, err := c.Field(reflect.TypeFor[Sample](), field); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", field, got, err, want)
		}
	}
	if got, err := c.Field(reflect.TypeFor[testing.B](), "N"); err != nil || got != "" {
		t.Errorf("a type of another module has the comment %q, %v", got, err)
	}
}

// fatal records a failure in place of ending the test.
type fatal struct {
	testing.TB
	failed bool
}

func (f *fatal) Helper()               {}
func (f *fatal) Fatal(...any)          { f.failed = true }
func (f *fatal) Fatalf(string, ...any) { f.failed = true }

func TestSection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("before\n<!-- x -->\nold\n<!-- end of x -->\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fatal{TB: t}
	Section(f, file, "x", "new\n", false)
	if !f.failed {
		t.Error("an old section passes")
	}
	Section(t, file, "x", "new\n", true)
	Section(t, file, "x", "new\n", false)
	if text, err := os.ReadFile(file); err != nil || string(text) != "before\n<!-- x -->\nnew\n<!-- end of x -->\nafter\n" {
		t.Errorf("the page is %q, %v", text, err)
	}
}
