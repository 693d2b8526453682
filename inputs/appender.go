package inputs

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

var _ storage.AppendableV2 = (*Input)(nil)

// AppenderV2 begins a batch. Its Append, Commit and Rollback are the log's, but for
// samples that the limit passes over: Append answers those with reference 0 and no error,
// see [Skipper].
//
// A reference that Append returned stands for the labels that it was called with, which
// must come along all the same.
func (in *Input) AppenderV2(ctx context.Context) storage.AppenderV2 {
	taken, ok := in.path.samples.Get().(*[]sample)
	if !ok {
		taken = new([]sample)
	}
	return &appender{in: in, out: in.path.log.AppenderV2(ctx), taken: taken}
}

// Skipper is what the appenders of an [Input] implement besides, for callers that tell a
// sender how much they took.
type Skipper interface {
	// Skipped is how many samples of the batch were passed over so far.
	Skipped() int
}

// Filterer is what the appenders of an [Input] implement besides, for inputs with rules: each
// relabels by itself, once for a series, and says here what that removes.
type Filterer interface {
	// Filtered counts n samples of the batch that the input's rules removed, if it is
	// committed.
	Filtered(n int)
}

// appender is one open batch.
type appender struct {
	in       *Input
	out      storage.AppenderV2
	taken    *[]sample // by the log, in order; nil after the end
	added    []*series // that this batch met first
	skipped  int
	filtered uint64
}

// sample is one that the log took, if it is committed.
type sample struct {
	s      *series
	t      int64
	v      float64
	native *native
}

// Append implements [storage.AppenderV2].
func (a *appender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options) (storage.SeriesRef, error) {
	s, known := a.series(ref, ls, &o)
	if s == nil {
		a.skipped++
		return 0, nil
	}
	taken, err := a.out.Append(known, s.labels, st, t, v, h, fh, o)
	if a.taken == nil {
		return taken, err // the batch has ended, as err says
	}
	if err == nil || errors.Is(err, &storage.AppendPartialError{}) { // that is about an exemplar
		one := sample{s: s, t: t, v: v}
		if h != nil || fh != nil {
			one.native = &native{h, fh}
		}
		*a.taken = append(*a.taken, one)
	}
	if taken != 0 && taken != known {
		a.in.path.refer(s, known, taken)
	}
	return taken, err
}

// series is the series of a sample, and the reference by which the log knows it. It is nil if
// it would be one more than the limit.
func (a *appender) series(ref storage.SeriesRef, ls labels.Labels, o *storage.AppendV2Options) (s *series, known storage.SeriesRef) {
	p := a.in.path
	p.mu.Lock()
	defer p.mu.Unlock()
	s = p.byRef.Get(uint64(ref))
	if s == nil {
		var hash uint64
		ls, hash = p.hash(ls)
		s = p.find(hash, ls)
	}
	if s = a.admit(s, ls); s == nil {
		return nil, 0
	}
	if about := s.about; (about.family != o.MetricFamilyName || about.meta != o.Metadata) && (o.MetricFamilyName != "" || !o.Metadata.IsEmpty()) {
		s.about = p.describe(description{family: o.MetricFamilyName, meta: o.Metadata})
	}
	return s, s.ref
}

// AppendExemplar adds an exemplar whose sample came before, where the log takes such: it
// belongs to no input, and counts as no sample.
func (a *appender) AppendExemplar(ref storage.SeriesRef, ls labels.Labels, e exemplar.Exemplar) (storage.SeriesRef, error) {
	out, ok := a.out.(storage.ExemplarAppender)
	if !ok {
		return 0, errNoExemplars
	}
	return out.AppendExemplar(ref, ls, e)
}

// errNoExemplars is for logs that do not take exemplars by themselves.
var errNoExemplars = errors.New("append exemplar: the log takes none without a sample")

