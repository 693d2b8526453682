// Command tally prints the closing line of make test: how many tests ran, how many did not and which command runs them,
// and which modules go test did not enter. It reads the events of go test -json:
//
//	go run ./internal/tools/tally [FILE]
//
// FILE is $GOTESTSUM_JSONFILE by default, which gotestsum sets for its --post-run-command. A test that skips itself
// gives one of two kinds of reason: how to run it ("run by make TARGET", "run by hand"), or a program or a right that
// this machine lacks. The tests of the second kind are listed. With CI=true the machine must have each program that is
// a Debian package: a test that skips itself for want of one ("Debian: apt-get install") fails the run.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	name := os.Getenv("GOTESTSUM_JSONFILE")
	if len(os.Args) == 2 {
		name = os.Args[1]
	}
	if name == "" || len(os.Args) > 2 {
		fmt.Fprintln(os.Stderr, "usage: tally FILE, where FILE has the output of go test -json")
		os.Exit(2)
	}
	if err := run(os.Stdout, name, os.Getenv("CI") == "true"); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

// run prints the tally of the events in a file, and fails if complete and a test lacks a program.
func run(out io.Writer, name string, complete bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := read(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	modules, err := nested(".")
	if err != nil {
		return fmt.Errorf("find nested modules: %w", err)
	}
	fmt.Fprint(out, r.text(modules))
	if missing := r.missing(); complete && len(missing) > 0 {
		return fmt.Errorf("%d tests found no program that .ci/run installs: %s", len(missing), strings.Join(missing, "; "))
	}
	return nil
}

// result is what became of the tests of a run, subtests included.
type result struct {
	ran, failed int
	packages    int            // that failed, for instance because they do not build
	elsewhere   map[string]int // how many tests another command runs: "make e2e", "hand"
	lacking     []string       // "package.Test: reason" of those that skipped themselves for another reason
}

// event is one line of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output string
}

var (
	command = regexp.MustCompile(`run by (make [a-z0-9-]+|hand)`)
	place   = regexp.MustCompile(`^\s+[A-Za-z0-9_]+\.go:[0-9]+: `)
)

// read adds up the events of a run.
func read(in io.Reader) (result, error) {
	r := result{elsewhere: map[string]int{}}
	reasons := map[string]string{} // what a running test printed last with a place in front, by package and name
	lines := bufio.NewReader(in)
	for dec := json.NewDecoder(lines); ; {
		var e event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return r, nil
		} else if err != nil {
			return r, err
		}
		if e.Test == "" {
			if e.Action == "fail" {
				r.packages++
			}
			continue
		}
		id := e.Package + "." + e.Test
		switch e.Action {
		case "output":
			if at := place.FindString(e.Output); at != "" {
				reasons[id] = strings.TrimSpace(e.Output[len(at):])
			}
		case "pass", "fail":
			r.ran++
			if e.Action == "fail" {
				r.failed++
			}
			delete(reasons, id)
		case "skip":
			if by := command.FindStringSubmatch(reasons[id]); by != nil {
				r.elsewhere[by[1]]++
			} else {
				r.lacking = append(r.lacking, id+": "+cmp.Or(reasons[id], "no reason"))
			}
			delete(reasons, id)
		}
	}
}

// missing returns those of lacking whose program a Debian package has.
func (r result) missing() []string {
	return slices.DeleteFunc(slices.Clone(r.lacking), func(s string) bool { return !strings.Contains(s, "apt-get install") })
}

// text returns the closing lines; the last one has the sums.
func (r result) text(modules []string) string {
	var b strings.Builder
	slices.Sort(r.lacking)
	for _, s := range r.lacking {
		fmt.Fprintln(&b, "skipped:", s)
	}
	fmt.Fprintf(&b, "%d tests ran, %d failed", r.ran, r.failed)
	if r.packages > 0 {
		fmt.Fprintf(&b, " in %d packages", r.packages)
	}
	if len(r.lacking) > 0 {
		fmt.Fprintf(&b, ", %d skipped (above)", len(r.lacking))
	}
	byNumber := func(x, y string) int { return cmp.Or(r.elsewhere[y]-r.elsewhere[x], cmp.Compare(x, y)) }
	for i, name := range slices.SortedFunc(maps.Keys(r.elsewhere), byNumber) {
		verb := "need"
		if name == "hand" {
			verb = "are run by"
		}
		fmt.Fprintf(&b, "%s %d %s %s", [...]string{";", ","}[min(i, 1)], r.elsewhere[name], verb, name)
	}
	if len(modules) > 0 {
		fmt.Fprintf(&b, "; modules not entered: %s (make e2e, make nightly)", strings.Join(modules, ", "))
	}
	return b.String() + "\n"
}

// nested returns the directories below root that are modules of their own, which ./... leaves out.
func nested(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case d.Name() == "go.mod" && filepath.Dir(path) != root:
			dirs = append(dirs, filepath.ToSlash(filepath.Dir(path)))
		}
		return nil
	})
	return dirs, err
}
