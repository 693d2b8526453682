// Command vulncheck runs govulncheck and reports the outcome: an error if the packages reach a known vulnerability, and
// a warning if the database of vulnerabilities is unavailable, because then the result is unknown.
//
//	vulncheck -program .cache/govulncheck-v1.8.0/govulncheck ./...
//
// A warning is a line that begins with "ci-warning: "; .ci/run shows it in its summary.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// warning begins a line that .ci/run looks for.
const warning = "ci-warning: "

// patience bounds a run, the fetching of the database included.
const patience = 10 * time.Minute

func main() {
	program := flag.String("program", "govulncheck", "the govulncheck to run")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := check(ctx, os.Stdout, *program, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

// check runs the program on packages. Its output, and the warning, go to out.
func check(ctx context.Context, out io.Writer, program string, packages []string) error {
	out = &shared{to: out}
	cmd := exec.CommandContext(ctx, program, packages...)
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, io.MultiWriter(out, &said)
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s took longer than %s: run it by hand to see where it hangs", program, patience)
	case !errors.As(err, &exit):
		return fmt.Errorf("run %s: %w", program, err)
	}
	if unreachable(exit.ExitCode(), said.String()) {
		_, err := fmt.Fprintln(out, warning+"the database of known vulnerabilities is out of reach: nothing was checked")
		return err
	}
	if exit.ExitCode() == reached {
		return errors.New("a known vulnerability is reached: update the module that is named above, or stop calling what is vulnerable")
	}
	return fmt.Errorf("%s failed (exit code %d)", program, exit.ExitCode())
}

// shared is a writer for the two outputs of a program, which come at the same time.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements [io.Writer].
func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(b)
}

// Exit codes of govulncheck in its text mode.
const (
	failed  = 1 // it could not run
	reached = 3 // the code calls a vulnerable function
)

// unreachable reports whether govulncheck ended because it could not get its database. Only its output says so: version
// 1.8.0 prints "govulncheck: fetching vulnerabilities: " before the reason.
func unreachable(code int, said string) bool {
	return code == failed && strings.Contains(said, "govulncheck: fetching vulnerabilities: ")
}
