package remotewrite

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
)

// Shards that encode at the same time each get their own body, and a body does not change
// when others are made after it.
func TestPressKeepsBodiesApart(t *testing.T) {
	p := newPress()
	var wg sync.WaitGroup
	for i := range 8 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			points := benchPoints(50+i, 1)
			var e encoder
			want := e.encode(points)
			for range 20 {
				if got, _ := p.body(nil, V1, points); !bytes.Equal(got, want) {
					t.Errorf("%d points: a body of %d bytes, want %d", len(points), len(got), len(want))
					return
				}
			}
		})
	}
	wg.Wait()
	if len(p.plates) != cap(p.plates) {
		t.Errorf("%d of %d plates came back", len(p.plates), cap(p.plates))
	}
}
