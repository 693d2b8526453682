package wal

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/tsdb/wlog"
)

// randomRecords are records of many sizes, some longer than a page, some empty.
func randomRecords(rng *rand.Rand, n int) [][]byte {
	var recs [][]byte
	for range n {
		size := rng.IntN(300)
		switch rng.IntN(20) {
		case 0:
			size = rng.IntN(3 * pageSize)
		case 1:
			size = 0
		}
		rec := make([]byte, size)
		for i := range rec {
			rec[i] = byte(rng.IntN(5))
		}
		recs = append(recs, rec)
	}
	return recs
}

func readAll(t *testing.T, p *pageReader) [][]byte {
	t.Helper()
	var recs [][]byte
	for {
		rec, ok, err := p.next(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return recs
		}
		recs = append(recs, append([]byte{}, rec...))
	}
}

// The page reader and the stock reader read the same records, in every compression.
func TestPageReaderMatchesStockReader(t *testing.T) {
	for name, compress := range map[string]byte{"none": 0, "snappy": flagSnappy, "zstd": flagZstd} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			want := randomRecords(rng, 500)
			var s segmentBuilder
			for _, rec := range want {
				s.record(rec, compress)
			}
			stock := wlog.NewReader(bytes.NewReader(s.b))
			var n int
			for stock.Next() {
				if !bytes.Equal(stock.Record(), want[n]) {
					t.Fatalf("stock reader reads another record %d", n)
				}
				n++
			}
			if stock.Err() != nil || n != len(want) {
				t.Fatalf("stock reader reads %d of %d records: %v", n, len(want), stock.Err())
			}
			var p pageReader
			p.reset(bytes.NewReader(s.b), int64(len(s.b)), true)
			if !slices.EqualFunc(want, readAll(t, &p), bytes.Equal) {
				t.Fatal("other records than were written")
			}
			if p.skipped != 0 || p.offset() != int64(len(s.b)) {
				t.Errorf("skipped %d bytes, ended at %d of %d", p.skipped, p.offset(), len(s.b))
			}
		})
	}
}

// A reader that meets the end of what is written goes on when there is more,
// wherever the end was.
func TestPageReaderFollows(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	want := randomRecords(rng, 300)
	var s segmentBuilder
	for _, rec := range want {
		s.record(rec, flagSnappy)
	}
	var p pageReader
	p.reset(bytes.NewReader(s.b), 0, false)
	var got [][]byte
	for p.limit < int64(len(s.b)) {
		p.limit = min(p.limit+int64(rng.IntN(2000)), int64(len(s.b)))
		got = append(got, readAll(t, &p)...)
	}
	p.final = true
	got = append(got, readAll(t, &p)...)
	if !slices.EqualFunc(want, got, bytes.Equal) {
		t.Fatal("other records than were written")
	}
	if p.skipped != 0 {
		t.Errorf("skipped %d bytes of an intact segment", p.skipped)
	}
}

func TestScanSegment(t *testing.T) {
	s := newSegment(3, ID{1}, 10, 100)
	s.commit(5, 1000, 1000, seriesRecord(refRange(0, 5)...), samplesRecord(1000, refRange(0, 5)...))
	s.commit(5, 2000, 2500, samplesRecord(2000, refRange(0, 5)...))
	torn := *s
	torn.b = bytes.Clone(s.b)
	torn.commit(5, 3000, 3000, samplesRecord(3000, refRange(0, 5)...))
	torn.b = torn.b[:len(torn.b)-3]

	for name, b := range map[string][]byte{
		"whole": s.b, "torn": torn.b, "padded": append(bytes.Clone(s.b), make([]byte, 5000)...),
	} {
		t.Run(name, func(t *testing.T) {
			info, err := scanSegment(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			want := segmentInfo{
				Header: s.header, End: s.ends[1], Commits: 2, Samples: 10, FirstCommit: 11, Before: 100, MinT: 1000, MaxT: 2500,
				Last: Mark{Position{3, s.ends[1]}, ID{1}, s.header.Segment, 12, 110},
			}
			if name == "torn" {
				if info.Damaged == 0 {
					t.Error("a torn end is not counted")
				}
				want.Damaged = info.Damaged
			}
			if diff := cmp.Diff(want, info); diff != "" {
				t.Error(diff)
			}
		})
	}
}
