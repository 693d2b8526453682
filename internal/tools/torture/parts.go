package main

import (
	"strconv"
	"strings"
	"time"
)

// part is a piece of the full tier with its own process: the others survive if it breaks something.
type part struct {
	name     string
	pkg      string
	run      string // which tests: a regular expression; "": all tests of the package outside of other parts
	parallel int    // how many at a time: most of them wait for time to pass
	limit    time.Duration
	// builds means that the part builds its own programs and runs the short tier of the tests with them: it gets
	// neither the binary nor the size of the full tier.
	builds bool
	env    string // a variable of the environment that sets the size of the full tier; "": none but those of all parts
}

// Which tests the parts have. Those of alone measure how fast something is, and those
// of peers how much of the machine the agent takes: they get it for themselves.
const (
	damages = "OpenAfter"

	kills = "Kill|OutOfMemory"
	disks = "PowerCut|Disk|FileThat|StickyErrors|EveryErrorOnce|ReadOnly"
	ins   = "Inputs"
	peers = "Mutants"
	alone = "Gigabytes"
)

// parts returns all parts of the full tier, the quick ones first.
func parts() []part {
	return []part{
		{name: "memory", pkg: "./wal", parallel: 2, limit: 40 * time.Minute},
		{name: "damage", pkg: "./wal", run: damages, parallel: 2, limit: 30 * time.Minute},
		{name: "kills", pkg: lab, run: kills, parallel: 8, limit: 40 * time.Minute},
		{name: "refusals", pkg: "./remotewrite/split", parallel: 2, limit: 30 * time.Minute, env: "HWSAGENT_SPLIT_CASES=200000"},
		{name: "disk", pkg: lab, run: disks, parallel: 8, limit: 40 * time.Minute},
		{name: "inputs", pkg: lab, run: ins, parallel: 4, limit: 30 * time.Minute},
		{name: "mutants", pkg: lab, run: peers, parallel: 1, limit: 20 * time.Minute},
		{name: "others", pkg: lab, parallel: 4, limit: 30 * time.Minute},
		{name: "machine", pkg: "./e2e/lab", parallel: 1, limit: 30 * time.Minute},
		{name: "size", pkg: lab, run: alone, parallel: 1, limit: 45 * time.Minute},
		{name: "replants", pkg: "./internal/tools/replant", run: "^TestReplant$", parallel: 2, limit: 30 * time.Minute, builds: true},
	}
}

const lab = "./e2e/crashlab"

// chosen returns a part with the crash lab's tests that the user names.
func chosen(run string) part {
	return part{name: "chosen", pkg: lab, run: run, parallel: 8, limit: 90 * time.Minute}
}

// arguments returns the arguments of go.
func (p part) arguments() []string {
	args := []string{"test", "-json", "-count=1", "-timeout", p.limit.String(), "-parallel", strconv.Itoa(p.parallel)}
	if p.run != "" {
		return append(args, "-run", p.run, p.pkg)
	}
	var others []string
	for _, o := range parts() {
		if o.pkg == p.pkg && o.run != "" {
			others = append(others, o.run)
		}
	}
	return append(args, "-skip", strings.Join(others, "|"), p.pkg)
}

// chosenBy returns the arguments that choose this part alone.
func (p part) chosenBy() string {
	if p.name == "chosen" {
		return "-run '" + p.run + "'"
	}
	return "-parts " + p.name
}