// admit is the series if the input may append to it: s, where it is not nil, or a new one.
// It is nil when that would be one more than the limit. path.mu must be held.
func (a *appender) admit(s *series, ls labels.Labels) *series {
	in, p := a.in, a.in.path
	if s != nil && s.owner == in {
		return s
	}
	tick := p.tick()
	if s != nil && !s.lapsed(tick) {
		return s // of another input, to which it counts
	}
	if limit := in.settings.MaxSeries; limit > 0 && in.live >= limit && !report(ls.Get(model.MetricNameLabel)) {
		in.refuse(s, ls)
		return nil
	}
	if s == nil {
		s = p.add(in, ls, tick)
		a.added = append(a.added, s)
		return s
	}
	p.part(s)
	s.owner.live--
	in.live++
	s.owner, s.seen = in, tick
	return s
}

// report reports whether a series says how a round or a scrape went. It is there in any case, and
// last: an input that is over its limit is not down.
func report(name string) bool {
	switch name {
	case "up", "scrape_duration_seconds", "scrape_samples_scraped", "scrape_samples_post_metric_relabeling", "scrape_series_added",
		"scrape_timeout_seconds", "scrape_sample_limit", "scrape_body_size_bytes":
		return true
	}
	return false
}

// refuse counts a sample of a series beyond the limit. path.mu must be held.
func (in *Input) refuse(s *series, ls labels.Labels) {
	if s != nil {
		ls = s.labels
	}
	in.refused++
	now := time.Now()
	if in.over != nil && now.Sub(in.over.last) <= lapse {
		in.over.last = now
		return
	}
	in.over = &refusal{first: now, last: now, example: ls.String()}
	in.path.logger.Warn("An input has as many series as it may: further ones are refused", "input", in.String(),
		"max_series", in.settings.MaxSeries, "series", in.over.example)
}

// Skipped implements [Skipper].
func (a *appender) Skipped() int { return a.skipped }

// Filtered implements [Filterer].
func (a *appender) Filtered(n int) { a.filtered += uint64(n) } // #nosec G115 -- a count

// Commit implements [storage.AppenderV2]. What the log has acknowledged stays acknowledged
// when the bookkeeping about it panics.
func (a *appender) Commit() error {
	if err := a.out.Commit(); err != nil {
		a.end(false)
		return err
	}
	if o := a.in.path.observer; o != nil && a.taken != nil && o.Active() {
		// Under a guard of its own, so that a panic of the observer does not keep the batch from its end.
		_ = a.in.guard.Run(func() { o.Taken(a.in.kind, a.in.name, a.shown) }) // the guard logs it
	}
	_ = a.in.guard.Run(func() { a.end(true) }) // likewise
	return nil
}

// shown are the samples of the batch for an observer.
func (a *appender) shown(yield func(Shown) bool) {
	for _, one := range *a.taken {
		s := Shown{Labels: one.s.labels, T: one.t, V: one.v}
		if one.native != nil {
			s.H, s.FH = one.native.h, one.native.fh
		}
		if !yield(s) {
			return
		}
	}
}

// Rollback implements [storage.AppenderV2].
func (a *appender) Rollback() error {
	err := a.out.Rollback()
	a.end(false)
	return err
}

// end notes what came of the batch.
func (a *appender) end(committed bool) {
	if a.taken == nil {
		return // it has ended before
	}
	p, taken := a.in.path, *a.taken
	p.mu.Lock()
	defer p.mu.Unlock()
	tick := p.tick()
	if committed {
		a.in.filtered += a.filtered
		for i := range taken {
			p.took(a.in, &taken[i], tick)
		}
	}
	for _, s := range a.added {
		if !s.committed {
			p.forget(s)
		}
	}
	clear(taken)
	*a.taken = taken[:0]
	p.samples.Put(a.taken)
	a.taken, a.added = nil, nil
	p.sweep(tick)
}

// took notes a sample that is in the log. p.mu must be held.
func (p *Path) took(in *Input, one *sample, tick uint32) {
	s := one.s
	if s.gone { // another batch ended it; the next sample finds it anew
		return
	}
	stale := one.native == nil && value.IsStaleNaN(one.v)
	switch {
	case s.owner == in && stale:
		s.committed = true
		p.forget(s)
		return
	case s.owner == in:
		s.seen = tick
	case stale:
		if p.rivals[s].input == in {
			p.part(s)
		}
	case s.committed:
		p.meet(s, in, tick)
	}
	if one.t >= s.t || !s.committed {
		s.t, s.v, s.native = one.t, one.v, one.native
	}
	s.committed = true
}
