package wal

import (
	"testing"

	"hwsagent/wal/internal/segmenttest"
)

// BenchmarkCursorNext reads a log in the steady state: 5,000 series, each commit with
// 1,000 of them, as probes that take turns leave it.
func BenchmarkCursorNext(b *testing.B) {
	const (
		series, batch = 5000, 1000
		commits       = 200
	)
	s := segmenttest.New(0, ID{9}, 0, 0)
	for i := range commits {
		from := i * batch % series
		refs := segmenttest.Refs(from, from+batch)
		ts := 1_700_000_000_000 + int64(i)*3000
		var recs [][]byte
		if i < series/batch {
			recs = append(recs, segmenttest.Series(refs...))
		}
		s.Commit(batch, ts, ts, append(recs, segmenttest.Samples(ts, refs...))...)
	}
	c := newSilentCursor(newFakeLog(s))
	defer c.close()
	head := c.tail.head()
	read := func() int {
		c.place(Mark{Log: head.Log, SegmentID: s.Header.Segment}, Mark{})
		n := 0
		for {
			e, err := c.next(head)
			if err != nil {
				b.Fatal(err)
			}
			if e == nil {
				return n
			}
			n += len(e.Samples)
		}
	}
	read()
	m := newAllocations()
	samples := 0
	for b.Loop() {
		samples += read()
	}
	if want := b.N * commits * batch; samples != want {
		b.Fatalf("read %d samples, want %d", samples, want)
	}
	m.perSample(b, samples)
	b.ReportMetric(float64(samples)/b.Elapsed().Seconds()/1e6, "Msamples/s")
}
