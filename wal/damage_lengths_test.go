package wal

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/tsdb/record"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
)

// allocated is how many bytes a function allocates in all, whether they are kept or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Whatever lengths a segment claims, in records whose checksums are right, reading it
// takes little memory, and what stands beside is delivered.
func TestHostileLengths(t *testing.T) {
	const (
		huge    = 1 << 60
		endless = "a record without end"
	)
	number := func(b []byte, ns ...uint64) []byte {
		for _, n := range ns {
			b = binary.AppendUvarint(b, n)
		}
		return b
	}
	claim := func(n uint64) []byte { // a snappy block that says it is so long
		return append(binary.AppendUvarint(nil, n), snappy.Encode(nil, make([]byte, 100))[1:]...)
	}
	histogram := func(tail []byte) []byte { // up to the spans
		b := []byte{byte(record.HistogramSamplesV2)}
		b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, 1), 1000), 0)
		b = binary.AppendVarint(append(b, 0), 3)        // hint, schema
		b = append(b, make([]byte, 8)...)               // threshold
		b = append(number(b, 1, 1), make([]byte, 8)...) // counts, sum
		return append(append(b, tail...), make([]byte, 50)...)
	}
	plain := map[string][]byte{
		"labels of a series":     append([]byte{byte(record.Series)}, number(make([]byte, 8), huge)...),
		"length of a label":      append([]byte{byte(record.Series)}, number(make([]byte, 8), 1, huge)...),
		"fields of metadata":     number([]byte{byte(record.Metadata)}, 1, 0, huge),
		"length of metadata":     append(number([]byte{byte(record.Metadata), 1, 0}, 1, 4), append([]byte("HELP"), number(nil, huge)...)...),
		"length of a family":     number([]byte{segment.TypeFamily}, 1, huge),
		"references that end":    number([]byte{segment.TypeEnded}, huge, 1<<63),
		"spans":                  histogram(number(nil, huge)),
		"negative spans":         histogram(number(nil, 0, huge)),
		"buckets":                histogram(number(nil, 0, 0, huge)),
		"as many spans as bytes": histogram(number(nil, 40)),
		"labels of an exemplar":  append(append([]byte{byte(record.Exemplars)}, make([]byte, 16)...), append([]byte{2, 2}, number(make([]byte, 8), huge)...)...),
		"a short sample":         {byte(record.SamplesV2), 2, 2, 2, 0},
		"a short exemplar":       {byte(record.Exemplars), 2, 2},
		"nothing":                {byte(record.SamplesV2)},
		"no histogram":           {byte(record.HistogramSamplesV2)},
		"no exemplar":            {byte(record.Exemplars)},
	}
	packed := map[string]struct {
		flags byte
		rec   []byte
	}{
		"snappy, 1 TiB":    {segment.FlagSnappy, claim(1 << 40)},
		"snappy, 4 GiB":    {segment.FlagSnappy, claim(1<<32 - 1)},
		"snappy, 63 MiB":   {segment.FlagSnappy, claim(63 << 20)},
		"snappy, 15 MiB":   {segment.FlagSnappy, claim(15 << 20)},
		"snappy, no block": {segment.FlagSnappy, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
	}
	read := func(what string, write func(s *segmenttest.Builder)) {
		t.Helper()
		s := segmenttest.New(1, ID{9}, 0, 0)
		s.Commit(1, 1000, 1000, segmenttest.Series(1), segmenttest.Samples(1000, 1))
		write(s)
		s.Commit(1, 2000, 2000, segmenttest.Samples(2000, 1))
		entries := 0
		n := allocated(func() {
			l := newFakeLog(s)
			c := newSilentCursor(l)
			defer c.close()
			for {
				e, err := c.next(l.head())
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if e == nil {
					return
				}
				entries++
			}
		})
		limit := uint64(segment.MaxRecord + 8<<20)
		if what == endless {
			limit = 8 * segment.MaxRecord // in all, while its buffer grows to maxRecord: no part is more than that and a quarter
		}
		if t.Logf("%s: %d KiB", what, n>>10); n > limit {
			t.Errorf("%s: %d bytes are allocated", what, n)
		}
		if entries < 2 {
			t.Errorf("%s: %d entries are read, there are two that are whole", what, entries)
		}
	}
	for what, rec := range plain {
		read(what, func(s *segmenttest.Builder) { s.Commit(0, 0, 0, rec) })
		read(what+", undeclared", func(s *segmenttest.Builder) { s.Record(rec, 0) }) // debris
	}
	for what, p := range packed {
		read(what, func(s *segmenttest.Builder) {
			var w segment.Pages
			w.Reset(int64(len(s.B)))
			w.Fragments(p.rec, p.flags)
			s.B = append(s.B, w.Buf...)
		})
	}
	read("records of a commit", func(s *segmenttest.Builder) {
		s.Record(segment.AppendCommit(nil, segment.Commit{Number: 2, Records: 1<<32 - 1, Samples: 1, Total: 2}), 0)
	})
	read("samples of a commit", func(s *segmenttest.Builder) {
		s.Record(segment.AppendCommit(nil, segment.Commit{Number: 2, Samples: 1 << 63, Total: 1<<63 + 1}), 0)
	})
	read("a short commit", func(s *segmenttest.Builder) { s.Record([]byte{segment.TypeCommit, 1}, 0) })
	read("an empty record", func(s *segmenttest.Builder) { s.Record(nil, 0) })
	read(endless, func(s *segmenttest.Builder) {
		body := make([]byte, segment.PageSize-segment.FragmentHeaderSize)
		for range (segment.MaxRecord + 1<<20) / segment.PageSize {
			var w segment.Pages
			w.Reset(int64(len(s.B)))
			w.Fragments(body[:segment.PageSize-len(s.B)%segment.PageSize-segment.FragmentHeaderSize], 0)
			w.Buf[0] = segment.FragmentBody
			if len(s.B) < segment.PageSize {
				w.Buf[0] = segment.FragmentHead
			}
			s.B = append(s.B, w.Buf...)
		}
	})
}
