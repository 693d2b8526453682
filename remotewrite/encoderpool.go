package remotewrite

import (
	"runtime"
	"sync"
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

// requestEncoder is what one body takes to be made.
type requestEncoder struct {
	grp  grouper
	enc  encoder
	enc2 *encoder2 // nil until the first request of 2.0
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

// body appends the body of a request with the points to dst; their order may change, but
// not within a series. exemplars is how many of them are in it.
func (p *EncoderPool) body(dst []byte, v Version, points []point) (_ []byte, exemplars int) {
	e := p.take()
	defer p.put(e)
	points = e.grp.group(points)
	if v == V2 {
		if e.enc2 == nil {
			e.enc2 = newEncoder2()
		}
		return append(dst, e.enc2.encode(points)...), e.enc2.exemplars
	}
	return append(dst, e.enc.encode(points)...), count(points)[classExemplar]
}
