// Package results stores the results of the fault tests in one file of JSON values, one per line, so that
// internal/tools/torture can print them as a table.
//
// A full run begins with a [Machine], then each test adds its [Line]s with [Add], and the runner adds how each test and
// each part ended. Lines of tests that run at the same time, in several processes too, do not mix: each is appended by
// one write.
package results

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"
)

// Env names the file that results are appended to. Unset: nothing is kept.
const Env = "HWSAGENT_RESULTS"

// Line is the result of one test.
type Line struct {
	What  string `json:"what"`  // what was done, in an operator's words: "kill -9 at random, sync 1s"
	Count int    `json:"count"` // how often
	// Lost counts the acknowledged samples that are gone, whatever the promise allows.
	Lost    int                `json:"lost"`
	Seed    uint64             `json:"seed,omitempty"`    // that replays it; 0: nothing was random
	Figures map[string]float64 `json:"figures,omitempty"` // by name and unit: "loss_seconds_max"

	Test   string    `json:"test"` // its name; set by Add, as what follows
	At     time.Time `json:"at"`   // when it ended, UTC
	Failed bool      `json:"failed,omitempty"`
}

// Machine describes the machine and the time of the run.
type Machine struct {
	Date   time.Time `json:"date"`   // of its start, UTC
	Commit string    `json:"commit"` // git describe --always --dirty
	Seed   uint64    `json:"seed"`   // HWSAGENT_SEED of the whole run
	// Percent says how much of the full tier ran: 100 is all of it.
	Percent int       `json:"percent"`
	Cores   int       `json:"cores"`
	Kernel  string    `json:"kernel"`
	Load    []float64 `json:"load"` // averages over 1, 5 and 15 minutes at the start
}

// Outcome says how a test or a part of the run ended.
type Outcome struct {
	Part    string  `json:"part"`
	Test    string  `json:"test,omitempty"` // "": the part as a whole
	Verdict string  `json:"verdict"`        // ok, FAILED, skipped, cut short, or Began
	Seconds float64 `json:"seconds"`
	Replay  string  `json:"replay,omitempty"` // the command that repeats what failed
}

// Began is the verdict of a part that has not ended. It replaces the results of an earlier run of the part in the file.
const Began = "began"

// Entry is one line of the file; exactly one of its fields is set.
type Entry struct {
	Machine *Machine `json:"machine,omitempty"`
	Line    *Line    `json:"line,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Add records a line when the test has ended, with its verdict. Call it from the test's own goroutine, as soon as the
// figures are known: a test that fails later is still recorded, as failed.
func Add(t testing.TB, l Line) {
	t.Helper()
	file := os.Getenv(Env)
	if file == "" {
		return
	}
	t.Cleanup(func() {
		l.Test, l.At, l.Failed = t.Name(), time.Now().UTC(), t.Failed()
		if err := Append(file, Entry{Line: &l}); err != nil {
			t.Errorf("keep the result: %v", err)
		}
	})
}

// Append adds an entry to a file, which it creates if necessary.
func Append(file string, e Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// Run is the content of a file. For a repeated part or test line it has the last one. It has at least one machine.
type Run struct {
	Machines []Machine
	Lines    []Line
	Outcomes []Outcome
}

// Read reads a file. A last line that was cut short is an error, as any other that is not
// an entry.
func Read(file string) (Run, error) {
	f, err := os.Open(file)
	if err != nil {
		return Run{}, err
	}
	defer f.Close()
	return parse(f)
}

func parse(in io.Reader) (Run, error) {
	var run Run
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return Run{}, fmt.Errorf("line %d: %w", n, err)
		}
		if e.Machine == nil && len(run.Machines) == 0 {
			return Run{}, fmt.Errorf("line %d: nothing before it says of which machine and commit it is", n)
		}
		switch {
		case e.Machine != nil:
			run.Machines = append(run.Machines, *e.Machine)
		case e.Line != nil:
			l := *e.Line
			run.Lines = slices.DeleteFunc(run.Lines, func(o Line) bool { return o.Test == l.Test && o.What == l.What })
			run.Lines = append(run.Lines, l)
		case e.Outcome != nil:
			o := *e.Outcome
			run.Outcomes = slices.DeleteFunc(run.Outcomes, func(old Outcome) bool {
				return old.Part == o.Part && (old.Test == o.Test || o.Verdict == Began)
			})
			run.Outcomes = append(run.Outcomes, o)
		default:
			return Run{}, fmt.Errorf("line %d: neither a machine, a line nor an outcome", n)
		}
	}
	if err := lines.Err(); err != nil {
		return Run{}, err
	}
	if len(run.Machines) == 0 {
		return Run{}, errors.New("it is empty")
	}
	return run, nil
}
