// Command torture runs the full tier of the fault tests, part after part, and stores the results in one file. A failing
// part does not stop the others; each failing test is printed with the command that repeats it:
//
//	go run ./internal/tools/torture [-results FILE] [-parts kills,disk] [-run REGEXP]
//
// HWSAGENT_TORTURE is a percentage of the full tier, 1 or nothing is all of it; HWSAGENT_SEED repeats a run.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hwsagent/internal/tools/results"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := torture(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func torture(ctx context.Context) (ok bool, err error) {
	file := flag.String("results", filepath.Join(".cache", "torture", time.Now().UTC().Format("20060102-150405")+".jsonl"), "the file that results are appended to")
	only := flag.String("parts", "", "which parts run, separated by commas; all of them by default")
	run := flag.String("run", "", "which tests of the crash lab run, instead of parts: a regular expression, as go test's")
	flag.Parse()
	if *file == "" || flag.NArg() > 0 {
		return false, fmt.Errorf("usage: torture [-results FILE] [-parts a,b] [-run REGEXP]")
	}
	r := runner{load: os.Getenv("HWSAGENT_TORTURE")}
	if r.load == "" {
		r.load = "1"
	}
	if r.seed, err = seed(); err != nil {
		return false, err
	}
	if r.file, err = filepath.Abs(*file); err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(r.file), 0o700); err != nil {
		return false, err
	}
	todo := parts()
	switch {
	case *run != "":
		todo = []part{chosen(*run)}
	case *only != "":
		names := strings.Split(*only, ",")
		todo = slices.DeleteFunc(todo, func(p part) bool { return !slices.Contains(names, p.name) })
	}
	if len(todo) == 0 {
		return false, fmt.Errorf("no part is called %s", *only)
	}
	machine, err := r.machine()
	if err != nil {
		return false, err
	}
	if err := results.Append(r.file, results.Entry{Machine: &machine}); err != nil {
		return false, err
	}
	fmt.Printf("commit %s, seed %d, %d %% of the full tier, %d cores, Linux %s, load %v\nresults: %s\n",
		machine.Commit, machine.Seed, machine.Percent, machine.Cores, machine.Kernel, machine.Load, r.file)

	ok = true
	for _, p := range todo {
		if ctx.Err() != nil {
			break
		}
		ok = r.part(ctx, p) && ok
	}
	all, err := results.Read(r.file)
	if err != nil {
		return false, err
	}
	fmt.Print("\n", all.Table())
	return ok && ctx.Err() == nil, nil
}

func seed() (uint64, error) {
	s := os.Getenv("HWSAGENT_SEED")
	if s == "" {
		return uint64(time.Now().UnixNano()), nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("HWSAGENT_SEED: %w", err)
	}
	return n, nil
}

// machine describes this machine.
func (r *runner) machine() (results.Machine, error) {
	m := results.Machine{Date: time.Now().UTC(), Seed: r.seed, Cores: runtime.NumCPU(), Percent: 100}
	if n, err := strconv.Atoi(r.load); err == nil && n > 1 {
		m.Percent = n
	}
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return m, fmt.Errorf("git describe: %w", err)
	}
	m.Commit = strings.TrimSpace(string(commit))
	// Where there is no /proc these are unknown.
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	m.Kernel = cmp.Or(strings.TrimSpace(string(kernel)), "unknown")
	load, _ := os.ReadFile("/proc/loadavg")
	for i, field := range strings.Fields(string(load)) {
		if f, err := strconv.ParseFloat(field, 64); err == nil && i < 3 {
			m.Load = append(m.Load, f)
		}
	}
	return m, nil
}
