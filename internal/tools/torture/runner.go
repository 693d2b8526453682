package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"hwsagent/internal/tools/results"
)

// runner runs parts.
type runner struct {
	file string // of the results
	load string // HWSAGENT_TORTURE
	seed uint64
}

// event is one line of go test -json (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// part runs one part and reports whether it succeeded. In any case its outcome is stored and the next part can run.
func (r *runner) part(ctx context.Context, p part) bool {
	began := time.Now()
	fmt.Printf("\n==> %s (%s), since %s\n", p.name, p.pkg, began.Format(time.TimeOnly))
	err := results.Append(r.file, results.Entry{Outcome: &results.Outcome{Part: p.name, Verdict: results.Began}})
	if err != nil {
		fmt.Printf("%s: keep the result: %v\n", p.name, err)
	}
	outcomes, err := r.tests(ctx, p)
	whole := results.Outcome{Part: p.name, Verdict: "ok", Seconds: time.Since(began).Seconds()}
	if err != nil || slices.ContainsFunc(outcomes, bad) {
		whole.Verdict, whole.Replay = failed, r.replay(p, "")
	}
	if err != nil {
		fmt.Printf("%s: %v\n", p.name, err)
	}
	for _, o := range append(outcomes, whole) {
		if err := results.Append(r.file, results.Entry{Outcome: &o}); err != nil {
			fmt.Printf("%s: keep the result: %v\n", p.name, err)
			whole.Verdict = failed
		}
	}
	fmt.Printf("<== %s: %s after %.0f s\n", p.name, whole.Verdict, whole.Seconds)
	return whole.Verdict == "ok"
}

const (
	failed   = "FAILED"
	cutShort = "cut short" // by another test, or for lack of time
)

func bad(o results.Outcome) bool { return o.Verdict == failed || o.Verdict == cutShort }

// tests runs a part's tests. Their whole output is stored beside the results.
func (r *runner) tests(ctx context.Context, p part) ([]results.Outcome, error) {
	log, err := os.Create(strings.TrimSuffix(r.file, filepath.Ext(r.file)) + "-" + p.name + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(ctx, p.limit+2*time.Minute) // go test ends them before, and says where they are
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", p.arguments()...)
	cmd.Env = append(os.Environ(), r.environment(p)...)
	cmd.Env = append(cmd.Env, results.Env+"="+r.file)
	if p.builds {
		cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "HWSAGENT_BINARY=") })
	}
	// An interrupt is for the tests, which clean up; they receive it as members of the group.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	outcomes, readErr := r.follow(out, log, p)
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && errs.Len() == 0 && ctx.Err() == nil && len(outcomes) > 0 {
		err = nil // red tests, which are among the outcomes
		if !slices.ContainsFunc(outcomes, bad) {
			err = fmt.Errorf("go test: %w, and no test says why: see %s", exit, log.Name())
		}
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, errs.String())
	}
	return outcomes, errors.Join(err, readErr)
}

// follow reads the output of the tests until they end.
func (r *runner) follow(out io.Reader, log io.Writer, p part) ([]results.Outcome, error) {
	var outcomes []results.Outcome
	said := map[string][]string{} // output by running test
	end := func(e event, verdict string) {
		o := results.Outcome{Part: p.name, Test: e.Test, Verdict: verdict, Seconds: e.Elapsed}
		if verdict == failed {
			o.Replay = r.replay(p, e.Test)
			fmt.Printf("--- FAILED: %s (%.0f s)\n%s    again: %s\n", e.Test, e.Elapsed, strings.Join(last(said[e.Test], 80), ""), o.Replay)
		} else if !strings.Contains(e.Test, "/") {
			fmt.Printf("    %s: %s (%.0f s)\n", verdict, e.Test, e.Elapsed)
		}
		delete(said, e.Test)
		// There are thousands of the kind that ends at once.
		if verdict == failed || !strings.Contains(e.Test, "/") || strings.Count(e.Test, "/") == 1 && e.Elapsed >= 1 {
			outcomes = append(outcomes, o)
		}
	}
	var broken error
	for in := json.NewDecoder(out); ; {
		var e event
		if err := in.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			broken = fmt.Errorf("read what go test says: %w", err)
			_, _ = io.Copy(log, out) // so that it ends
			break
		}
		if e.Output != "" {
			fmt.Fprint(log, e.Output)
		}
		if e.Test == "" {
			if e.Action == "build-fail" {
				broken = errors.New("the tests do not build")
			}
			continue
		}
		switch e.Action {
		case "run":
			said[e.Test] = nil
		case "output":
			said[e.Test] = append(said[e.Test], e.Output)
		case "pass":
			end(e, "ok")
		case "skip":
			end(e, "skipped")
		case "fail":
			end(e, failed)
		}
	}
	guilty := slices.ContainsFunc(outcomes, func(o results.Outcome) bool { return o.Verdict == failed })
	for _, test := range slices.Sorted(maps.Keys(said)) {
		// A test panicked, or time ran out: the test is known by its own verdict, or may be any.
		o := results.Outcome{Part: p.name, Test: test, Verdict: cutShort}
		if !guilty {
			o.Replay = r.replay(p, test)
		}
		outcomes = append(outcomes, o)
	}
	if len(said) > 0 {
		fmt.Printf("    %s: %d tests\n", cutShort, len(said))
	}
	return outcomes, broken
}

func last(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }

// environment returns the environment of the tests in this run.
func (r *runner) environment(p part) []string {
	if p.builds {
		return []string{"HWSAGENT_REPLANT=all", "HWSAGENT_TORTURE="}
	}
	env := []string{"HWSAGENT_E2E=1", "HWSAGENT_TORTURE=" + r.load, fmt.Sprintf("HWSAGENT_SEED=%d", r.seed)}
	if p.env != "" {
		env = append(env, p.env)
	}
	return env
}

// replay returns the command that repeats a test, "" for the whole part.
func (r *runner) replay(p part, test string) string {
	command := strings.Join(r.environment(p), " ")
	if test == "" {
		return fmt.Sprintf("HWSAGENT_TORTURE=%s HWSAGENT_SEED=%d go run ./internal/tools/torture %s", r.load, r.seed, p.chosenBy())
	}
	names := strings.Split(test, "/")
	for i := range names {
		names[i] = "^" + regexp.QuoteMeta(names[i]) + "$"
	}
	return fmt.Sprintf("%s go test -count=1 -v -timeout %s -run '%s' %s", command, p.limit, strings.Join(names, "/"), p.pkg)
}
