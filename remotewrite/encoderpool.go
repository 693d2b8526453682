package remotewrite

import (
	"runtime"
	"sync"

	"hwsagent/remotewrite/wire"
)

// EncoderPool makes the bodies of requests for all queues of a process. Encoding takes much more memory
// than its result, about 1 MB for 2,000 samples and 20 KB; so that memory is shared, no more
// requests are encoded at once than there are processors, and the encoder that was used last is used
// next: of those that are not needed, none grows. Safe for concurrent use.
type EncoderPool struct {
	places chan struct{} // one for each encoder in use

	mu   sync.Mutex
	free []*requestEncoder // a stack
}

// requestEncoder has the buffers for one body.
type requestEncoder struct {
	grp  grouper
	wire wire.Encoder
}

// NewEncoderPool makes a pool.
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

// order says in which order a request has its samples.
type order uint8

const (
	// inTime is the order of the log: times in the request do not go back.
	inTime order = iota
	// bySeries puts all samples of a series into one TimeSeries, which takes a third of the time and bytes
	// where a request has many rounds.
	bySeries
)

// body appends the body of a request with the points to dst, compressed by c. A series' samples keep their order
// in either order. exemplars is how many of them the request has: 2.0 leaves out those without a
// sample of their series.
func (p *EncoderPool) body(dst []byte, v wire.Version, c wire.Compression, points []point, by order) (_ []byte, exemplars int) {
	e := p.take()
	defer p.put(e)
	if by == bySeries {
		points = e.grp.group(points)
	}
	encode(&e.wire, v, points)
	dst = e.wire.AppendBody(dst, c)
	return dst, e.wire.Exemplars()
}

// encode has e encode the points, in their order.
func encode(e *wire.Encoder, v wire.Version, points []point) {
	e.Begin(v)
	var of *series
	for i := range points {
		p := &points[i]
		if p.series != of {
			of = p.series
			e.Series(of.written())
		}
		switch p.kind {
		case float:
			e.Float(p.st, p.t, p.v)
		case exemplarPoint:
			e.Exemplar(p.t, p.v, p.aux.labels)
		default:
			e.Histogram(p.st, p.t, p.aux.h, p.aux.fh)
		}
	}
}
