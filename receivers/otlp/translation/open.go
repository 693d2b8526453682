package translation

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxOpen bounds the histograms and summaries whose parts are remembered.
const maxOpen = 20_000

// Open remembers the bounds of classic histograms and the quantiles of summaries: a point without a value that ends one
// usually has none of them, and all series of it must end. It is in memory only, and safe for concurrent use.
type Open struct {
	mu   sync.Mutex
	of   map[uint64]parts // by the hash of the labels, with the name of the metric
	last []float64        // the bounds noted last: most points of a program have the same
}

// parts are the series of a point beside its count.
type parts struct {
	bounds []float64 // or quantiles
	sum    bool
}

// NewOpen returns an Open that knows nothing.
func NewOpen() *Open { return &Open{of: map[uint64]parts{}} }

// note records the parts of a point with a value.
func (o *Open) note(key uint64, n int, at func(int) float64, sum bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was, known := o.of[key]
	if known && equal(was.bounds, n, at) {
		if was.sum != sum {
			o.of[key] = parts{was.bounds, sum}
		}
		return
	}
	if !equal(o.last, n, at) {
		o.last = make([]float64, n)
		for i := range o.last {
			o.last[i] = at(i)
		}
	}
	if !known && len(o.of) >= maxOpen {
		for one := range o.of { // any
			delete(o.of, one)
			break
		}
	}
	o.of[key] = parts{o.last, sum}
}

func equal(bounds []float64, n int, at func(int) float64) bool {
	if len(bounds) != n {
		return false
	}
	for i, b := range bounds {
		if b != at(i) {
			return false
		}
	}
	return true
}

// end returns the parts noted last, and forgets them.
func (o *Open) end(key uint64) parts {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.of[key]
	delete(o.of, key)
	return p
}

// key identifies the point of a metric with these attributes.
func (f *family) key(attributes pcommon.Map) uint64 { return f.named(attributes).Hash() }
