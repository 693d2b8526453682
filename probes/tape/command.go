package tape

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Run runs a program with arguments and returns what it printed, as hwsagent/probes/exec.Run does: with an error that wraps an
// [exec.ExitError] the output is that of a program that ended with another status than 0.
type Run func(ctx context.Context, args ...string) ([]byte, error)

// exited is the status of a program that ended with another status than 0, and printed what the answer has.
const exited = "exit"

// Record is run, with what the program prints on the tape.
func (t *Tape) Record(run Run) Run {
	return func(ctx context.Context, args ...string) ([]byte, error) {
		out, err := run(ctx, args...)
		status := OK
		var left *exec.ExitError
		switch {
		case errors.As(err, &left):
			status = fmt.Sprintf("%s %d", exited, left.ExitCode())
		case err != nil:
			status = "error: " + err.Error()
		}
		t.Add(strings.Join(args, " "), status, out)
		return out, err
	}
}

// Run answers as the program did. What it was not asked fails.
func (p *Player) Run() Run {
	return func(_ context.Context, args ...string) ([]byte, error) {
		ask := strings.Join(args, " ")
		e, ok := p.Next(ask)
		switch {
		case !ok:
			return nil, fmt.Errorf("the recording has no answer to the arguments %q", ask)
		case e.Status == OK:
			return e.Answer, nil
		case strings.HasPrefix(e.Status, exited+" "):
			return e.Answer, fmt.Errorf("%s: %w", e.Status, new(exec.ExitError))
		}
		return nil, errors.New(strings.TrimPrefix(e.Status, "error: "))
	}
}
