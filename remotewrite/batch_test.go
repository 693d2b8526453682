package remotewrite

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestGroup: all points of a series become neighbours, in their order, and the series keep the order of their first points, however
// rounds of a log follow each other.
func TestGroup(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var g grouper
	for range 300 {
		of := make([]*series, 1+r.IntN(60))
		for i := range of {
			of[i] = &series{hash: r.Uint64N(100)} // some have the same labels
		}
		var points []point
		for seq := range uint64(1 + r.IntN(8)) {
			for i := range of { // a round, as a rule in the same order, of which some points are missing
				if r.IntN(10) == 0 {
					i = r.IntN(len(of))
				}
				if r.IntN(8) > 0 {
					points = append(points, point{series: of[i], seq: seq, t: int64(len(points))})
				}
			}
		}
		var want []int64
		for i, p := range points {
			if slices.ContainsFunc(points[:i], func(q point) bool { return q.series.hash == p.series.hash }) {
				continue
			}
			for _, q := range points[i:] {
				if q.series.hash == p.series.hash {
					want = append(want, q.t)
				}
			}
		}
		if len(points) > 0 && points[0].seq == points[len(points)-1].seq { // one commit stays as it is
			want = want[:0]
			for _, p := range points {
				want = append(want, p.t)
			}
		}
		var got []int64
		for _, p := range g.group(points) {
			got = append(got, p.t)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%d points (-want +got):\n%s", len(points), d)
		}
	}
}
