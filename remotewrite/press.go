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
	grp grouper
	enc encoder
}

func newPress() *press {
	p := &press{plates: make(chan *plate, runtime.GOMAXPROCS(0))}
	for range cap(p.plates) {
		p.plates <- &plate{}
	}
	return p
}

// body appends the body of a request with the points to dst; their order may change, but
// not within a series.
func (p *press) body(dst []byte, points []point) []byte {
	t := <-p.plates
	defer func() { p.plates <- t }()
	return append(dst, t.enc.encode(t.grp.group(points))...)
}
