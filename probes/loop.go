package probes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/inputs/panics"
	"hwsagent/watchdog"
)

// grace is how long a probe may take to return after its deadline, so that what it
// has read by then is kept. After that the round counts as hung.
const grace = 100 * time.Millisecond

// maxEnded bounds how many stale markers wait while the log takes nothing.
const maxEnded = 10_000

// errHung is the error of a round whose probe did not return by its deadline.
var errHung = errors.New("still running after its timeout; its next rounds are skipped until it returns")

// sharer is what a way to the log has that knows which labels are in memory already.
type sharer interface {
	Share(ls labels.Labels) labels.Labels
}

// filterer is what a way to the log has that counts what relabelling removes.
type filterer interface{ Filtered(n int) }

// errRelabelled says what became of samples that the configuration does not want.
var errRelabelled = errors.New("some samples of the round were dropped by relabelling")

// loop runs one probe. Only run's goroutine touches tracker, round and stamped.
type loop struct {
	spec    Spec
	out     storage.AppendableV2
	log     *slog.Logger
	guard   *panics.Guard
	tracker *tracker
	round   uint32     // number of the last round, from 1; one a second for 136 years
	stamped int64      // its timestamp, milliseconds
	rounds  *sync.Pool // of *Round
	once    bool       // for people to look at: out is no log, and the probe is told nothing

	up, took *tracked // the series that every round has

	// ended are the series whose stale markers the log has not taken yet: the commits
	// failed.
	ended []*tracked

	hung <-chan result // of a round that outlived its deadline; nil if none

	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned

	mu     sync.Mutex
	status Status
}

// result is what a Collect came to.
type result struct {
	round *Round
	err   error
	took  time.Duration
}

func newLoop(s Spec, out storage.AppendableV2, logger *slog.Logger, rounds *sync.Pool) *loop {
	if s.Out != nil {
		out = s.Out
	}
	guard := s.Guard
	if guard == nil {
		guard = panics.New("probe "+s.Name, logger)
	}
	l := &loop{
		spec: s, out: out, log: logger, guard: guard, rounds: rounds,
		tracker: newTracker(s.sampleLabels(), s.Relabel),
		done:    make(chan struct{}),
		status:  Status{Name: s.Name, Type: s.Type, Interval: s.Interval, State: waiting, Instance: s.Labels.Get(model.InstanceLabel)},
	}
	if s, ok := out.(sharer); ok {
		l.tracker.share = s.Share
	}
	l.up = l.reportSeries("up")
	l.took = l.reportSeries("scrape_duration_seconds")
	return l
}

// reportSeries is a series of the runner's own about the probe. It carries the
// target's labels and is not relabelled, as a scrape's report is not.
func (l *loop) reportSeries(name string) *tracked {
	b := labels.NewBuilder(l.spec.Labels)
	b.Set(model.MetricNameLabel, name)
	return &tracked{labels: b.Labels()}
}

// run runs rounds until ctx ends. The cadence is monotonic: a step of the wall clock
// neither delays nor repeats a round. A tick that passes while a round is still being
// committed is skipped and counted.
func (l *loop) run(ctx context.Context) {
	now := time.Now()
	next := now.Add(l.spec.firstRun(now).Sub(now))
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		l.attempt(ctx)
		next = next.Add(l.spec.Interval)
		if late := time.Since(next); late >= 0 {
			missed := uint64(late/l.spec.Interval) + 1
			next = next.Add(time.Duration(missed) * l.spec.Interval)
			l.skipped(missed)
		}
		timer.Reset(time.Until(next))
	}
}

// attempt runs a round, and keeps the loop going if the round's own bookkeeping panics.
func (l *loop) attempt(ctx context.Context) {
	if err := l.guard.Run(func() { l.runRound(ctx) }); err != nil {
		l.report(result{round: NewRound(0), err: err}, 0, 0, nil)
	}
}

