// Package reference checks that the pages of docs/reference agree with the code. A test builds a page, or a section of
// one, from the code's types and comments, and fails if the file differs; with -update it writes the file. Only tests
// import this package.
package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Page checks that a whole file equals want; with update it writes the file.
func Page(t testing.TB, file, want string, update bool) {
	t.Helper()
	hold(t, file, want, update)
}

// Section checks that the part of a file between the lines "<!-- NAME -->" and "<!-- end of NAME -->" equals want, which
// ends with a line break; with update it writes that part. It leaves the rest of the file alone.
func Section(t testing.TB, file, name, want string, update bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s lacks the lines %q and %q", file, begin, end)
	}
	hold(t, file, before+begin+want+end+after, update)
}

func hold(t testing.TB, file, want string, update bool) {
	t.Helper()
	has, err := os.ReadFile(file)
	if err != nil && !update {
		t.Fatal(err)
	}
	if string(has) == want {
		return
	}
	if !update {
		t.Fatalf("%s is not what the code says; make reference writes it. The first difference: %s", file, firstDifference(string(has), want))
		return
	}
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

// firstDifference returns the first lines that differ.
func firstDifference(has, want string) string {
	a, b := strings.Split(has, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, want %q", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// Families returns the table of metric families, whose type and help are given by name.
func Families(families map[string][2]string) string {
	var b strings.Builder
	b.WriteString("| metric | type | meaning |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(families)) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, families[name][0], strings.TrimSuffix(Code(families[name][1]), "."))
	}
	return b.String()
}

// Comments finds the comments of struct fields in the source of this module.
type Comments struct {
	root, module string
	packages     map[string]map[string]string // by import path, then Type.Field
}

// NewComments reads below root, the directory of go.mod.
func NewComments(root string) (*Comments, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	m := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%s/go.mod has no module line", root)
	}
	return &Comments{root, string(m[1]), map[string]map[string]string{}}, nil
}

// Ours reports whether t is declared in this module.
func (c *Comments) Ours(t reflect.Type) bool {
	return t.PkgPath() == c.module || strings.HasPrefix(t.PkgPath(), c.module+"/")
}

// Field returns what the code says about a field of a struct of this module, in one line of Markdown and without the
// field's name: the comment before it, then the one behind it. It is "" if the field has none, or if t is not of this module.
func (c *Comments) Field(t reflect.Type, field string) (string, error) {
	if !c.Ours(t) {
		return "", nil
	}
	known, ok := c.packages[t.PkgPath()]
	if !ok {
		var err error
		if known, err = c.read(filepath.Join(c.root, strings.TrimPrefix(t.PkgPath(), c.module))); err != nil {
			return "", err
		}
		c.packages[t.PkgPath()] = known
	}
	return sentence(known[t.Name()+"."+field], field), nil
}

// read returns the comments of a package, by Type.Field.
func (c *Comments) read(dir string) (map[string]string, error) {
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !isSource(e) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				collect(found, spec.Name.Name, s)
			}
			return true
		})
	}
	return found, nil
}

func isSource(e fs.DirEntry) bool {
	return strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go")
}

func collect(found map[string]string, name string, s *ast.StructType) {
	for _, f := range s.Fields.List {
		text := strings.TrimSpace(strings.TrimSpace(f.Doc.Text()) + " " + strings.TrimSpace(f.Comment.Text()))
		for _, n := range f.Names {
			found[name+"."+n.Name] = text
		}
	}
}

var (
	pointer = regexp.MustCompile(`[;,:]? see \[[\w.]+\]`)         // for readers of the code
	link    = regexp.MustCompile(`\[([A-Za-z][\w.]*)\]([^(]|$)`)  // of Go, not of Markdown
	word    = regexp.MustCompile(`\$?[\w./]*[_*]([\w.*]*[\w*])?`) // a key or a name
)

// Code marks words that look like names as code, outside of what is code already: Markdown gives * and _ a meaning.
func Code(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = word.ReplaceAllString(parts[i], "`$0`")
	}
	return strings.Join(parts, "`")
}

// sentence makes one line of a comment: without the field's name at its beginning, with links as code, and without a
// period at the end.
func sentence(text, field string) string {
	text = strings.Join(strings.Fields(text), " ")
	if rest, ok := strings.CutPrefix(text, field+" "); ok {
		text = rest
		for _, verb := range []string{"is ", "are "} {
			text = strings.TrimPrefix(text, verb)
		}
	}
	text = link.ReplaceAllString(pointer.ReplaceAllString(text, ""), "`$1`$2")
	text = strings.TrimSuffix(text, ".")
	return strings.ReplaceAll(Code(text), "|", `\|`)
}
