package probes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// grace is how long a probe may take to return after its deadline, so that what it
// has read by then is kept. After that the round counts as hung.
const grace = 100 * time.Millisecond

// maxEnded bounds how many stale markers wait while the log takes nothing.
const maxEnded = 10_000

// errHung is the error of a round whose probe did not return by its deadline.
var errHung = errors.New("still running after its timeout; its next rounds are skipped until it returns")

// filterer is what a way to the log has that counts what relabelling removes.
type filterer interface{ Filtered(n int) }

// errRelabelled says what became of samples that the configuration does not want.
var errRelabelled = errors.New("some samples of the round were dropped by relabelling")

// loop runs one probe. Only run's goroutine touches tracker, round and stamped.
type loop struct {
	spec    Spec
	out     storage.AppendableV2
	log     *slog.Logger
	tracker *tracker
	round   uint64     // number of the last round, from 1
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
	l := &loop{
		spec: s, out: out, log: logger, rounds: rounds,
		tracker: newTracker(s.sampleLabels(), s.Relabel),
		done:    make(chan struct{}),
		status:  Status{Name: s.Name, Type: s.Type, Interval: s.Interval, State: "waiting", Instance: s.Labels.Get(model.InstanceLabel)},
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
		l.runRound(ctx)
		next = next.Add(l.spec.Interval)
		if late := time.Since(next); late >= 0 {
			missed := uint64(late/l.spec.Interval) + 1
			next = next.Add(time.Duration(missed) * l.spec.Interval)
			l.skipped(missed)
		}
		timer.Reset(time.Until(next))
	}
}

// runRound collects once and commits what came of it.
func (l *loop) runRound(ctx context.Context) {
	start := time.Now()
	l.set(func(s *Status) { s.State, s.LastRun = "running", start })
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
		err := l.collect(cctx, round)
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
	r.reset(l.spec.MaxSamples)
	return r
}

// reuse gives a round back. One whose probe panicked or failed is let go: who knows what
// still writes to it.
func (l *loop) reuse(res result) {
	if res.err == nil || errors.Is(res.err, ErrPartial) {
		l.rounds.Put(res.round)
	}
}

// collect calls the probe and turns a panic into an error.
func (l *loop) collect(ctx context.Context, round *Round) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("The probe panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return l.spec.Probe.Collect(ctx, round)
}

// finish appends a round, its report and its stale markers, and commits them as one.
func (l *loop) finish(ctx context.Context, start time.Time, res result) {
	if ctx.Err() != nil && res.err != nil {
		return // the shutdown interrupted it; that says nothing about the probe
	}
	if n := res.round.Over(); n > 0 {
		res = result{round: NewRound(0), took: res.took, err: fmt.Errorf("read %d samples, more than the limit of %d; none is kept", l.spec.MaxSamples+n, l.spec.MaxSamples)}
	}
	l.round++
	t := stamp(start, l.stamped)
	l.stamped = t
	app := l.out.AppenderV2(ctx)
	appended, refused, firstErr := l.appendRound(app, t, res.round)
	fate := roundFate(res, appended, firstErr)
	ended := l.ended
	l.tracker.gone(l.round, func(tr *tracked) { ended = append(ended, tr) })
	ended = slices.DeleteFunc(ended, func(tr *tracked) bool { return l.tracker.seen[tr.hash] == l.round })
	for _, tr := range ended {
		// A stale marker that the log refuses as out of order is not needed: the series
		// has newer data.
		_, err := app.Append(tr.ref, tr.labels, 0, t, math.Float64frombits(value.StaleNaN), nil, nil, storage.AOptions{RejectOutOfOrder: true})
		if err != nil && firstErr == nil && !errors.Is(err, storage.ErrOutOfOrderSample) {
			firstErr = err
		}
	}
	up := 1.0
	if res.err != nil && !errors.Is(res.err, ErrPartial) {
		up = 0
	}
	for _, rep := range []struct {
		*tracked
		v float64
	}{{l.up, up}, {l.took, res.took.Seconds()}} {
		if ref, err := app.Append(rep.ref, rep.labels, 0, t, rep.v, nil, nil, storage.AOptions{Metadata: metadata.Metadata{Type: model.MetricTypeGauge}}); err == nil {
			rep.ref = ref
		} else if firstErr == nil {
			firstErr = err
		}
	}
	err := app.Commit()
	l.ended = nil
	if err != nil {
		refused += appended
		appended = 0
		l.ended = ended[:min(len(ended), maxEnded)]
	}
	if c, ok := l.spec.Probe.(Committer); ok && l.hung == nil && !l.once {
		c.Committed(errors.Join(fate, err))
	}
	l.report(res, appended, refused, errors.Join(firstErr, err))
}

