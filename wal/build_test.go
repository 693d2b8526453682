package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/record"
)

// segmentBuilder makes the bytes of one segment without the writer, so that tests of
// the reader can make what the writer never would.
type segmentBuilder struct {
	b        []byte
	compress byte // flagSnappy, flagZstd or 0

	header Header
	next   commitRecord // Number and Total of the last commit
	ends   []int64      // of each commit

	zstd *zstd.Encoder
}

func (s *segmentBuilder) encodeZstd(rec []byte) []byte {
	if s.zstd == nil {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err)
		}
		s.zstd = w
	}
	return s.zstd.EncodeAll(rec, nil)
}

func newSegment(number int, log ID, commit, total uint64) *segmentBuilder {
	s := &segmentBuilder{compress: flagSnappy}
	s.header = Header{
		Version: formatVersion, Log: log, Number: number, CreatedAt: 1_700_000_000_000,
		Commit: commit, Total: total, Found: total,
	}
	binary.BigEndian.PutUint64(s.header.Segment[:], uint64(number)+77)
	s.next = commitRecord{Number: commit, Total: total}
	return s
}

// start writes the header; commit calls it first.
func (s *segmentBuilder) start() *segmentBuilder {
	if len(s.b) == 0 {
		s.record(appendHeader(nil, s.header), 0)
	}
	return s
}

// record appends one record as fragments.
func (s *segmentBuilder) record(rec []byte, compress byte) {
	var flags byte
	switch compress {
	case flagSnappy:
		if enc := snappy.Encode(nil, rec); len(enc) < len(rec) {
			rec, flags = enc, flagSnappy
		}
	case flagZstd:
		rec, flags = s.encodeZstd(rec), flagZstd
	}
	for first := true; first || len(rec) > 0; first = false {
		left := pageSize - len(s.b)%pageSize
		if left < fragmentHeaderSize {
			s.b = append(s.b, make([]byte, left)...)
			left = pageSize
		}
		n := min(len(rec), left-fragmentHeaderSize)
		typ := byte(fragmentBody)
		switch {
		case first && n == len(rec):
			typ = fragmentFull
		case first:
			typ = fragmentHead
		case n == len(rec):
			typ = fragmentTail
		}
		s.b = append(s.b, typ|flags)
		s.b = binary.BigEndian.AppendUint16(s.b, uint16(n))
		s.b = binary.BigEndian.AppendUint32(s.b, crc32.Checksum(rec[:n], castagnoli))
		s.b = append(s.b, rec[:n]...)
		rec = rec[n:]
	}
}

// commit appends the records and their commit record, which says that they hold so
// many samples.
func (s *segmentBuilder) commit(samples uint64, minT, maxT int64, recs ...[]byte) {
	s.start()
	s.next.Number++
	s.next.Records = uint32(len(recs))
	s.next.Samples = samples
	s.next.Total += samples
	s.next.MinT, s.next.MaxT = minT, maxT
	s.next.CRC = 0
	for _, rec := range recs {
		s.next.CRC = crc32.Update(s.next.CRC, castagnoli, rec)
		s.record(rec, s.compress)
	}
	s.record(appendCommit(nil, s.next), 0)
	s.ends = append(s.ends, int64(len(s.b)))
}

func (s *segmentBuilder) mark(i int) Mark {
	return Mark{Position: Position{s.header.Number, s.ends[i]}, Log: s.header.Log, SegmentID: s.header.Segment}
}

var testEncoder = record.Encoder{EnableSTStorage: true}

// testLabels are the labels of the i-th series of a test.
func testLabels(i int) labels.Labels {
	return labels.FromStrings("__name__", fmt.Sprintf("metric_%d", i%17), "instance", "host:9100", "n", fmt.Sprint(i))
}

// seriesRecord announces the series with these refs.
func seriesRecord(refs ...int) []byte {
	var rs []record.RefSeries
	for _, r := range refs {
		rs = append(rs, record.RefSeries{Ref: chunks.HeadSeriesRef(r), Labels: testLabels(r)})
	}
	return testEncoder.Series(rs, nil)
}

// samplesRecord has one sample of each series at t; the values tell them apart.
func samplesRecord(t int64, refs ...int) []byte {
	var rs []record.RefSample
	for _, r := range refs {
		rs = append(rs, record.RefSample{Ref: chunks.HeadSeriesRef(r), T: t, V: float64(r) + float64(t)/1e6})
	}
	return testEncoder.Samples(rs, nil)
}

func refRange(from, to int) []int {
	var refs []int
	for i := from; i < to; i++ {
		refs = append(refs, i)
	}
	return refs
}

// padTo appends a commit of one sample whose end leaves want bytes of its page.
func (s *segmentBuilder) padTo(t testing.TB, want int, ts int64, ref int) {
	t.Helper()
	try := func(filler int) *segmentBuilder {
		next := *s
		next.b = append([]byte(nil), s.b...)
		next.compress = 0
		// An unknown record type takes any number of bytes, and is skipped.
		rec := append([]byte{250}, make([]byte, filler)...)
		next.commit(1, ts, ts, seriesRecord(ref), rec, samplesRecord(ts, ref))
		next.compress = s.compress
		return &next
	}
	aim := (len(s.b)/pageSize+2)*pageSize - want
	for filler := aim - len(try(0).b) - 4*fragmentHeaderSize; filler < aim; filler++ {
		if next := try(filler); len(next.b) == aim {
			*s = *next
			return
		}
	}
	t.Fatalf("cannot leave %d bytes of a page", want)
}

var staleNaN = math.Float64frombits(0x7ff0000000000002)
