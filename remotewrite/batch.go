package remotewrite

import (
	"cmp"
	"slices"
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

// remove deletes the point at index i of points.
func (f *fifo) remove(i int) { f.buf = slices.Delete(f.buf, f.head+i, f.head+i+1) }

// grouper puts points of the same series next to each other, so that the encoder writes one TimeSeries for them. It
// keeps the order within a series, and the order of the first points of the series: neighbours in the log have similar
// labels, which compresses well. It reuses its memory, and is not safe for concurrent use.
type grouper struct {
	keys []groupKey
	then []int32 // index of the next point of the same series, or groupEnd; passed through inner unless the point is the first of its series
	out  []point
}

const groupEnd = -1

// inner marks the link of a point that is not the first of its series, and removes the mark if applied again. Marked
// links are below groupEnd.
func inner(link int32) int32 { return -3 - link }

type groupKey struct {
	hash uint64
	at   int32
}

// group returns the points regrouped; the result is valid until the next call. It identifies series by the hash of
// their final labels, so two log series that relabelling merged keep their order. If two hashes collide, the points of
// both series alternate in one group, which costs bytes but is harmless.
func (g *grouper) group(points []point) []point {
	if len(points) == 0 || points[0].seq == points[len(points)-1].seq {
		return points // one commit: it rarely has a series twice
	}
	g.keys = g.keys[:0]
	for i := range points {
		g.keys = append(g.keys, groupKey{points[i].series.hash, int32(i)})
	}
	slices.SortFunc(g.keys, func(a, b groupKey) int {
		if a.hash != b.hash {
			return cmp.Compare(a.hash, b.hash)
		}
		return cmp.Compare(a.at, b.at)
	})
	g.then = slices.Grow(g.then[:0], len(points))[:len(points)]
	repeated := false
	for i, k := range g.keys {
		next := int32(groupEnd)
		if i+1 < len(g.keys) && g.keys[i+1].hash == k.hash {
			next, repeated = g.keys[i+1].at, true
		}
		if i > 0 && g.keys[i-1].hash == k.hash {
			next = inner(next)
		}
		g.then[k.at] = next
	}
	if !repeated {
		return points
	}
	g.out = slices.Grow(g.out[:0], len(points))
	for i := range points {
		next := g.then[i]
		if next < groupEnd {
			continue
		}
		g.out = append(g.out, points[i])
		for next >= 0 {
			g.out = append(g.out, points[next])
			next = inner(g.then[next])
		}
	}
	return g.out
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
