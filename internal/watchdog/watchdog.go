// Package watchdog lists the parts of the program that still run, for a stop that does not end and for a command that
// waits. Parts name themselves by labels of the profiler (runtime/pprof), which all goroutines that they start inherit;
// nothing needs to be registered or unregistered.
package watchdog

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"path"
	"reflect"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
)

// label is the key of the label that carries the name of a part.
const label = "part"

// maxStacks bounds the text of [Report.Stacks], in bytes.
const maxStacks = 64 << 10

// Do runs f as the part of the program with that name, such as `target "up"`. All goroutines that f starts belong to
// the part, even after f has returned.
func Do(ctx context.Context, name string, f func(context.Context)) {
	pprof.Do(ctx, pprof.Labels(label, name), f)
}

// Part is a part of the program with at least one goroutine.
type Part struct {
	Name       string
	Goroutines int
	// At is the place of one of its goroutines in this program's own code: function, file and line.
	At string
}

// String names the part and says where it is.
func (p Part) String() string { return p.Name + " (in " + p.At + ")" }

// Report describes the running parts at one moment.
type Report struct {
	// Parts are the parts with a goroutine in this program's own code, sorted by name.
	Parts []Part
	// Stacks has the stacks of all goroutines, equal ones grouped, without arguments of functions and thus without
	// secrets. Those with a function of this program come first, because the text is cut at 64 KiB.
	Stacks string
}

// Look describes the running parts at present. It stops the program for less than a millisecond.
func Look() Report {
	profile := Stacks()
	r := Report{Parts: parse(profile), Stacks: ownFirst(profile)}
	if len(r.Stacks) > maxStacks {
		r.Stacks = r.Stacks[:maxStacks] + "\n…"
	}
	return r
}

// Stacks returns the stacks of all goroutines, equal ones grouped, with the names of parts and without arguments of functions. It
// stops the program for less than a millisecond.
func Stacks() string {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return err.Error() // cannot happen: it writes to memory
	}
	return b.String()
}

// ownFirst puts the stacks of a profile with a function of this module before the others.
func ownFirst(profile string) string {
	stacks := strings.Split(strings.TrimRight(profile, "\n"), "\n\n")
	slices.SortStableFunc(stacks, func(a, b string) int { return rank(a) - rank(b) })
	return strings.Join(stacks, "\n\n") + "\n"
}

// rank returns 0 for a stack with a function of this module, and 1 for one without.
func rank(stack string) int {
	for line := range strings.Lines(stack) {
		if strings.HasPrefix(line, "#") && ours(line) != "" {
			return 0
		}
	}
	return 1
}

// Names returns the names of the parts as a list for a sentence, except the given ones.
func (r Report) Names(except ...string) string {
	var all []string
	for _, p := range r.Parts {
		if !slices.Contains(except, p.Name) {
			all = append(all, p.String())
		}
	}
	return strings.Join(all, ", ")
}

// parse reads a profile of goroutines as text ("debug=1"): for each group of equal stacks a line "COUNT @ PC …", a line
// of labels if there are any, and a line for each frame.
func parse(profile string) []Part {
	found := map[string]*Part{}
	count, name, at := 0, "", ""
	end := func() {
		if name != "" && at != "" {
			p := found[name]
			if p == nil {
				p = &Part{Name: name, At: at}
				found[name] = p
			}
			p.Goroutines += count
		}
		count, name, at = 0, "", ""
	}
	lines := bufio.NewScanner(strings.NewReader(profile))
	lines.Buffer(nil, len(profile)+1)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "":
			end()
		case strings.HasPrefix(line, "# labels: "):
			name = labelled(line)
		case strings.HasPrefix(line, "#"):
			if place := ours(line); at == "" {
				at = place
			}
		default:
			end()
			_, _ = fmt.Sscanf(line, "%d @", &count) // the first line has neither count nor stack
		}
	}
	end()
	all := make([]Part, 0, len(found))
	for _, p := range found {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// labelled returns the name of the part in a line such as `# labels: {"part":"target \"up\""}`.
func labelled(line string) string {
	_, rest, _ := strings.Cut(line, strconv.Quote(label)+":")
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return ""
	}
	name, err := strconv.Unquote(quoted)
	if err != nil {
		return ""
	}
	return name
}

// ours returns the place of a frame in a function of this module that does more than name a part; "" for other frames.
// A line is "#", the program counter, function+offset, and file:line.
func ours(line string) string {
	f := strings.Fields(line)
	self, module := paths()
	if len(f) < 4 || !strings.HasPrefix(f[2], module) || strings.HasPrefix(f[2], self+".Do") {
		return ""
	}
	function, _, _ := strings.Cut(strings.TrimPrefix(f[2], module), "+0x")
	return function + ", " + path.Base(f[len(f)-1])
}

// paths returns the import path of this package and that of its module with a slash, with which the names of the
// module's functions begin. They are derived, so that a move of this package needs no other change.
func paths() (self, module string) {
	self = reflect.TypeFor[Part]().PkgPath()
	return self, strings.TrimSuffix(self, "internal/watchdog")
}
