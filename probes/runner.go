package probes

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/panics"
	"hwsagent/internal/spare"
	"hwsagent/internal/watchdog"
)

// Runner runs probes, each in a goroutine of its own, until its context ends.
type Runner struct {
	out storage.AppendableV2
	log *slog.Logger

	mu struct {
		sync.Mutex
		ctx   context.Context // set while Run runs
		loops map[string]*loop
	}
	// shown are the loops of the latest Apply that has ended, for Status: it must not wait for an Apply or a stop, which
	// may wait for a disk or a probe that hangs.
	shown  atomic.Pointer[[]*loop]
	wg     sync.WaitGroup
	rounds spare.Stack[Round] // shared because the probes take turns
}

// NewRunner returns a runner that appends to out.
func NewRunner(out storage.AppendableV2, logger *slog.Logger) *Runner {
	r := &Runner{out: out, log: logger}
	r.mu.loops = make(map[string]*loop)
	return r
}

// Run runs the probes of the latest Apply until ctx ends, and returns when every round has been committed or given up
// and the probes are closed. It must be called once.
func (r *Runner) Run(ctx context.Context) error {
	r.mu.Lock()
	r.mu.ctx = ctx
	for _, l := range r.mu.loops {
		r.start(l)
	}
	r.mu.Unlock()

	<-ctx.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.ctx = nil
	r.wg.Wait()
	for _, l := range r.mu.loops {
		l.stop()
	}
	return nil
}

// Apply replaces the set of running probes by specs. A probe with an unchanged Identity continues undisturbed (the
// Probe in its new spec is closed unused); a changed one is replaced after its running round; the series of a removed
// one are marked stale.
func (r *Runner) Apply(specs []Spec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(specs)
	next := make(map[string]*loop, len(specs))
	order := make([]string, 0, len(specs))
	for _, s := range specs {
		order = append(order, s.Name)
		old := r.mu.loops[s.Name]
		if old != nil && old.spec.Identity == s.Identity {
			closeProbe(r.log, old.guard, s.Name, s.Probe) // never ran
			next[s.Name] = old
			continue
		}
		next[s.Name] = newLoop(s, r.out, r.log.With("probe", s.Name), &r.rounds)
		if old != nil {
			old.stop()
			next[s.Name].adopt(old)
		}
		if r.mu.ctx != nil {
			r.start(next[s.Name])
		}
	}
	r.mu.loops = next
	shown := make([]*loop, len(order))
	for i, name := range order {
		shown[i] = next[name]
	}
	r.shown.Store(&shown)
}

// remove ends the loops of probes that are not in specs. Nothing new runs before: a probe may have the series of a removed
// one, as when it was renamed, and they must not be marked stale after its first round. The caller holds the lock.
func (r *Runner) remove(specs []Spec) {
	stays := make(map[string]bool, len(specs))
	for _, s := range specs {
		stays[s.Name] = true
	}
	var gone []*loop
	for name, l := range r.mu.loops {
		if !stays[name] {
			gone = append(gone, l)
			if l.cancel != nil {
				l.cancel() // all at once, because each may take its time to end
			}
		}
	}
	for _, l := range gone {
		l.stop()
		l.end()
	}
}

// start runs l; the caller holds the lock.
func (r *Runner) start(l *loop) {
	ctx, cancel := context.WithCancel(r.mu.ctx)
	l.cancel = cancel
	r.wg.Go(func() {
		defer close(l.done)
		watchdog.Do(ctx, l.part(), func(ctx context.Context) {
			_ = l.guard.Run(func() { l.run(ctx) }) // the guard reports a panic
		})
	})
}

// FirstRound returns how long after now the first round of any probe begins if all start now; false without probes.
func (r *Runner) FirstRound(now time.Time) (wait time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.mu.loops {
		if d := l.spec.firstRun(now).Sub(now); !ok || d < wait {
			wait, ok = d, true
		}
	}
	return wait, ok
}

// Status describes the probes in the order of the latest Apply.
func (r *Runner) Status() []Status {
	var loops []*loop
	if shown := r.shown.Load(); shown != nil {
		loops = *shown
	}
	out := make([]Status, 0, len(loops))
	for _, l := range loops {
		out = append(out, l.snapshot())
	}
	return slices.Clip(out)
}

func closeProbe(log *slog.Logger, guard *panics.Guard, name string, p Probe) {
	if c, ok := p.(Closer); ok {
		if err := guard.Do(c.Close); err != nil {
			log.Warn("Cannot close the probe", "probe", name, "err", err)
		}
	}
}
