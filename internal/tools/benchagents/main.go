//go:build linux

// Command benchagents compares hwsagent with Prometheus' agent mode and vmagent: the same load, the same receiver, one
// agent after the other on the same machine. It prints each figure with its ratio and its aim:
//
//	go run ./internal/tools/benchagents -hwsagent bin/hwsagent [-prometheus PROGRAM] [-vmagent PROGRAM] [-quick] [-json FILE]
//
// It skips an agent that is not found, and names it. Times depend on the machine and its other load, so this is for
// people and not part of continuous integration: only ratios within one run on an otherwise idle machine are
// meaningful.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "benchagents:", err)
		os.Exit(1)
	}
}

// options are the command's flags.
type options struct {
	plan     plan
	parts    []part
	programs map[string]string // by agent; only ours must be found
	json     string            // "": no file
	docs     string            // the page that gets the table; "": none
	dir      string
}

func parseOptions(args []string) (options, error) {
	o := options{plan: fullPlan(), programs: make(map[string]string)}
	flags := flag.NewFlagSet("benchagents", flag.ContinueOnError)
	own := flags.String(ours, "bin/hwsagent", "the agent of this repository")
	prom := flags.String(prometheus, "", "Prometheus (found in PATH by default; none: leave it out)")
	vm := flags.String(vmagent, "", "vmagent (found in PATH by default; none: leave it out)")
	quick := flags.Bool("quick", false, "windows of seconds, four minutes in all: to see that it works")
	only := flags.String("parts", "", "which of steady, small, v2, zstd and start are measured, separated by commas; all by default")
	heavy := flags.String("load", "", "of the heavy runs, as TARGETSxSERIES@INTERVAL (default 5x10000@5s)")
	entries := flags.Int("entries", 1, "how many remote_write entries hwsagent has in the heavy runs; all lead to the one receiver")
	steady := flags.Duration("steady", 0, "how long the heavy load is measured (default 100s)")
	small := flags.Duration("small", 0, "how long the small load is measured (default 105s)")
	outage := flags.Duration("outage", 0, "how long the receiver is away (default 90s)")
	flags.Uint64Var(&o.plan.seed, "seed", 1, "of the values that targets show")
	flags.StringVar(&o.json, "json", "", "a file that the result is written to, as JSON")
	flags.StringVar(&o.docs, "docs", "", "a page that the table is written into, between its markers")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "where agents keep their files; on the disk that counts")
	err := flags.Parse(args)
	if err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("read arguments: %q is no flag", flags.Arg(0))
	}
	if *quick {
		o.plan = o.plan.quick()
	}
	if *heavy != "" {
		if o.plan.heavy, err = parseLoad(*heavy); err != nil {
			return o, err
		}
	}
	o.plan.heavy.entries = *entries
	for _, d := range []struct{ is, set *time.Duration }{{&o.plan.steady, steady}, {&o.plan.smallFor, small}, {&o.plan.outage, outage}} {
		if *d.set < 0 {
			return o, fmt.Errorf("read durations: %s is below zero", *d.set)
		}
		if *d.set > 0 {
			*d.is = *d.set
		}
	}
	o.programs[ours], o.programs[prometheus], o.programs[vmagent] = *own, *prom, *vm
	o.parts, err = chosen(*only)
	return o, err
}

// chosen returns the parts with these names, in the order of measurement.
func chosen(names string) ([]part, error) {
	all := parts()
	if names == "" {
		return all, nil
	}
	var list []part
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("choose parts: none is called %q", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%6s  %s\n", time.Since(began).Round(time.Second), fmt.Sprintf(format, args...))
	}
	agents, notes, err := findAgents(ctx, o.programs)
	if err != nil {
		return err
	}
	for _, n := range notes {
		say("%s", n)
	}
	if o.dir, err = os.MkdirTemp(o.dir, "bench-agents-"); err != nil {
		return fmt.Errorf("make a directory for the agents' files: %w", err)
	}
	defer os.RemoveAll(o.dir)
	inMemory, err := onMemory(o.dir)
	if err != nil {
		return err
	}
	if inMemory {
		notes = append(notes, fmt.Sprintf("bytes written to disk: %s lies in memory; name a directory on a disk by -dir", filepath.Dir(o.dir)))
	}
	b := &bench{plan: o.plan, dir: o.dir, disk: !inMemory, say: say, by: make(map[string]figures), starts: make(map[string][]float64), notes: notes}
	for _, a := range agents {
		b.by[a.Name] = figures{binary: float64(a.Binary) / 1e6}
	}
	m := machine{Cores: runtime.NumCPU(), Kernel: firstLine("/proc/sys/kernel/osrelease"), LoadBefore: loadAverage()}
	stopped := b.measure(ctx, o.parts, agents) // show the cells measured before a stop
	m.LoadAfter = loadAverage()
	r := report{
		Date: began.UTC(), Seconds: time.Since(began).Seconds(), Machine: m, Plan: o.plan.String(),
		Agents: agents, Cells: cells(rows(o.plan), b.by), Notes: b.notes,
	}
	fmt.Print(r.markdown())
	if o.json != "" {
		err = writeJSON(o.json, r)
	}
	if o.docs != "" && stopped == nil {
		err = errors.Join(err, writePage(o.docs, r))
	}
	return errors.Join(stopped, err)
}

func (p plan) String() string {
	return fmt.Sprintf("windows of %s and %s, an outage of %s, seed %d", p.steady, p.smallFor, p.outage, p.seed)
}

// findAgents finds the agents, ours last. It notes any other that is missing.
func findAgents(ctx context.Context, programs map[string]string) (list []agent, notes []string, err error) {
	for _, name := range []string{prometheus, vmagent, ours} {
		program := programs[name]
		if program == "none" {
			continue
		}
		if program == "" {
			program = name
		}
		a, err := findAgent(ctx, name, program)
		switch {
		case err == nil:
			list = append(list, a)
		case name == ours || programs[name] != "":
			return nil, nil, fmt.Errorf("find %s: %w", name, err)
		default:
			notes = append(notes, fmt.Sprintf("%s: %v", name, err))
		}
	}
	return list, notes, nil
}

func writeJSON(file string, r report) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

func writePage(file string, r report) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	page, err := inPage(string(old), r.markdown())
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(page), 0o644)
}

// firstLine returns a file's first line, or "unknown".
func firstLine(file string) string {
	b, err := os.ReadFile(file)
	if line, _, _ := bytes.Cut(b, []byte("\n")); err == nil && len(line) > 0 {
		return string(line)
	}
	return "unknown"
}

// loadAverage returns the averages over 1, 5 and 15 minutes.
func loadAverage() string {
	f := strings.Fields(firstLine("/proc/loadavg"))
	return strings.Join(f[:min(3, len(f))], ", ")
}
