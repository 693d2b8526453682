// Command notices lists the licences of everything linked into the agent: of each module in a released platform's
// build, and of Go itself.
//
//	notices -o NOTICE          writes the file
//	notices -check NOTICE      fails when the file is out of date
//
// The same sources give the same bytes, on every machine: versions are those of go.mod, and texts are those of the
// module cache.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// program is the package whose build is described.
const program = "./cmd/hwsagent"

// platforms returns those that are released: GOOS, GOARCH. The Makefile's PLATFORMS are the same.
func platforms() [][2]string {
	return [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"linux", "arm"}, {"windows", "amd64"}, {"darwin", "arm64"}}
}

func main() {
	out := flag.String("o", "", "the file to write")
	check := flag.String("check", "", "the file that must be up to date")
	flag.Parse()
	if err := run(*out, *check); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(out, check string) error {
	if (out == "") == (check == "") {
		return errors.New("usage: notices -o FILE, or notices -check FILE")
	}
	modules, err := linked()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := write(&text, modules); err != nil {
		return err
	}
	if out != "" {
		return os.WriteFile(out, text.Bytes(), 0o644)
	}
	old, err := os.ReadFile(check)
	if err != nil {
		return fmt.Errorf("read the notices: %w", err)
	}
	if where := firstDifference(old, text.Bytes()); where != "" {
		return fmt.Errorf("%s is out of date: %s. Run go run ./internal/tools/notices -o NOTICE, look at what changed, and commit it", check, where)
	}
	return nil
}

// listed is the output of go list for a package.
type listed struct {
	ImportPath string
	Dir        string
	Standard   bool
	Module     *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Version string }
	}
}

// module describes the linked parts of one module.
type module struct {
	path, version string
	texts         map[string]string // by the path of the file in the module
}

// linked returns the modules in any platform's build, including Go's standard library, sorted by path.
func linked() ([]*module, error) {
	all := map[string]*module{}
	for _, p := range platforms() {
		packages, err := list(p)
		if err != nil {
			return nil, err
		}
		for _, one := range packages {
			if err := add(all, one); err != nil {
				return nil, err
			}
		}
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go: %w", err)
	}
	std := &module{path: "Go, its runtime and standard library", texts: map[string]string{}}
	if err := std.read(strings.TrimSpace(string(goroot)), "."); err != nil {
		return nil, err
	}
	sorted := []*module{std}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, all[path])
	}
	return sorted, nil
}

// list returns the packages of one build.
func list(platform [2]string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Standard,Module", program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform[0], "GOARCH="+platform[1])
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages for %s/%s: %w: %s", platform[0], platform[1], err, said.Bytes())
	}
	var all []listed
	for in := json.NewDecoder(bytes.NewReader(text)); ; {
		var one listed
		switch err := in.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all = append(all, one)
	}
}

// add adds a package to the modules, with the licences in its directory and in those above it up to its module's.
func add(all map[string]*module, one listed) error {
	if one.Standard || one.Module == nil || one.Module.Main {
		return nil
	}
	if by := one.Module.Replace; by != nil && by.Version == "" {
		return nil // a directory of this repository
	}
	m := all[one.Module.Path]
	if m == nil {
		m = &module{path: one.Module.Path, version: one.Module.Version, texts: map[string]string{}}
		all[m.path] = m
	}
	inside, err := filepath.Rel(one.Module.Dir, one.Dir)
	if err != nil {
		return fmt.Errorf("find %s in its module: %w", one.ImportPath, err)
	}
	for ; ; inside = filepath.Dir(inside) {
		if err := m.read(one.Module.Dir, inside); err != nil {
			return err
		}
		if inside == "." {
			return nil
		}
	}
}

// read reads the licences and notices in a directory of a module with the given root.
func (m *module) read(root, inside string) error {
	entries, err := os.ReadDir(filepath.Join(root, inside))
	if err != nil {
		return fmt.Errorf("look for the licence of %s: %w", m.path, err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !isLegal(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, inside, e.Name()))
		if err != nil {
			return fmt.Errorf("read the licence of %s: %w", m.path, err)
		}
		m.texts[filepath.ToSlash(filepath.Join(inside, e.Name()))] = tidy(string(text))
	}
	return nil
}

// isLegal reports whether a file's name is that of a licence or of a file that belongs to one.
func isLegal(name string) bool {
	base := strings.ToLower(name)
	if ext := filepath.Ext(base); ext == ".go" || ext == ".json" || ext == ".sh" {
		return false
	}
	for _, begin := range []string{"license", "licence", "copying", "copyright", "notice", "patents"} {
		if strings.HasPrefix(base, begin) {
			return true
		}
	}
	return false
}

// tidy returns a text with Unix line ends, and without blanks before them.
func tidy(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

// firstDifference returns where two texts differ first, "" if they are equal.
func firstDifference(old, now []byte) string {
	a, b := strings.Split(string(old), "\n"), strings.Split(string(now), "\n")
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf("it ends before %q", b[i])
		case i >= len(b):
			return fmt.Sprintf("line %d is too many: %q", i+1, a[i])
		case a[i] != b[i]:
			return fmt.Sprintf("line %d is %q, and must be %q", i+1, a[i], b[i])
		}
	}
	return ""
}
