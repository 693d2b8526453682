package remotewrite

import (
	"slices"

	"hwsagent/internal/refs"
)

// fifo holds a shard's points in log order. It reuses its memory.
type fifo struct {
	buf  []point
	head int // buf[:head] is taken
}

func (f *fifo) len() int        { return len(f.buf) - f.head }
func (f *fifo) points() []point { return f.buf[f.head:] }

func (f *fifo) push(ps []point) {
	if f.head > 0 && len(f.buf)+len(ps) > cap(f.buf) {
		n := copy(f.buf, f.points())
		clear(f.buf[n:])
		f.buf, f.head = f.buf[:n], 0
	}
	f.buf = append(f.buf, ps...)
}

// take moves the first n points to the end of dst.
func (f *fifo) take(dst []point, n int) []point {
	dst = append(dst, f.buf[f.head:f.head+n]...)
	f.head += n
	if f.head == len(f.buf) {
		clear(f.buf)
		f.buf, f.head = f.buf[:0], 0
	}
	return dst
}

// unread puts points back in front of the others.
func (f *fifo) unread(ps []point) {
	if f.head >= len(ps) {
		f.head -= len(ps)
		copy(f.buf[f.head:], ps)
		return
	}
	f.buf = slices.Insert(f.buf, f.head, ps...)
}

// remove deletes the points from index i of points to before index end.
func (f *fifo) remove(i, end int) { f.buf = slices.Delete(f.buf, f.head+i, f.head+end) }

// grouper puts points of the same series next to each other, so that the encoder writes one TimeSeries for them. It
// keeps the order within a series, and the order of the first points of the series: neighbours in the log have similar
// labels, which compresses well. It reuses its memory, and is not safe for concurrent use.
type grouper struct {
	groups []group
	byHash *refs.Positions // of groups
	then   []int32         // by index of a point: the index of the next point of its series; unset for the last one
	out    []point
}

// group is the points of a series.
type group struct {
	hash        uint64
	first, last int32 // indices
}

// group returns the points regrouped; the result is valid until the next call. It identifies series by the hash of
// their final labels, so two log series that relabelling merged keep their order. If two hashes collide, the points of
// both series alternate in one group, which costs bytes but is harmless.
func (g *grouper) group(points []point) []point {
	if len(points) == 0 || points[0].seq == points[len(points)-1].seq {
		return points // one commit: it rarely has a series twice
	}
	if g.byHash == nil {
		g.byHash = refs.NewPositions(len(points))
	}
	g.byHash.Clear()
	g.groups = g.groups[:0]
	g.then = slices.Grow(g.then[:0], len(points))[:len(points)]
	at := -1 // the group of the point before
	for i := range points {
		if at = g.find(points[i].series.hash, at+1); at < 0 {
			at = len(g.groups)
			g.byHash.Add(points[i].series.hash)
			g.groups = append(g.groups, group{points[i].series.hash, int32(i), int32(i)}) // #nosec G115 -- a request has far fewer points
			continue
		}
		g.then[g.groups[at].last] = int32(i) // #nosec G115 -- likewise
		g.groups[at].last = int32(i)         // #nosec G115 -- likewise
	}
	if len(g.groups) == len(points) {
		return points
	}
	g.out = slices.Grow(g.out[:0], len(points))
	for _, one := range g.groups {
		for i := one.first; i != one.last; i = g.then[i] {
			g.out = append(g.out, points[i])
		}
		g.out = append(g.out, points[one.last])
	}
	return g.out
}

// find returns the group with that hash, below 0 if there is none. It looks first at one of the groups: the series of a log come in much
// the same order each time.
func (g *grouper) find(hash uint64, first int) int {
	if first < len(g.groups) && g.groups[first].hash == hash {
		return first
	}
	return g.byHash.Find(hash, func(i int) bool { return g.groups[i].hash == hash })
}

// uniquePrefix returns how many leading points belong to different series. Exemplars do not count as a second sample.
// seen is scratch space.
func uniquePrefix(points []point, seen map[uint64]struct{}) int {
	clear(seen)
	for i := range points {
		if points[i].kind == exemplarPoint {
			continue
		}
		n := len(seen)
		if seen[points[i].series.hash] = struct{}{}; len(seen) == n {
			return i
		}
	}
	return len(points)
}
