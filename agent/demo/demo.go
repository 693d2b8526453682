// Package demo shows and measures the agent's main job: the ordinary agent, as a process of its own, pushes to a
// receiver that demands mutual TLS and a bearer token; the receiver goes away, the agent is killed, and in the end
// every sample that the log acknowledged is accounted for.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hwsagent/agent/demo/receiver"
)

// The scripts.
const (
	Tour   = "tour"   // for people: an outage with a kill in it, with a running commentary
	Outage = "outage" // the receiver is down for ten seconds under load
	Crash  = "crash"  // the same, and the agent is killed meanwhile
)

// Options select the script and the files. The zero value is the tour.
type Options struct {
	Script string // one of Tour (the default), Outage and Crash
	JSON   bool   // print one JSON object (a Result) on Stdout and everything else on Stderr
	Listen string // where the agent's page listens; default for a tour 127.0.0.1:9464, or any free port if that is taken
	Binary string // the agent's program; default this one
	Keep   string // a directory for all files, which is kept; default a temporary one

	Stdout, Stderr io.Writer // default os.Stdout, os.Stderr

	second time.Duration // length of a second in the scripts; default one second
}

// Result is the outcome of one run, in canary samples; Pending counts all samples that the agent's ledger still holds
// for the target.
//
// Invariant: Appended = Delivered + Lost, except for samples that are Pending.
type Result struct {
	Script     string  `json:"script"`
	Appended   uint64  `json:"appended"`  // acknowledged by the log
	Delivered  uint64  `json:"delivered"` // of these, arrived
	Lost       uint64  `json:"lost"`      // of these, neither arrived nor pending
	Duplicated uint64  `json:"duplicated"`
	OutOfOrder uint64  `json:"out_of_order"`
	Pending    uint64  `json:"pending"`
	Seconds    float64 `json:"seconds"`
}

// ErrUnknownScript means that Options.Script is not the name of a script.
var ErrUnknownScript = errors.New("unknown script")

// ErrLost means that the run ended while samples were lost or late.
var ErrLost = errors.New("samples are lost or still pending")

// limit ends a run that hangs.
const limit = 58 * time.Second

// series is how many canary series there are; each gets a sample every interval.
const (
	series   = 200
	interval = 100 * time.Millisecond
)

// Run runs one script and prints its progress and result. It ends by itself in under a minute, or when ctx ends. The
// error is ErrLost if samples did not arrive.
func Run(ctx context.Context, o Options) error {
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	if o.second == 0 {
		o.second = time.Second
	}
	if o.Script == "" {
		o.Script = Tour
	}
	script, ok := map[string]func(*stage, context.Context) error{
		Tour: (*stage).tour, Outage: (*stage).outage, Crash: (*stage).crash,
	}[o.Script]
	if !ok {
		return fmt.Errorf("%w %q: want %s, %s or %s", ErrUnknownScript, o.Script, Tour, Outage, Crash)
	}
	dir := o.Keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "hwsagent-demo-"); err != nil {
			return fmt.Errorf("make the demo's directory: %w", err)
		}
		defer os.RemoveAll(dir)
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the demo's directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	s, err := newStage(o, dir)
	if err != nil {
		return err
	}
	defer s.close()
	if err := script(s, ctx); err != nil {
		if tail := lastLines(filepath.Join(dir, logName), 15); tail != "" && !errors.Is(err, context.Canceled) {
			fmt.Fprintf(o.Stderr, "the agent's log ends with:\n%s\n", tail)
		}
		return fmt.Errorf("demo %s: %w", o.Script, err)
	}
	return s.verdict(ctx)
}

// verdict ends the load, waits until everything is delivered, stops the agent and
// prints the account.
func (s *stage) verdict(ctx context.Context) error {
	pending, err := s.drain(ctx)
	if err != nil {
		return fmt.Errorf("demo %s: %w", s.o.Script, err)
	}
	took, err := s.agent.stop(5 * time.Second)
	if err != nil {
		return fmt.Errorf("demo %s: %w", s.o.Script, err)
	}
	s.say("the agent stopped in %s", took.Round(time.Millisecond))
	journal, err := receiver.ReadJournal(s.journal)
	if err != nil {
		return err
	}
	v := s.oracle.Verify(journal, series)
	r := Result{
		Script: s.o.Script, Appended: v.Appended, Delivered: v.Delivered,
		// Missing samples are lost, unless the agent still has them.
		Lost:       v.Missing - min(v.Missing, pending) + v.Garbled,
		Duplicated: v.Duplicated, OutOfOrder: v.OutOfOrder, Pending: pending,
		Seconds: time.Since(s.started).Round(10 * time.Millisecond).Seconds(),
	}
	if s.o.JSON {
		if err := json.NewEncoder(s.o.Stdout).Encode(r); err != nil {
			return fmt.Errorf("print result: %w", err)
		}
	} else {
		fmt.Fprint(s.o.Stdout, r.text())
	}
	if r.Lost > 0 || r.Pending > 0 || r.Appended == 0 {
		return ErrLost
	}
	return nil
}

// text formats the result for people.
func (r Result) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n  %d samples with known numbers were acknowledged by the log, %d arrived.\n", r.Appended, r.Delivered)
	fmt.Fprintf(&b, "  lost %d · pending %d · out of order %d · sent twice %d\n", r.Lost, r.Pending, r.OutOfOrder, r.Duplicated)
	if r.Script == Tour && r.Lost == 0 && r.Pending == 0 {
		b.WriteString(`
  Next: write my-agent.yaml (README.md has one to start from), then
    hwsagent check --config.file my-agent.yaml      every target and probe, live
    hwsagent run   --config.file my-agent.yaml --storage.path DIRECTORY
`)
	}
	return b.String()
}
