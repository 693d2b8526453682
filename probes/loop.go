package probes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/panics"
	"hwsagent/internal/spare"
	"hwsagent/internal/watchdog"
)

// grace is how long a probe may take to return after its deadline, so that the samples it has read by then are kept.
// After that the round counts as hung.
const grace = 100 * time.Millisecond

// maxEnded bounds how many stale markers wait while the log accepts nothing.
const maxEnded = 10_000

// errHung is the error of a round whose probe did not return by its deadline.
var errHung = errors.New("still running after its timeout; its next rounds are skipped until it returns")

// filterer is implemented by appenders that count samples dropped by relabelling.
type filterer interface{ Filtered(n int) }

// errRelabelled means that the configuration dropped samples.
var errRelabelled = errors.New("some samples of the round were dropped by relabelling, or refused because of max_series")

// loop runs one probe. Only run's goroutine touches tracker, round and stamped.
type loop struct {
	spec    Spec
	out     storage.AppendableV2
	log     *slog.Logger
	guard   *panics.Guard
	tracker *tracker
	round   uint32 // number of the last round, from 1; one a second for 136 years
	stamped int64  // its timestamp, milliseconds
	rounds  *spare.Stack[Round]
	once    bool // a single round for people: out is not the log, and Committed is not called

	up, took report // the series in every round

	// ended holds the series whose stale markers are not in the log yet, because commits failed or the loop has had no round.
	ended []storage.SeriesRef

	hung <-chan result // result of a round that outlived its deadline; nil if none

	cancel context.CancelFunc // nil before the loop is started and after it is stopped
	done   chan struct{}      // closed when run has returned

	mu     sync.Mutex
	status Status
}

// report is a series in which the runner reports about the probe. It carries the target's labels and is not relabelled, like a
// scrape's report.
type report struct {
	ref    storage.SeriesRef // 0 if no round had it
	labels labels.Labels
}

// result is the outcome of a Collect.
type result struct {
	round *Round
	err   error
	took  time.Duration
}

func newLoop(s Spec, out storage.AppendableV2, logger *slog.Logger, rounds *spare.Stack[Round]) *loop {
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
	l.up = l.reportSeries("up")
	l.took = l.reportSeries("scrape_duration_seconds")
	return l
}

// reportSeries returns the report of that name.
func (l *loop) reportSeries(name string) report {
	b := labels.NewBuilder(l.spec.Labels)
	b.Set(model.MetricNameLabel, name)
	return report{labels: b.Labels()}
}

// run runs rounds until ctx ends. The interval is monotonic: a step of the wall clock neither delays nor repeats a
// round. A tick during the commit of a round is skipped and counted.
func (l *loop) run(ctx context.Context) {
	now := time.Now()
	next := now.Add(l.spec.firstRun(now).Sub(now))
	l.set(func(s *Status) { s.FirstRun = next })
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

// attempt runs a round, and keeps the loop going if the runner's own code panics.
func (l *loop) attempt(ctx context.Context) {
	if err := l.guard.Run(func() { l.runRound(ctx) }); err != nil {
		l.report(result{round: NewRound(0), err: err}, 0, 0, nil)
	}
}

// runRound collects once and commits the outcome.
func (l *loop) runRound(ctx context.Context) {
	start := time.Now()
	l.set(func(s *Status) {
		s.LastRun = start
		if s.State == waiting { // otherwise the last outcome stands until the next one
			s.State = "running"
		}
	})
	if l.hung != nil {
		select {
		case <-l.hung: // it returned; its samples are too old to be used
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

// newRound takes a round from the pool: that of a large probe takes a megabyte.
func (l *loop) newRound() *Round {
	r := l.rounds.Take()
	if r == nil {
		r = &Round{}
	}
	r.Reset(l.spec.MaxSamples)
	r.Source = l.spec.Type
	return r
}

// reuse returns a round to the pool, unless its probe panicked or failed: such a probe may still write to it.
func (l *loop) reuse(res result) {
	if res.err == nil || errors.Is(res.err, ErrPartial) {
		l.rounds.Put(res.round)
	}
}

// finish appends and commits a round, and reports its outcome. If appending or committing panics, it discards the
// samples and commits a failed round instead.
func (l *loop) finish(ctx context.Context, start time.Time, res result) {
	if ctx.Err() != nil && res.err != nil {
		return // the shutdown interrupted the round, which says nothing about the probe
	}
	if n := res.round.Over(); n > 0 {
		res = result{round: NewRound(0), took: res.took, err: fmt.Errorf("read %d samples, more than the limit of %d; all are dropped", l.spec.MaxSamples+n, l.spec.MaxSamples)}
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

// part returns the probe's name in the list of the program's parts.
func (l *loop) part() string { return fmt.Sprintf("probe %q", l.spec.Name) }

// stop ends the loop and waits for it; it leaves a hanging round behind, and closes the probe when that returns. It does
// nothing if the loop never began or is stopped already: a reload may end after the runner.
func (l *loop) stop() {
	if l.cancel == nil {
		return
	}
	l.cancel()
	l.cancel = nil
	<-l.done
	if l.hung == nil {
		watchdog.Do(context.Background(), l.part(), func(context.Context) { l.closeProbe() })
		return
	}
	go func() {
		<-l.hung
		_ = l.guard.Run(l.closeProbe) // the guard reports a panic
	}()
}

// closeProbe closes the probe, if it is a Closer.
func (l *loop) closeProbe() { closeProbe(l.log, l.guard, l.spec.Name, l.spec.Probe) }

// adopt takes over the series of a stopped loop that this one replaces. That one may not have had a round since it took
// over series itself.
func (l *loop) adopt(old *loop) {
	l.tracker.adopt(old.tracker)
	l.ended = append(old.ended, old.up.ref, old.took.ref) // unless the next round has them
}

// end marks every series of a stopped loop as stale, because they get no more samples.
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
		l.log.Warn("Cannot mark the series of a removed probe stale", "err", err)
	}
}

// markAll marks every series stale and commits the markers.
func (l *loop) markAll(app storage.AppenderV2) error {
	l.ended = l.tracker.gone(l.round+1, append(l.ended, l.up.ref, l.took.ref))
	return errors.Join(l.markEnded(app, time.Now().UnixMilli()), app.Commit())
}
