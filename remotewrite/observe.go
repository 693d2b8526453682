package remotewrite

import (
	"iter"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
)

// Observer sees the samples that targets accept. It must not block.
type Observer interface {
	// Active reports whether it wants to see samples; it is called for each accepted request.
	Active() bool
	// Delivered gets the samples of a request that the named target accepted. They are not valid after the call.
	Delivered(target string, samples iter.Seq[Sample])
}

// Sample is a sample that an [Observer] sees, as the target got it.
type Sample struct {
	Labels labels.Labels
	T      int64 // ms
	V      float64
	H      *histogram.Histogram // nil, or the value
	FH     *histogram.FloatHistogram
}

// show passes accepted points to the observer.
func (q *Queue) show(points []point) {
	if q.observer == nil || !q.observer.Active() {
		return
	}
	q.observer.Delivered(q.name, func(yield func(Sample) bool) {
		for i := range points {
			p := &points[i]
			if p.kind == exemplarPoint {
				continue
			}
			s := Sample{Labels: p.series.labels(), T: p.t, V: p.v}
			if p.aux != nil {
				s.H, s.FH = p.aux.h, p.aux.fh
			}
			if !yield(s) {
				return
			}
		}
	})
}
