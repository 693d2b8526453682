package remotewrite

import "runtime"

// press makes the bodies of requests for all shards of a queue. Encoding takes much more
// memory than its result, about 1 MB for 2,000 samples and 20 KB; so that memory is
// shared, and no more shards encode at once than there are processors.
type press struct {
	plates chan *plate // those that nobody uses
}

// plate is what one body takes to be made.
type plate struct {
	grp  grouper
	enc  encoder
	enc2 *encoder2 // nil until the first request of 2.0
}

func newPress() *press {
	p := &press{plates: make(chan *plate, runtime.GOMAXPROCS(0))}
	for range cap(p.plates) {
		p.plates <- &plate{}
	}
	return p
}

// body appends the body of a request with the points to dst; their order may change, but
// not within a series. exemplars is how many of them are in it.
func (p *press) body(dst []byte, v Version, points []point) (_ []byte, exemplars int) {
	t := <-p.plates
	defer func() { p.plates <- t }()
	points = t.grp.group(points)
	if v == V2 {
		if t.enc2 == nil {
			t.enc2 = newEncoder2()
		}
		return append(dst, t.enc2.encode(points)...), t.enc2.exemplars
	}
	return append(dst, t.enc.encode(points)...), count(points)[classExemplar]
}
