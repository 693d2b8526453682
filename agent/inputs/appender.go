package inputs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

var _ storage.AppendableV2 = (*Input)(nil)

// AppenderV2 begins a batch. Append, Commit and Rollback behave as those of the log, except
// for samples over the series limit: Append skips them and returns reference 0 without an
// error, see [Skipper].
//
// A reference that Append returned identifies the labels of that call. Later calls may pass it with these labels or
// without labels. If the log no longer knows a reference without labels, the error is [storage.ErrNotFound], and the
// caller must append the sample again with labels.
func (in *Input) AppenderV2(ctx context.Context) storage.AppenderV2 {
	taken := in.path.samples.Take()
	if taken == nil {
		taken = new([]sample)
	}
	return &appender{in: in, out: in.path.log.AppenderV2(ctx), taken: taken}
}

// Labels returns the labels of the series with a reference that Append has returned, none if the log has forgotten it.
func (in *Input) Labels(ref storage.SeriesRef) labels.Labels {
	ls, _, _, _, _, _, _ := in.path.log.Newest(ref)
	return ls
}

// Skipper is an optional interface of the appenders of an [Input], for callers that report to
// a sender how many samples they accepted.
type Skipper interface {
	// Skipped returns the number of samples of the batch skipped so far.
	Skipped() int
}

// Filterer is an optional interface of the appenders of an [Input], for inputs with relabelling
// rules. Each input applies its own rules, once per series, and reports the removed samples here.
type Filterer interface {
	// Filtered adds n to the samples that the input's rules removed. The count takes effect
	// when the batch is committed.
	Filtered(n int)
}

// appender is one open batch.
type appender struct {
	in       *Input
	out      storage.AppenderV2
	taken    *[]sample           // accepted by the log, in order; nil once the batch has ended
	added    []storage.SeriesRef // the series whose accounts this batch began
	reserved int                 // 1 between admit and begin of a new series, which counts towards the limit already
	skipped  int
	filtered uint64
}

// sample is one sample accepted by the log. It is final once the batch is committed.
type sample struct {
	ref    storage.SeriesRef
	t      int64
	v      float64
	native *native // nil for a float
}

// native is a native histogram; one of the two fields is nil.
type native struct {
	h  *histogram.Histogram
	fh *histogram.FloatHistogram
}

// Append implements [storage.AppenderV2].
func (a *appender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options) (storage.SeriesRef, error) {
	known, ls, err := a.admit(ref, ls)
	switch {
	case errors.Is(err, errOverLimit):
		a.skipped++
		return 0, nil
	case err != nil:
		return 0, err
	}
	taken, err := a.out.Append(known, ls, st, t, v, h, fh, o)
	took := err == nil || errors.Is(err, &storage.AppendPartialError{}) // a partial error concerns an exemplar
	switch {
	case a.reserved > 0:
		a.begin(taken, ls, took)
	case taken != 0 && taken != known:
		a.in.path.refer(known, taken)
	}
	if took && a.taken != nil { // otherwise the batch has ended, and err says so
		one := sample{ref: taken, t: t, v: v}
		if h != nil || fh != nil {
			one.native = &native{h, fh}
		}
		*a.taken = append(*a.taken, one)
	}
	return taken, err
}

// AppendExemplar adds an exemplar of an earlier sample, if the log supports that. The exemplar
// belongs to no input and does not count as a sample.
func (a *appender) AppendExemplar(ref storage.SeriesRef, ls labels.Labels, e exemplar.Exemplar) (storage.SeriesRef, error) {
	out, ok := a.out.(storage.ExemplarAppender)
	if !ok {
		return 0, errNoExemplars
	}
	return out.AppendExemplar(ref, ls, e)
}

// errOverLimit means that a sample is skipped, because the input has as many series as it may.
var errOverLimit = errors.New("the input has as many series as it may")

// errForgotten is returned for a reference without labels that the log does not know.
var errForgotten = fmt.Errorf("append sample: the series has no labels, and its reference is %w", storage.ErrNotFound)

// errNoExemplars is returned for a log that accepts exemplars only together with a sample.
var errNoExemplars = errors.New("append exemplar: the log accepts none without a sample")

