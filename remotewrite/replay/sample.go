package replay

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/tenant"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

// sample is a selected sample. It shares no memory with the log's buffers.
type sample struct {
	series *series
	commit uint64 // the number of its commit
	st, t  int64
	v      float64
	h      *histogram.Histogram
	fh     *histogram.FloatHistogram
}

func (s *sample) isFloat() bool { return s.h == nil && s.fh == nil }

// series is a series of the log in the form that the target gets.
type series struct {
	written wire.Series
	hash    uint64 // of the final labels
	matches bool   // all matchers match
}

// isDropped reports whether the target does not get the series.
func (s *series) isDropped() bool { return s.written.Form == nil }

// labels returns the final labels as remote write 1.0 sends them.
func (s *series) labels() labels.Labels { return s.written.Form.Labels(wire.V1, s.written.Labels) }

// seriesForms derives, once for each series of the log, the form that the target gets.
type seriesForms struct {
	labels   *config.Relabeler
	forms    *wire.Forms
	tenant   *tenant.Filter // excludes series of other targets of the entry; nil: no filter
	matchers []*labels.Matcher
	slots    []slot // by wal.Series.Slot
}

// slot is a series of the log and its form.
type slot struct {
	from *wal.Series
	to   *series
}

func (f *seriesForms) get(s *wal.Series) *series {
	for s.Slot >= len(f.slots) {
		f.slots = append(f.slots, slot{})
	}
	at := &f.slots[s.Slot]
	if at.from != s {
		*at = slot{s, f.derive(s)}
	}
	return at.to
}

func (f *seriesForms) derive(s *wal.Series) *series {
	final := f.labels.Apply(s.Labels)
	if final == nil {
		return &series{}
	}
	if f.tenant != nil {
		if _, mine := f.tenant.Sort(final); !mine {
			return &series{}
		}
	}
	form, ls := f.forms.Of(s.Labels, final.Labels())
	if form == nil {
		return &series{}
	}
	to := &series{written: wire.Series{Labels: s.Labels, Form: form}, hash: ls.Hash(), matches: true}
	if s.About != nil {
		to.written.Meta = &s.About.Meta
	}
	ls = to.labels()
	for _, m := range f.matchers {
		to.matches = to.matches && m.Matches(ls.Get(m.Name))
	}
	return to
}

// take moves the selected samples of an entry into the batch.
func (r *Replay) take(e *wal.Entry) {
	for i := range e.Samples {
		s := &e.Samples[i]
		if to := r.selects(s.Series, s.T); to != nil {
			r.batch = append(r.batch, sample{series: to, commit: e.End.Commit, st: s.ST, t: s.T, v: s.V})
		}
	}
	for i := range e.Histograms {
		h := &e.Histograms[i]
		to := r.selects(h.Series, h.T)
		if to == nil {
			continue
		}
		x := sample{series: to, commit: e.End.Commit, st: h.ST, t: h.T}
		if h.H != nil {
			x.h = h.H.Copy()
		} else {
			x.fh = h.FH.Copy()
		}
		r.batch = append(r.batch, x)
	}
}

// selects returns the series to send a sample as, and counts the sample; nil if the sample is not selected.
func (r *Replay) selects(s *wal.Series, t int64) *series {
	if t < r.o.From.UnixMilli() || t >= r.o.To.UnixMilli() {
		return nil
	}
	to := r.series.get(s)
	switch {
	case to.isDropped():
		r.count.Filtered++
		return nil
	case !to.matches:
		return nil
	}
	r.note(to, t)
	return to
}

// uniquePrefix returns how many of the first samples of the batch are of different series, at most limit.
func (r *Replay) uniquePrefix(limit int) int {
	seen := make(map[uint64]bool, limit)
	for i := range r.batch[:limit] {
		hash := r.batch[i].series.hash
		if seen[hash] {
			return i
		}
		seen[hash] = true
	}
	return limit
}

// groups holds the samples of a request, grouped by series. It reuses its memory.
type groups struct {
	of      map[uint64]int // index into samples, by the hash of the series
	samples [][]sample     // in log order
}

// encode makes the body of a request. It groups the samples by series, which takes fewer bytes.
func (r *Replay) encode(samples []sample) {
	g := &r.groups
	if g.of == nil {
		g.of = make(map[uint64]int)
	}
	clear(g.of)
	for _, s := range samples {
		i, ok := g.of[s.series.hash]
		if !ok {
			i = len(g.of)
			if g.of[s.series.hash] = i; i == len(g.samples) {
				g.samples = append(g.samples, nil)
			}
			g.samples[i] = g.samples[i][:0]
		}
		g.samples[i] = append(g.samples[i], s)
	}
	r.encoder.Begin(r.version, wire.Snappy)
	for _, group := range g.samples[:len(g.of)] {
		var of *series
		for i := range group {
			s := &group[i]
			if s.series != of {
				of = s.series
				r.encoder.Series(of.written)
			}
			if s.isFloat() {
				r.encoder.Float(s.st, s.t, s.v)
			} else {
				r.encoder.Histogram(s.st, s.t, s.h, s.fh)
			}
		}
	}
	r.body = r.encoder.AppendBody(r.body[:0])
}
