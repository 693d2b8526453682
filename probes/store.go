package probes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// stored is the outcome of storing a round.
type stored struct {
	appended, refused int
	fate              error // error for the [Committer]
	refusal           error // the first refusal, or why the commit failed
}

// store appends a round, its report and its stale markers, and commits them as one. It returns an error only after a
// panic; then nothing was committed.
func (l *loop) store(ctx context.Context, start time.Time, res result) (done stored, err error) {
	var app storage.AppenderV2
	err = l.guard.Do(func() error {
		app = l.out.AppenderV2(ctx)
		done = l.commit(app, stamp(start, l.stamped), res)
		return nil
	})
	if err != nil && app != nil {
		err = errors.Join(err, l.guard.Do(app.Rollback))
	}
	if err != nil {
		done = stored{refused: len(res.round.Samples()), fate: err}
	}
	return done, err
}

// commit is store with the appender and the timestamp of the round.
func (l *loop) commit(app storage.AppenderV2, t int64, res result) stored {
	defer l.tracker.endRound()
	l.round++
	l.stamped = t
	appended, refused, firstErr := l.appendRound(app, t, res.round)
	fate := roundFate(res, appended, firstErr)
	firstErr = l.appendReport(app, t, res, firstErr)
	l.ended = slices.DeleteFunc(l.tracker.gone(l.round, l.ended), func(ref storage.SeriesRef) bool { return ref == l.up.ref || ref == l.took.ref })
	firstErr = cmp.Or(firstErr, l.markEnded(app, t))
	err := app.Commit()
	if err != nil {
		refused += appended
		appended = 0
		l.ended = l.ended[:min(len(l.ended), maxEnded)]
	} else {
		l.ended = nil
	}
	return stored{appended: appended, refused: refused, fate: errors.Join(fate, err), refusal: errors.Join(firstErr, err)}
}

// markEnded appends stale markers, and returns the first error.
func (l *loop) markEnded(app storage.AppenderV2, t int64) (firstErr error) {
	for _, ref := range l.ended {
		_, err := app.Append(ref, labels.EmptyLabels(), 0, t, math.Float64frombits(value.StaleNaN), nil, nil, storage.AOptions{RejectOutOfOrder: true})
		switch {
		case errors.Is(err, storage.ErrOutOfOrderSample), errors.Is(err, storage.ErrDuplicateSampleForTimestamp): // the series has newer data
		case errors.Is(err, storage.ErrNotFound): // the log has forgotten the series, so it has ended
		default:
			firstErr = cmp.Or(firstErr, err)
		}
	}
	return firstErr
}

// appendReport appends up and scrape_duration_seconds. It returns firstErr, or else its own first error.
func (l *loop) appendReport(app storage.AppenderV2, t int64, res result, firstErr error) error {
	up := 1.0
	if res.err != nil && !errors.Is(res.err, ErrPartial) {
		up = 0
	}
	for _, rep := range []struct {
		*report
		v float64
	}{{&l.up, up}, {&l.took, res.took.Seconds()}} {
		if ref, err := app.Append(rep.ref, rep.labels, 0, t, rep.v, nil, nil, storage.AOptions{Metadata: metadata.Metadata{Type: model.MetricTypeGauge}}); err == nil {
			rep.ref = ref
		} else if firstErr == nil {
			firstErr = err
		}
	}
	return firstErr
}

// roundFate returns why samples of a round are missing in its commit, nil if all are there.
func roundFate(res result, appended int, refusal error) error {
	switch {
	case res.err != nil:
		return res.err // unknown samples are missing
	case refusal != nil:
		return refusal
	case appended < len(res.round.Samples()):
		return errRelabelled
	}
	return nil
}

// stamp returns the timestamp of a round that began at start, in milliseconds. It never repeats the timestamp of the
// previous round, as could happen when the wall clock steps back by one interval, for example by a leap second: the log
// would refuse every sample.
func stamp(start time.Time, before int64) int64 {
	if t := start.UnixMilli(); t != before {
		return t
	}
	return before + 1
}

// moments are the samples of a round in which samples have times of their own, nil for one in which none has: then a
// series has one sample. With different times a series may have several, such as the history of a slower device.
type moments map[moment]struct{}

type moment struct {
	ref storage.SeriesRef
	t   int64 // milliseconds
}

func momentsOf(samples []Sample) moments {
	if !slices.ContainsFunc(samples, func(s Sample) bool { return s.T != 0 }) {
		return nil
	}
	return make(moments, len(samples))
}

// append appends a sample of a series. final may be empty if the log knows the series.
func (l *loop) append(app storage.AppenderV2, ref storage.SeriesRef, final labels.Labels, s *Sample, t int64) (storage.SeriesRef, error) {
	o := storage.AOptions{
		MetricFamilyName: s.Family.Name,
		Metadata:         metadata.Metadata{Type: s.Family.Type, Unit: s.Family.Unit, Help: s.Family.Help},
		Exemplars:        s.Exemplars,
	}
	got, err := app.Append(ref, final, s.ST, t, s.Value, s.H, s.FH, o)
	if final.IsEmpty() && errors.Is(err, storage.ErrNotFound) {
		if final, err = l.tracker.resolve(s); err == nil {
			got, err = app.Append(ref, final, s.ST, t, s.Value, s.H, s.FH, o)
		}
	}
	switch {
	case err == nil, errors.Is(err, &storage.AppendPartialError{}): // the sample was appended; perhaps an exemplar was not
		return got, nil
	case errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		final, _ = l.tracker.resolve(s)
		return got, fmt.Errorf("%s: %w", final, err)
	}
	return got, err
}

// appendRound appends the samples of a round. A bad sample only loses itself; the first error is returned.
func (l *loop) appendRound(app storage.AppenderV2, now int64, round *Round) (appended, refused int, firstErr error) {
	samples, filtered := round.Samples(), 0
	seen := momentsOf(samples)
	for i := range samples {
		s := &samples[i]
		if l.spec.Translate != nil {
			l.spec.Translate(s)
		}
		tr, final := l.tracker.find(s)
		if tr.is(dropped) {
			l.tracker.mark(tr, l.round)
			filtered++
			continue
		}
		t := cmp.Or(s.T, now)
		twice := tr.round == l.round
		if seen != nil {
			_, twice = seen[moment{tr.ref, t}]
		}
		fail := l.tracker.fault(tr)
		if fail == nil && twice {
			final, _ = l.tracker.resolve(s)
			fail = fmt.Errorf("%s appears twice in one round", final)
		}
		if fail == nil {
			tr.set(timed, s.T != 0)
			var ref storage.SeriesRef
			ref, fail = l.append(app, tr.ref, final, s, t)
			if fail == nil && ref == 0 {
				// The probe has reached its limit of series, and the input counts the sample: it is not in the log.
				if tr.round == 0 {
					l.tracker.forget(tr) // refused series must not take memory either
				}
				continue
			}
			if fail == nil {
				tr.ref = ref
				if seen != nil {
					seen[moment{ref, t}] = struct{}{}
				}
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
