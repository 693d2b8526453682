package e2e

import (
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
)

// recorder notes what a recording receiver is sent. It is what the real receivers are
// compared with: the journal has no times, and only the canary's numbers.
type recorder struct {
	mu     sync.Mutex
	seen   contents
	labels map[string][]prompb.Label // of each series
}

func newRecorder() *recorder {
	return &recorder{seen: make(contents), labels: make(map[string][]prompb.Label)}
}

func (r *recorder) add(series []prompb.TimeSeries) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range series {
		r.seen.addSeries(&series[i])
		lb := labels.NewScratchBuilder(0)
		if name := series[i].ToLabels(&lb, nil).String(); r.labels[name] == nil {
			r.labels[name] = slices.Clone(series[i].Labels)
		}
	}
}

// contents returns a copy of what has come so far.
func (r *recorder) contents() contents {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(contents, len(r.seen))
	for series, times := range r.seen {
		for t, values := range times {
			for _, v := range values {
				all.add(series, t, v)
			}
		}
	}
	return all
}

// newest returns the newest sample of a series so far, and the labels of the series.
func (r *recorder) newest(series string) (ls []prompb.Label, t int64, v string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, values := range r.seen[series] {
		if at > t {
			t, v = at, values[0]
		}
	}
	return r.labels[series], t, v
}
