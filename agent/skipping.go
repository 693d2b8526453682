package agent

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
	"hwsagent/internal/watchdog"
	"hwsagent/wal"
)

// skipLine is one line of the agent's answer to a skip: the progress of the search once a second, and in the last line
// the change or the refusal.
type skipLine struct {
	Read    int64         `json:"read"` // bytes of the log
	Of      int64         `json:"of"`
	Change  *TargetChange `json:"change,omitempty"`
	Refused *refused      `json:"refused,omitempty"`
}

// tellProgress is the interval between lines of progress in the answer to a skip.
const tellProgress = time.Second

// Skip gives up the target's pending samples that are older than before. It stops at the first commit with a sample
// that is not older. It reads the log up to there; if ctx ends first, nothing changes.
func (m TargetManager) Skip(ctx context.Context, target string, before time.Time, dryRun bool) (TargetChange, error) {
	r := request{action: ActionSkip, target: target, before: before, dryRun: dryRun}
	c, err := m.askSkip(ctx, r)
	if errors.Is(err, ErrNotRunning) {
		return m.doOffline(ctx, r)
	}
	return c, err
}

// progress reports the progress of a search.
func (m TargetManager) progress(read, of int64) {
	if m.Progress != nil {
		m.Progress(read, of)
	}
}

// askSkip asks the agent for a skip and reads its answer line by line. If no line comes for five seconds, the error is
// control.ErrSilent.
func (m TargetManager) askSkip(ctx context.Context, r request) (TargetChange, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(control.SilentAfter, func() { cancel(control.ErrSilent) })
	defer silent.Stop()
	code, body, err := control.Stream(ctx, m.Storage, r.path())
	if err != nil {
		return TargetChange{}, skipFailed(ctx, err)
	}
	defer body.Close()
	lines := json.NewDecoder(body)
	if code != http.StatusOK {
		var no refused
		if err := lines.Decode(&no); err != nil || no.Error == "" {
			return TargetChange{}, fmt.Errorf("ask the agent: it answered %d without a reason", code)
		}
		return TargetChange{}, no.err()
	}
	for {
		var line skipLine
		if err := lines.Decode(&line); err != nil {
			return TargetChange{}, skipFailed(ctx, fmt.Errorf("read the agent's answer: %w", err))
		}
		silent.Reset(control.SilentAfter)
		switch {
		case line.Refused != nil:
			return TargetChange{}, line.Refused.err()
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

// answerSkip serves POST /control/skip with lines of JSON. The search of the log ends when the client goes away or the agent stops.
func (a *Agent) answerSkip(w http.ResponseWriter, h *http.Request) {
	r, err := parseRequest(h)
	if err != nil {
		answer(w, nil, err)
		return
	}
	r.action = ActionSkip
	ctx, cancel := context.WithCancelCause(h.Context())
	defer cancel(nil)
	found := make(chan struct{})
	var far progress
	var guard *panics.Guard // turns a panic into the error of this command
	var c TargetChange
	go func() {
		defer close(found)
		err = guard.Do(func() error { return a.skip(ctx, &c, r, &far) })
	}()
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, enc := http.NewResponseController(w), json.NewEncoder(w)
	tick := time.NewTicker(tellProgress)
	defer tick.Stop()
	quit := a.changes.quit
	for {
		var line skipLine
		select {
		case <-quit:
			quit = nil
			cancel(errStopping)
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

// skip searches the log while the agent continues to collect and send. A change of the agent then gives up the samples
// found; c becomes the record of the change.
func (a *Agent) skip(ctx context.Context, c *TargetChange, r request, far *progress) (err error) {
	watchdog.Do(ctx, "the command "+ActionSkip, func(ctx context.Context) {
		q := queues{a.log, a.o.StoragePath}
		*c = r.changed(true)
		var end wal.Mark
		end, err = q.lookBefore(ctx, c, r.before, far.set)
		switch {
		case ctx.Err() != nil:
			err = fmt.Errorf("nothing is skipped: %w", context.Cause(ctx))
		case err == nil && !r.dryRun:
			*c, err = a.manageUpTo(q, *c, r, end)
		}
	})
	return err
}

// lastLine returns the last line of the answer to a skip.
func lastLine(c TargetChange, err error) skipLine {
	if err != nil {
		no := refusal(err)
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
