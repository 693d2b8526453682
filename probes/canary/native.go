package canary

import (
	"strconv"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/probes"
)

// addNative adds the number with an exemplar, and the histograms.
func (p *Probe) addNative(r *probes.Round, v float64, ls []string) {
	trace := labels.FromStrings("trace_id", strconv.FormatUint(p.number, 10))
	r.AddSample(probes.Sample{Family: &p.family, Value: v, Labels: ls, Exemplars: []exemplar.Exemplar{{Labels: trace, Value: v}}})
	r.AddSample(probes.Sample{Family: p.native[0], Labels: ls, H: integers(p.number)})
	r.AddSample(probes.Sample{Family: p.native[1], Labels: ls, FH: floats(p.number)})
}

// integers returns a histogram that grows with the number: buckets on both sides of zero, a gap
// between them, and some in the zero bucket.
func integers(number uint64) *histogram.Histogram {
	n := int64(number)
	return &histogram.Histogram{
		Count: 3*number + 2, Sum: float64(number),
		ZeroThreshold: 0.001, ZeroCount: 1,
		PositiveSpans: []histogram.Span{{Offset: 0, Length: 2}, {Offset: 3, Length: 1}}, PositiveBuckets: []int64{n, 1, -1}, // n, n+1, n
		NegativeSpans: []histogram.Span{{Offset: 1, Length: 1}}, NegativeBuckets: []int64{0},
	}
}

// floats returns the same with fractions.
func floats(number uint64) *histogram.FloatHistogram {
	n := float64(number)
	return &histogram.FloatHistogram{
		Count: 2*n + 1.75, Sum: n,
		ZeroThreshold: 0.001, ZeroCount: 0.25,
		PositiveSpans: []histogram.Span{{Offset: 0, Length: 1}, {Offset: 3, Length: 1}}, PositiveBuckets: []float64{n + 0.5, n},
		NegativeSpans: []histogram.Span{{Offset: 1, Length: 1}}, NegativeBuckets: []float64{1},
	}
}
