package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"hwsagent/internal/panics"
	"hwsagent/internal/redact"
)

// drain is how long output is read after the command has ended, in case a process that left its group keeps the output
// open.
const drain = 100 * time.Millisecond

// maxSaid bounds how much of a command's standard error is shown; the end is kept.
const maxSaid = 300

// maxHeard bounds how much of it is kept: more than maxSaid, so that a value of env is not cut in half and then shown.
const maxHeard = 8 << 10

// errTooMuch means that a command printed more than allowed.
var errTooMuch = errors.New("it prints more than max_output")

// command returns the command of c, with its output going to out and errs.
func command(c *Config, out, errs io.Writer) *exec.Cmd {
	cmd := exec.Command(c.Command[0], c.Command[1:]...) // #nosec G204 -- running a configured command is the purpose; no shell
	cmd.Env = []string{}                                // nil would mean the agent's own environment
	for name, value := range c.Env {
		cmd.Env = append(cmd.Env, name+"="+string(value))
	}
	slices.Sort(cmd.Env)
	cmd.Dir = c.Directory
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.WaitDelay = drain
	cmd.SysProcAttr = ownGroup()
	return cmd
}

// Run runs the command of c to its end, as the probe does, and returns its output: at most MaxOutput bytes. An error
// that wraps an [exec.ExitError] comes with the output of a command that ended by itself with a status other than 0;
// other errors come without output. When Run returns, no process of its group is left; that may be long after ctx has
// ended if the kernel does not release a process.
func Run(ctx context.Context, c *Config, guard *panics.Guard) ([]byte, error) {
	said := &tail{hide: c.secrets()}
	out := &bounded{limit: c.limit(), full: make(chan struct{})}
	cmd := command(c, guarded{out, guard}, guarded{said, guard})
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}
	exited, finish := watch(cmd)
	var why, err error
	func() {
		defer func() {
			// The leader has not been reaped, so the number still identifies its group.
			signalGroup(cmd.Process, syscall.SIGKILL)
			<-exited
			err = finish()
		}()
		select {
		case <-exited:
		case <-out.full:
			why = fmt.Errorf("run %s: %w (%d bytes); it was killed", c.Command[0], errTooMuch, c.limit())
		case <-ctx.Done():
			why = fmt.Errorf("run %s: it did not end in time and was killed: %w%s", c.Command[0], ctx.Err(), said)
		}
	}()
	switch {
	case why != nil:
		return nil, why
	case out.over():
		return nil, fmt.Errorf("run %s: %w (%d bytes)", c.Command[0], errTooMuch, c.limit())
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // a process that left the group keeps the output open; the command itself has ended
		return out.text(), fmt.Errorf("run %s: %w%s", c.Command[0], err, said)
	}
	return out.text(), nil
}

// guarded is a writer that is called by a goroutine of os/exec.
type guarded struct {
	io.Writer
	guard *panics.Guard
}

func (g guarded) Write(p []byte) (n int, err error) {
	err = g.guard.Do(func() error {
		n, err = g.Writer.Write(p)
		return err
	})
	return n, err
}

// maxPart bounds the size of one piece of a command's output. A single slice growing to max_output would leave several
// times that to the garbage collector.
const maxPart = 64 << 10

// bounded keeps its input up to a limit, and nothing once there is more. One goroutine writes it; it is read after
// that.
type bounded struct {
	limit int
	size  int           // total size in bytes
	parts [][]byte      // the output, in order
	full  chan struct{} // closed when the limit was exceeded
	once  sync.Once
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.size += len(p); b.size > b.limit {
		b.parts = nil
		b.once.Do(func() { close(b.full) })
		return 0, errTooMuch
	}
	switch last := len(b.parts) - 1; {
	case last < 0:
		b.parts = append(b.parts, bytes.Clone(p))
	case len(b.parts[last])+len(p) <= maxPart:
		b.parts[last] = append(b.parts[last], p...)
	default:
		b.parts = append(b.parts, append(make([]byte, 0, maxPart), p...))
	}
	return len(p), nil
}

// text returns the whole output.
func (b *bounded) text() []byte {
	if len(b.parts) == 1 {
		return b.parts[0]
	}
	return bytes.Join(b.parts, nil)
}

func (b *bounded) over() bool {
	select {
	case <-b.full:
		return true
	default:
		return false
	}
}

// tail keeps the end of its input. It is safe for concurrent use.
type tail struct {
	hide *redact.Secrets // values that must not be shown

	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxHeard):]...)
	t.text = append(t.text[:0], t.text[max(0, len(t.text)-maxHeard):]...)
	return len(p), nil
}

// String returns "; it said: …" in one line, or "".
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.hide.Cut(string(t.text))
	text := strings.Join(strings.Fields(strings.ToValidUTF8(all, string(utf8.RuneError))), " ")
	if text == "" {
		return ""
	}
	return "; it said: " + strings.ToValidUTF8(text[max(0, len(text)-maxSaid):], "")
}
