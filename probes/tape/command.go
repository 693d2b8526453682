package tape

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Run runs a program with arguments and returns its output, like hwsagent/probes/exec.Run: an error that wraps an
// [exec.ExitError] comes with the output of a program that ended with a nonzero status.
type Run func(ctx context.Context, args ...string) ([]byte, error)

// exited is the status of an answer whose program ended with a nonzero status.
const exited = "exit"

// Record wraps run so that the tape gets the program's output.
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

// Run answers from the tape. A question that is not on the tape fails.
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
