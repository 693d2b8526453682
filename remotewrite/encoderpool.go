package remotewrite

import (
	"runtime"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/wire"
)

// EncoderPool encodes request bodies for all queues of a process. Encoding needs about four times
// as much memory as its result, which has 300 KB for 10,000 samples, and for zstd twelve times as much. So the queues share that memory, they
// encode at most as many requests at once as there are processors, and they reuse the encoder that was used last, so that idle encoders do not grow. Safe for
// concurrent use.
type EncoderPool struct {
	places chan struct{} // one for each encoder in use

	mu   sync.Mutex
	free []*requestEncoder // a stack
}

// requestEncoder holds the buffers for one body.
type requestEncoder struct {
	grp    grouper
	wire   wire.Encoder
	labels []labels.Label // of the series being written
}

// NewEncoderPool creates a pool.
func NewEncoderPool() *EncoderPool {
	return &EncoderPool{places: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

func (p *EncoderPool) take() *requestEncoder {
	p.places <- struct{}{}
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last < 0 {
		return &requestEncoder{}
	}
	e := p.free[last]
	p.free = p.free[:last]
	return e
}

func (p *EncoderPool) put(e *requestEncoder) {
	p.mu.Lock()
	p.free = append(p.free, e)
	p.mu.Unlock()
	<-p.places
}

// order is the order of the samples in a request.
type order uint8

const (
	// inTime is the order of the log: timestamps in a request do not go back.
	inTime order = iota
	// bySeries puts all samples of a series into one TimeSeries, which takes a third of the time and bytes if a request
	// has many rounds.
	bySeries
)

// body appends the body of a request with the points, compressed by c, to dst. Both orders keep the samples of a series
// in order. exemplars is how many exemplars the request has: 2.0 leaves out those without a sample of their series. A bare
// request has no exemplars and no metadata.
func (p *EncoderPool) body(dst []byte, v wire.Version, c wire.Compression, points []point, by order, bare bool) (_ []byte, exemplars int) {
	e := p.take()
	defer p.put(e)
	if by == bySeries {
		points = e.grp.group(points)
	}
	e.encode(v, c, points, bare)
	dst = e.wire.AppendBody(dst)
	return dst, e.wire.Exemplars()
}

// encode encodes the points, in their order.
func (r *requestEncoder) encode(v wire.Version, c wire.Compression, points []point, bare bool) {
	e := &r.wire
	e.Begin(v, c)
	var of *series
	for i := range points {
		p := &points[i]
		if p.series != of {
			of = p.series
			w := of.written(r.labels[:0])
			r.labels = w.Labels
			if bare {
				w.Meta = nil
			}
			e.Series(w)
		}
		switch p.kind {
		case float:
			e.Float(p.st, p.t, p.v)
		case exemplarPoint:
			if !bare {
				e.Exemplar(p.t, p.v, p.aux.labels)
			}
		default:
			e.Histogram(p.st, p.t, p.aux.h, p.aux.fh)
		}
	}
}
