package segment

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/tsdb/wlog"
)

// TestStockReaderReadsPages builds pages in pieces of any size, and compares what
// Prometheus' reader finds in them: record boundaries fall on every place of a page,
// its last few bytes included.
func TestStockReaderReadsPages(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var segment []byte
	var want [][]byte
	var p Pages
	padded := 0
	for range 3000 {
		p.Reset(int64(len(segment)))
		for range 1 + rnd.IntN(3) {
			left := PageSize - int(p.End()%PageSize)
			rec := make([]byte, rnd.IntN(2000))
			switch rnd.IntN(40) {
			case 0:
				rec = make([]byte, rnd.IntN(100_000))
			case 1, 2, 3: // so that 0 to 8 bytes of the page are left
				rec = make([]byte, max(0, left-FragmentHeaderSize-rnd.IntN(9)))
			}
			if rnd.IntN(3) > 0 {
				for i := range rec {
					rec[i] = byte(rnd.Uint32())
				}
			}
			before := p.End()
			p.Record(rec)
			if left := PageSize - before%PageSize; left < FragmentHeaderSize {
				padded++
			}
			want = append(want, rec)
		}
		segment = append(segment, p.Buf...)
	}
	if padded < 10 {
		t.Errorf("only %d paddings: the test does not test what it is for", padded)
	}
	r := wlog.NewReader(bytes.NewReader(segment))
	for i, rec := range want {
		if !r.Next() {
			t.Fatalf("no record %d: %v", i, r.Err())
		}
		if !bytes.Equal(r.Record(), rec) {
			t.Fatalf("record %d differs: %d bytes, want %d", i, len(r.Record()), len(rec))
		}
	}
	if r.Next() || r.Err() != nil {
		t.Errorf("after the last record: %v", r.Err())
	}
}