// admit returns the reference by which the log knows a series, or 0, and the labels to append with, which may be empty for
// a series that has an account. It reserves a place for a series that has none yet.
func (a *appender) admit(ref storage.SeriesRef, ls labels.Labels) (known storage.SeriesRef, of labels.Labels, err error) {
	in, p := a.in, a.in.path
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.get(ref)
	if s == nil && !ls.IsEmpty() {
		p.mu.Unlock()
		ref = p.log.Ref(ls)
		p.mu.Lock()
		s = p.get(ref)
	}
	if s != nil && p.ownerOf(s) == in {
		return ref, ls, nil
	}
	tick := p.tick()
	if s != nil && !p.lapsed(s, tick) {
		return ref, ls, nil // owned by another input and counted there
	}
	if ls.IsEmpty() {
		if ls, _, _, _, _, _, _ = p.log.Newest(ref); ls.IsEmpty() {
			return 0, ls, errForgotten
		}
	}
	if limit := in.settings.MaxSeries; limit > 0 && in.live >= limit && !report(ls.Get(model.MetricNameLabel)) {
		in.refuse(ls)
		return 0, ls, errOverLimit
	}
	in.count()
	if s == nil {
		a.reserved = 1
		return ref, ls, nil
	}
	p.part(ref, s)
	p.ownerOf(s).discount()
	s.owner = in.number
	s.see(tick)
	return ref, ls, nil
}

// begin opens the account of the series whose place is reserved, if the log accepted a sample of it.
func (a *appender) begin(ref storage.SeriesRef, ls labels.Labels, took bool) {
	in, p := a.in, a.in.path
	p.mu.Lock()
	defer p.mu.Unlock()
	a.reserved = 0
	if !took || p.get(ref) != nil { // another batch was first
		in.discount()
		return
	}
	p.series.Put(uint64(ref), series{owner: in.number, state: p.tick() << 1})
	a.added = append(a.added, ref)
	p.pairUp(ref, ls)
}

// report reports whether a series describes the outcome of a round or scrape. Such series are
// always admitted: they are appended last, and an input over its limit is not down.
func report(name string) bool {
	switch name {
	case "up", "scrape_duration_seconds", "scrape_samples_scraped", "scrape_samples_post_metric_relabeling", "scrape_series_added",
		"scrape_timeout_seconds", "scrape_sample_limit", "scrape_body_size_bytes":
		return true
	}
	return false
}

// refuse counts a sample of a series over the limit. path.mu must be held.
func (in *Input) refuse(ls labels.Labels) {
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

// Commit implements [storage.AppenderV2]. Samples that the log has acknowledged stay
// acknowledged even if the bookkeeping panics.
func (a *appender) Commit() error {
	if err := a.out.Commit(); err != nil {
		a.end(false)
		return err
	}
	if o := a.in.path.observer; o != nil && a.taken != nil && o.Active() {
		// A guard of its own: a panic of the observer must not keep the batch from ending.
		_ = a.in.guard.Run(func() { o.Taken(a.in.kind, a.in.name, a.shown) }) // the guard logs it
	}
	_ = a.in.guard.Run(func() { a.end(true) }) // likewise
	return nil
}

// shown yields the samples of the batch for an observer.
func (a *appender) shown(yield func(Shown) bool) {
	for _, one := range *a.taken {
		ls, _, _, _, _, _, _ := a.in.path.log.Newest(one.ref)
		s := Shown{Labels: ls, T: one.t, V: one.v}
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

// end records the outcome of the batch.
func (a *appender) end(committed bool) {
	if a.taken == nil {
		return // ended already
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
	if a.reserved > 0 { // only if the log panicked
		a.in.discount()
	}
	for _, ref := range a.added {
		if s := p.get(ref); s != nil && !s.committed() {
			p.forget(ref)
		}
	}
	clear(taken)
	*a.taken = taken[:0]
	p.samples.Put(a.taken)
	a.taken, a.added, a.reserved = nil, nil, 0
	p.sweep(tick)
}

// took records a sample that is in the log. p.mu must be held.
func (p *Path) took(in *Input, one *sample, tick uint32) {
	s := p.get(one.ref)
	if s == nil { // another batch ended the account; the next sample begins a new one
		return
	}
	owner, stale := p.ownerOf(s), one.native == nil && value.IsStaleNaN(one.v)
	switch {
	case owner == in && stale:
		p.forget(one.ref)
		return
	case owner == in:
		s.see(tick)
		p.meetTwin(one.ref, in, tick)
	case stale:
		if p.rivals[one.ref].input == in {
			p.part(one.ref, s)
		}
	case s.committed():
		p.meet(one.ref, s, in, tick, 0)
	}
	s.state |= hasSample
}
