package translation

import (
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// zeroThreshold is the zero threshold of all converted exponential histograms, as in Prometheus.
const zeroThreshold = 1e-128

// exponential appends a point as a native histogram, with a coarser resolution if Prometheus does not support the
// point's.
func (f *family) exponential(p pmetric.ExponentialHistogramDataPoint) error {
	schema, merged := p.Scale(), int32(0)
	if schema < histogram.ExponentialSchemaMin {
		return fmt.Errorf("%q has an exponential histogram of scale %d, less than %d", f.name, schema, histogram.ExponentialSchemaMin)
	}
	if schema > histogram.ExponentialSchemaMax {
		schema, merged = histogram.ExponentialSchemaMax, schema-histogram.ExponentialSchemaMax
	}
	h := &histogram.Histogram{Schema: schema, ZeroThreshold: zeroThreshold, ZeroCount: p.ZeroCount()}
	up, down := p.Positive(), p.Negative()
	// OTLP's bucket 0 begins at 1; Prometheus' bucket 0 ends there.
	h.PositiveSpans, h.PositiveBuckets = sparse(up.BucketCounts().AsRaw(), up.Offset(), merged, up.Offset()>>merged+1)
	h.NegativeSpans, h.NegativeBuckets = sparse(down.BucketCounts().AsRaw(), down.Offset(), merged, down.Offset()>>merged+1)
	m := momentOf(p)
	total(h, m.none, p)
	return f.appendNative(p.Attributes(), m, h, p.Exemplars())
}

// customBuckets appends a point with explicit bounds as a native histogram with these bounds.
func (f *family) customBuckets(p pmetric.HistogramDataPoint) error {
	counts, first := p.BucketCounts().AsRaw(), 0
	for first < len(counts) && counts[first] == 0 {
		first++
	}
	h := &histogram.Histogram{Schema: histogram.CustomBucketsSchema, CustomValues: p.ExplicitBounds().AsRaw()}
	offset := int32(first) // #nosec G115 -- a message has no two billion buckets
	h.PositiveSpans, h.PositiveBuckets = sparse(counts[first:], offset, 0, offset)
	m := momentOf(p)
	total(h, m.none, p)
	return f.appendNative(p.Attributes(), m, h, p.Exemplars())
}

// total sets the count and the sum of h.
func total(h *histogram.Histogram, none bool, p interface {
	HasSum() bool
	Sum() float64
	Count() uint64
}) {
	if none {
		h.Sum, h.Count = math.Float64frombits(value.StaleNaN), value.StaleNaN
		return
	}
	h.Count = p.Count()
	if p.HasSum() {
		h.Sum = p.Sum()
	}
}

// maxGap is the greatest number of empty buckets between two others that are written out.
const maxGap = 2

// sparse turns consecutive buckets, the first one at offset, into spans and differences. It merges each 2^merged
// buckets into one. The first span begins at start.
//
// Prometheus' translation counts the first observation after an empty merged bucket in that empty one, if it merges
// buckets; this one counts it where it belongs.
func sparse(counts []uint64, offset, merged, start int32) ([]histogram.Span, []int64) {
	if len(counts) == 0 {
		return nil, nil
	}
	spans := []histogram.Span{{Offset: start}}
	var deltas []int64
	var last int64
	add := func(count int64) {
		spans[len(spans)-1].Length++
		deltas, last = append(deltas, count-last), count
	}
	flush := func(count int64, gap int32) {
		if gap > maxGap {
			spans = append(spans, histogram.Span{Offset: gap})
		} else {
			for range gap {
				add(0)
			}
		}
		add(count)
	}
	first := offset >> merged
	next := first // the index of the next bucket to write
	for i := 0; i < len(counts); {
		index, count := (int32(i)+offset)>>merged, int64(0)                // #nosec G115 -- a message has no two billion buckets
		for ; i < len(counts) && (int32(i)+offset)>>merged == index; i++ { // #nosec G115 -- likewise
			count += int64(counts[i]) // #nosec G115 -- as in Prometheus
		}
		if count != 0 {
			flush(count, index-next)
			next = index + 1
		}
	}
	if last := (int32(len(counts)) + offset - 1) >> merged; last >= next { // #nosec G115 -- likewise
		flush(0, last-next)
	}
	return spans, deltas
}
