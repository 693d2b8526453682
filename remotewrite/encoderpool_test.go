package remotewrite

import (
	"bytes"
	"reflect"
	"runtime"
	"sync"
	"testing"

	"hwsagent/remotewrite/wire"
)

// Shards that encode at the same time each get their own body, and a body does not change
// when others are made after it.
func TestEncoderPoolKeepsBodiesApart(t *testing.T) {
	p := NewEncoderPool()
	var wg sync.WaitGroup
	for i := range 8 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			points := benchPoints(50 + i)
			var e requestEncoder
			e.encode(wire.V1, wire.Snappy, points, false)
			want := e.wire.AppendBody(nil)
			for range 20 {
				if got, _ := p.body(nil, wire.V1, wire.Snappy, points, bySeries, false); !bytes.Equal(got, want) {
					t.Errorf("%d points: a body of %d bytes, want %d", len(points), len(got), len(want))
					return
				}
			}
		})
	}
	wg.Wait()
	if len(p.places) != 0 || len(p.free) == 0 || len(p.free) > cap(p.places) {
		t.Errorf("%d encoders are in use, %d are free, want at most %d", len(p.places), len(p.free), cap(p.places))
	}
}

// TestEncoderPoolIsAStack: goroutines that encode one at a time use one encoder, however many the pool has: the memory
// of the others is not needed.
func TestEncoderPoolIsAStack(t *testing.T) {
	p := &EncoderPool{places: make(chan struct{}, 8)}
	for range 8 { // as after a moment in which eight shards encoded at once
		p.free = append(p.free, &requestEncoder{})
	}
	points := benchPoints(2000)
	for range 16 {
		p.body(nil, wire.V1, wire.Snappy, points, bySeries, false)
	}
	used := 0
	for _, e := range p.free {
		if !reflect.ValueOf(e.wire).IsZero() {
			used++
		}
	}
	if used != 1 {
		t.Errorf("%d of 8 encoders have grown", used)
	}
}
