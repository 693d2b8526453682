package scrapediff

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// recorder is a storage that keeps everything. It is safe for concurrent use.
type recorder struct {
	mu      sync.Mutex
	refs    map[string]storage.SeriesRef
	series  []string // by reference; the first is 1
	newest  map[string]int64
	samples map[string][]sample // by series
	said    map[string]string   // what was said last about a series that was not empty
	commits int
}

// sample is what the storage was given.
type sample struct {
	t      int64
	value  string
	about  string // start timestamp and metadata
	commit int
}

func newRecorder() *recorder {
	return &recorder{refs: map[string]storage.SeriesRef{}, newest: map[string]int64{}, samples: map[string][]sample{}, said: map[string]string{}}
}

// AppenderV2 implements [storage.AppendableV2].
func (r *recorder) AppenderV2(context.Context) storage.AppenderV2 { return &recording{to: r} }

// recording is a batch.
type recording struct {
	to      *recorder
	pending []func()
}

// Append implements [storage.AppenderV2]. A sample that is older than the newest one is taken, unless the caller
// says otherwise.
func (b *recording) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	r := b.to
	r.mu.Lock()
	defer r.mu.Unlock()
	// A log and a TSDB know no empty labels.
	name := ls.WithoutEmpty().String()
	if ls.IsEmpty() {
		name = r.series[ref-1]
	}
	if newest, known := r.newest[name]; known && o.RejectOutOfOrder && t < newest {
		return 0, storage.ErrOutOfOrderSample
	}
	if r.refs[name] == 0 {
		r.series = append(r.series, name)
		r.refs[name] = storage.SeriesRef(len(r.series))
	}
	s := sample{t: t, value: text(v, h, fh), about: fmt.Sprintf("since %d, %s", st, aboutText(o.Metadata))}
	empty := o.Metadata.IsEmpty()
	b.pending = append(b.pending, func() {
		if said, known := r.said[name]; empty && known {
			s.about = fmt.Sprintf("since %d, %s", st, said)
		} else {
			r.said[name] = aboutText(o.Metadata)
		}
		s.commit = r.commits
		r.newest[name] = max(r.newest[name], t)
		r.samples[name] = append(r.samples[name], s)
	})
	return r.refs[name], nil
}

// Commit implements [storage.AppenderV2].
func (b *recording) Commit() error {
	b.to.mu.Lock()
	defer b.to.mu.Unlock()
	b.to.commits++
	for _, f := range b.pending {
		f()
	}
	b.pending = nil
	return nil
}

// Rollback implements [storage.AppenderV2].
func (b *recording) Rollback() error {
	b.pending = nil
	return nil
}

func text(v float64, h *histogram.Histogram, fh *histogram.FloatHistogram) string {
	switch {
	case h != nil:
		return "int " + h.ToFloat(nil).Compact(0).String()
	case fh != nil:
		return "float " + fh.Copy().Compact(0).String()
	case value.IsStaleNaN(v):
		return "stale"
	}
	return fmt.Sprint(v)
}

// byScrape is everything with its times told as numbers of scrapes, of which the first n count. A time that is
// no scrape's is the target's own.
func (r *recorder) byScrape(n int) map[string][]string {
	var own []int64
	var commits []int
	for series, all := range r.samples {
		if strings.HasPrefix(series, `{__name__="scrape_samples_scraped"`) {
			for _, s := range all {
				own, commits = append(own, s.t), append(commits, s.commit)
			}
		}
	}
	slices.Sort(own)
	slices.Sort(commits)
	last := 0
	if n = min(n, len(own)); n > 0 {
		own, last = own[:n], commits[n-1]
	}
	told := map[string][]string{"scrapes": {fmt.Sprint(len(own))}}
	for series, all := range r.samples {
		for _, s := range all {
			if s.commit > last {
				continue // a later scrape
			}
			when := fmt.Sprintf("at %d", s.t)
			if i, found := slices.BinarySearch(own, s.t); found {
				when = fmt.Sprintf("scrape %d", i)
			}
			if strings.HasPrefix(series, `{__name__="scrape_duration_seconds"`) && s.value != "stale" {
				s.value = "any"
			}
			told[series] = append(told[series], when+": "+s.value+", "+s.about)
		}
	}
	return told
}
