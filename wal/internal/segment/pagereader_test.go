package segment_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/tsdb/wlog"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
)

// randomRecords are records of many sizes, some longer than a page, some empty.
func randomRecords(rng *rand.Rand, n int) [][]byte {
	var recs [][]byte
	for range n {
		size := rng.IntN(300)
		switch rng.IntN(20) {
		case 0:
			size = rng.IntN(3 * segment.PageSize)
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

func readAll(t *testing.T, p *segment.PageReader) [][]byte {
	t.Helper()
	var recs [][]byte
	for {
		rec, ok, err := p.Next(nil)
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
	for name, compress := range map[string]byte{"none": 0, "snappy": segment.FlagSnappy} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			want := randomRecords(rng, 500)
			var s segmenttest.Builder
			for _, rec := range want {
				s.Record(rec, compress)
			}
			stock := wlog.NewReader(bytes.NewReader(s.B))
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
			var p segment.PageReader
			p.Reset(bytes.NewReader(s.B), int64(len(s.B)), true)
			if !slices.EqualFunc(want, readAll(t, &p), bytes.Equal) {
				t.Fatal("other records than were written")
			}
			if p.Skipped != 0 || p.Offset() != int64(len(s.B)) {
				t.Errorf("skipped %d bytes, ended at %d of %d", p.Skipped, p.Offset(), len(s.B))
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
	var s segmenttest.Builder
	for _, rec := range want {
		s.Record(rec, segment.FlagSnappy)
	}
	var p segment.PageReader
	p.Reset(bytes.NewReader(s.B), 0, false)
	var got [][]byte
	for p.Limit < int64(len(s.B)) {
		p.Limit = min(p.Limit+int64(rng.IntN(2000)), int64(len(s.B)))
		got = append(got, readAll(t, &p)...)
	}
	p.Final = true
	got = append(got, readAll(t, &p)...)
	if !slices.EqualFunc(want, got, bytes.Equal) {
		t.Fatal("other records than were written")
	}
	if p.Skipped != 0 {
		t.Errorf("skipped %d bytes of an intact segment", p.Skipped)
	}
}

func TestScanSegment(t *testing.T) {
	s := segmenttest.New(3, segment.ID{1}, 10, 100)
	s.Commit(5, 1000, 1000, segmenttest.Series(segmenttest.Refs(0, 5)...), segmenttest.Samples(1000, segmenttest.Refs(0, 5)...))
	s.Commit(5, 2000, 2500, segmenttest.Samples(2000, segmenttest.Refs(0, 5)...))
	torn := *s
	torn.B = bytes.Clone(s.B)
	torn.Commit(5, 3000, 3000, segmenttest.Samples(3000, segmenttest.Refs(0, 5)...))
	torn.B = torn.B[:len(torn.B)-3]

	for name, b := range map[string][]byte{
		"whole": s.B, "torn": torn.B, "padded": append(bytes.Clone(s.B), make([]byte, 5000)...),
	} {
		t.Run(name, func(t *testing.T) {
			info, err := segment.Scan(bytes.NewReader(b), 3, int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			want := segment.Contents{
				Header: s.Header, End: s.Ends[1], Commits: 2, Samples: 10, FirstCommit: 11, Before: 100, MinT: 1000, MaxT: 2500,
				Last: segment.Mark{Position: segment.Position{Segment: 3, Offset: s.Ends[1]}, Log: segment.ID{1}, SegmentID: s.Header.Segment, Commit: 12, Total: 110},
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

var errDisk = errors.New("the disk refuses")

// stutter reads a part of what it is asked for, and fails: what an interrupted or failing
// disk may do any number of times before it works again.
type stutter struct {
	io.ReaderAt
	rng   *rand.Rand
	fired int
}

func (s *stutter) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.ReaderAt.ReadAt(p[:s.rng.IntN(len(p)+1)], off)
	if err == nil && n < len(p) {
		s.fired++
		err = errDisk
	}
	return n, err
}

// An error of the disk that passes costs nothing, wherever it happens: also not in a segment
// that is complete.
func TestReadErrorsPass(t *testing.T) {
	const seed = 23
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, final := range []bool{false, true} {
		for round := range 20 {
			var s segmenttest.Builder
			want := randomRecords(rng, 300)
			for i, rec := range want {
				s.Record(rec, segment.FlagSnappy)
				if left := segment.PageSize - len(s.B)%segment.PageSize; i%50 == 49 && left < segment.PageSize {
					s.B = append(s.B, make([]byte, left)...) // padding, as the stock writer makes it
				}
			}
			r := &stutter{ReaderAt: bytes.NewReader(s.B), rng: rng}
			var p segment.PageReader
			p.Reset(r, int64(len(s.B)), final)
			var got [][]byte
			for {
				rec, ok, err := p.Next(nil)
				if err != nil && !errors.Is(err, errDisk) {
					t.Fatal(err)
				}
				if err != nil {
					continue
				}
				if !ok {
					break
				}
				got = append(got, append([]byte{}, rec...))
			}
			if !slices.EqualFunc(want, got, bytes.Equal) || p.Skipped != 0 || r.fired == 0 {
				t.Errorf("final %v, round %d: %d of %d records after %d errors, %d bytes skipped", final, round, len(got), len(want), r.fired, p.Skipped)
			}
		}
	}
}