// roundFate is why not every sample of a round is in its commit, nil if each is.
func roundFate(res result, appended int, refusal error) error {
	switch {
	case res.err != nil:
		return res.err // who knows what is missing
	case refusal != nil:
		return refusal
	case appended < len(res.round.Samples()):
		return errRelabelled
	}
	return nil
}

// stamp is the timestamp of a round that began at start, in milliseconds. It is never
// that of the round before, which a step of the wall clock back by one interval would
// make it, a leap second for one: the log would refuse every sample.
func stamp(start time.Time, before int64) int64 {
	if t := start.UnixMilli(); t != before {
		return t
	}
	return before + 1
}

// appendRound appends the samples of a round. One bad sample costs itself only; the
// first error of them is returned.
func (l *loop) appendRound(app storage.AppenderV2, now int64, round *Round) (appended, refused int, firstErr error) {
	samples, filtered := round.Samples(), 0
	for i := range samples {
		s := &samples[i]
		tr := l.tracker.find(s)
		fail := tr.err
		if fail == nil && tr.labels.IsEmpty() {
			l.tracker.mark(tr, l.round)
			filtered++
			continue
		}
		if fail == nil && !l.tracker.first(tr, l.round) {
			fail = fmt.Errorf("%s comes twice in one round", tr.labels)
		}
		if fail == nil {
			t := s.T
			if t == 0 {
				t = now
			}
			tr.timed = s.T != 0
			var ref storage.SeriesRef
			ref, fail = app.Append(tr.ref, tr.labels, s.ST, t, s.Value, s.H, s.FH, storage.AOptions{
				MetricFamilyName: s.Family.Name,
				Metadata:         metadata.Metadata{Type: s.Family.Type, Unit: s.Family.Unit, Help: s.Family.Help},
				Exemplars:        s.Exemplars,
			})
			if fail != nil && errors.Is(fail, &storage.AppendPartialError{}) {
				fail = nil // the sample is in; only an exemplar is not
			}
			if fail == nil {
				tr.ref = ref
			}
		}
		l.tracker.mark(tr, l.round)
		if fail != nil {
			refused++
			if firstErr == nil {
				firstErr = fail
			}
			continue
		}
		appended++
	}
	if f, ok := app.(filterer); ok {
		f.Filtered(filtered)
	}
	return appended, refused, firstErr
}

// stop ends the loop and waits for it; a round that hangs is left behind, and the probe closed
// when it returns.
func (l *loop) stop() {
	if l.cancel == nil {
		return // never started
	}
	l.cancel()
	<-l.done
	if l.hung == nil {
		closeProbe(l.log, l.spec.Name, l.spec.Probe)
		return
	}
	go func() {
		<-l.hung
		closeProbe(l.log, l.spec.Name, l.spec.Probe)
	}()
}

// end marks every series of a stopped loop as stale: nobody reads them any more.
func (l *loop) end() {
	t := time.Now().UnixMilli()
	app := l.out.AppenderV2(context.Background())
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
	if err := app.Commit(); err != nil {
		l.log.Warn("Cannot mark the series of the removed probe stale", "err", err)
	}
}