// runRound collects once and commits what came of it.
func (l *loop) runRound(ctx context.Context) {
	start := time.Now()
	l.set(func(s *Status) {
		s.LastRun = start
		if s.State == waiting { // else the outcome of the last round stands until there is another
			s.State = "running"
		}
	})
	if l.hung != nil {
		select {
		case <-l.hung: // it came back; what it read then is too old to be used
			l.hung = nil
		default:
			l.skipped(1)
			l.finish(ctx, start, result{round: NewRound(0), err: errHung})
			return
		}
	}
	cctx, cancel := context.WithTimeout(ctx, l.spec.Timeout)
	defer cancel()
	results := make(chan result, 1)
	round := l.newRound()
	go func() {
		err := l.guard.Do(func() error { return l.spec.Probe.Collect(cctx, round) })
		results <- result{round: round, err: err, took: time.Since(start)}
	}()
	select {
	case res := <-results:
		l.finish(ctx, start, res)
		l.reuse(res)
		return
	case <-cctx.Done():
	}
	wait := time.NewTimer(grace)
	defer wait.Stop()
	select {
	case res := <-results:
		l.finish(ctx, start, res)
		l.reuse(res)
	case <-wait.C:
		l.hung = results
		l.finish(ctx, start, result{round: NewRound(0), err: errHung, took: time.Since(start)})
	}
}

// newRound takes a round from the pool: one of a large probe takes a megabyte.
func (l *loop) newRound() *Round {
	r, ok := l.rounds.Get().(*Round)
	if !ok {
		r = &Round{}
	}
	r.Reset(l.spec.MaxSamples)
	r.Source = l.spec.Type
	return r
}

// reuse gives a round back. One whose probe panicked or failed is let go: who knows what
// still writes to it.
func (l *loop) reuse(res result) {
	if res.err == nil || errors.Is(res.err, ErrPartial) {
		l.rounds.Put(res.round)
	}
}

// finish appends and commits a round, and says how it went. Of a round whose appending or
// committing panics nothing is kept: a failed round is committed in its place.
func (l *loop) finish(ctx context.Context, start time.Time, res result) {
	if ctx.Err() != nil && res.err != nil {
		return // the shutdown interrupted it; that says nothing about the probe
	}
	if n := res.round.Over(); n > 0 {
		res = result{round: NewRound(0), took: res.took, err: fmt.Errorf("read %d samples, more than the limit of %d; none is kept", l.spec.MaxSamples+n, l.spec.MaxSamples)}
	}
	done, err := l.store(ctx, start, res)
	if panics.As(err) != nil {
		res = result{round: NewRound(0), took: res.took, err: errors.Join(res.err, err)}
		if done, err = l.store(ctx, start, res); panics.As(err) != nil {
			done.refusal = err
		}
	}
	if c, ok := l.spec.Probe.(Committer); ok && l.hung == nil && !l.once {
		if err := l.guard.Run(func() { c.Committed(done.fate) }); err != nil {
			done.refusal = errors.Join(done.refusal, err)
		}
	}
	l.report(res, done.appended, done.refused, done.refusal)
}

// part is the name of the probe among the parts of the program.
func (l *loop) part() string { return fmt.Sprintf("probe %q", l.spec.Name) }

// stop ends the loop and waits for it; a round that hangs is left behind, and the probe closed
// when it returns.
func (l *loop) stop() {
	if l.cancel == nil {
		return // never started
	}
	l.cancel()
	<-l.done
	if l.hung == nil {
		watchdog.Do(context.Background(), l.part(), func(context.Context) { l.closeProbe() })
		return
	}
	go func() {
		<-l.hung
		_ = l.guard.Run(l.closeProbe) // the guard tells people
	}()
}

// closeProbe closes the probe, if it is a Closer.
func (l *loop) closeProbe() { closeProbe(l.log, l.guard, l.spec.Name, l.spec.Probe) }

// end marks every series of a stopped loop as stale: nothing reads them any more.
func (l *loop) end() {
	var app storage.AppenderV2
	err := l.guard.Do(func() error {
		app = l.out.AppenderV2(context.Background())
		return l.markAll(app)
	})
	if panics.As(err) != nil && app != nil {
		err = errors.Join(err, l.guard.Do(app.Rollback))
	}
	if err != nil {
		l.log.Warn("Cannot mark the series of the removed probe stale", "err", err)
	}
}

// markAll marks every series stale and commits that.
func (l *loop) markAll(app storage.AppenderV2) error {
	t := time.Now().UnixMilli()
	mark := func(tr *tracked) {
		_, err := app.Append(tr.ref, tr.labels, 0, t, math.Float64frombits(value.StaleNaN), nil, nil, storage.AOptions{RejectOutOfOrder: true})
		if err != nil {
			l.log.Debug("A stale marker was refused", "series", tr.labels.String(), "err", err)
		}
	}
	if l.round > 0 {
		l.tracker.gone(l.round+1, mark)
		mark(l.up)
		mark(l.took)
	}
	return app.Commit()
}
