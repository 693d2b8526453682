package queues

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"hwsagent/agent/control"
	"hwsagent/internal/panics"
)

// skipLine is one line of the agent's answer to a skip: the progress of the search once a second, and in the last line
// the change or the refusal.
type skipLine struct {
	Read    int64            `json:"read"` // bytes of the log
	Of      int64            `json:"of"`
	Change  *Change          `json:"change,omitempty"`
	Refused *control.Refusal `json:"refused,omitempty"`
}

// tellProgress is the interval between lines of progress in the answer to a skip.
const tellProgress = time.Second

// slowReader bounds how long a client may block a write.
const slowReader = 10 * time.Second

// Skip gives up the target's pending samples that are older than before. It stops at the first commit with a sample
// that is not older. It reads the log up to there; if ctx ends first, nothing changes.
func (m Manager) Skip(ctx context.Context, target string, before time.Time, dryRun bool) (Change, error) {
	r := Request{Action: ActionSkip, Target: target, Before: before, DryRun: dryRun}
	c, err := m.askSkip(ctx, r)
	if errors.Is(err, control.ErrNotRunning) {
		return m.doOffline(ctx, r)
	}
	return c, err
}

// progress reports the progress of a search.
func (m Manager) progress(read, of int64) {
	if m.Progress != nil {
		m.Progress(read, of)
	}
}

// askSkip asks the agent for a skip and reads its answer line by line. If no line comes for five seconds, the error is
// control.ErrSilent.
func (m Manager) askSkip(ctx context.Context, r Request) (Change, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(control.SilentAfter, func() { cancel(control.ErrSilent) })
	defer silent.Stop()
	code, body, err := control.Stream(ctx, m.Storage, r.Path())
	if err != nil {
		return Change{}, skipFailed(ctx, err)
	}
	defer body.Close()
	lines := json.NewDecoder(body)
	if code != http.StatusOK {
		var no control.Refusal
		if err := lines.Decode(&no); err != nil || no.Error == "" {
			return Change{}, fmt.Errorf("ask the agent: it answered %d without a reason", code)
		}
		return Change{}, no.Err()
	}
	for {
		var line skipLine
		if err := lines.Decode(&line); err != nil {
			return Change{}, skipFailed(ctx, fmt.Errorf("read the agent's answer: %w", err))
		}
		silent.Reset(control.SilentAfter)
		switch {
		case line.Refused != nil:
			return Change{}, line.Refused.Err()
		case line.Change != nil:
			return *line.Change, nil
		}
		m.progress(line.Read, line.Of)
	}
}

// skipFailed returns the reason for a missing answer: the agent's silence, if that canceled the request, else err.
func skipFailed(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), control.ErrSilent) {
		return control.ErrSilent
	}
	return err
}

// ServeSkip answers a request for a skip with lines of JSON. skip searches the log and then changes the queue; its ctx
// ends when the client goes away, or quit is closed because the agent stops.
func ServeSkip(w http.ResponseWriter, h *http.Request, quit <-chan struct{}, skip func(ctx context.Context, r Request, progress func(read, of int64)) (Change, error)) {
	r, err := ParseRequest(h)
	if err != nil {
		control.Reply(w, nil, err)
		return
	}
	r.Action = ActionSkip
	ctx, cancel := context.WithCancelCause(h.Context())
	defer cancel(nil)
	found := make(chan struct{})
	var far progress
	var guard *panics.Guard // turns a panic into the error of this command
	var c Change
	go func() {
		defer close(found)
		err = guard.Do(func() (err error) {
			c, err = skip(ctx, r, far.set)
			return err
		})
	}()
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, enc := http.NewResponseController(w), json.NewEncoder(w)
	tick := time.NewTicker(tellProgress)
	defer tick.Stop()
	for {
		var line skipLine
		select {
		case <-quit:
			quit = nil
			cancel(control.ErrStopping)
			continue
		case <-tick.C:
			line = far.line()
		case <-found:
			line = lastLine(c, err)
		}
		gone := errors.Join(out.SetWriteDeadline(time.Now().Add(slowReader)), enc.Encode(line), out.Flush())
		if gone != nil && ctx.Err() == nil {
			cancel(fmt.Errorf("send the progress of the skip: %w", gone))
		}
		if line.Change != nil || line.Refused != nil {
			return
		}
	}
}

// lastLine returns the last line of the answer to a skip.
func lastLine(c Change, err error) skipLine {
	if err != nil {
		no := control.Refuse(err)
		return skipLine{Refused: &no}
	}
	return skipLine{Change: &c}
}

// progress is the progress of a search. Safe for concurrent use.
type progress struct {
	mu       sync.Mutex
	read, of int64
}

func (p *progress) set(read, of int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read, p.of = read, of
}

func (p *progress) line() skipLine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return skipLine{Read: p.read, Of: p.of}
}
