// Package segmenttest makes segments that the writer never makes, for tests of readers.
package segmenttest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/record"

	"hwsagent/wal/internal/segment"
)

// Builder builds the bytes of one segment without the writer.
type Builder struct {
	B        []byte
	Compress byte // segment.FlagSnappy or 0

	Header segment.Header
	Next   segment.Commit // Number and Total of the last commit
	Ends   []int64        // of each commit
}

// New returns an empty segment of that number in a log; commit and total are those of the last commit before it.
func New(number int, log segment.ID, commit, total uint64) *Builder {
	s := &Builder{Compress: segment.FlagSnappy}
	s.Header = segment.Header{
		Version: segment.Version, Log: log, Number: number, CreatedAt: 1_700_000_000_000,
		Commit: commit, Total: total, Found: total,
	}
	binary.BigEndian.PutUint64(s.Header.Segment[:], uint64(number)+77)
	s.Next = segment.Commit{Number: commit, Total: total}
	return s
}

// Start writes the header; Commit calls it first.
func (s *Builder) Start() *Builder {
	if len(s.B) == 0 {
		s.Record(segment.AppendHeader(nil, s.Header), 0)
	}
	return s
}

// Record appends one record as fragments.
func (s *Builder) Record(rec []byte, compress byte) {
	var flags byte
	if compress == segment.FlagSnappy {
		if enc := snappy.Encode(nil, rec); len(enc) < len(rec) {
			rec, flags = enc, segment.FlagSnappy
		}
	}
	for first := true; first || len(rec) > 0; first = false {
		left := segment.PageSize - len(s.B)%segment.PageSize
		if left < segment.FragmentHeaderSize {
			s.B = append(s.B, make([]byte, left)...)
			left = segment.PageSize
		}
		n := min(len(rec), left-segment.FragmentHeaderSize)
		typ := byte(segment.FragmentBody)
		switch {
		case first && n == len(rec):
			typ = segment.FragmentFull
		case first:
			typ = segment.FragmentHead
		case n == len(rec):
			typ = segment.FragmentTail
		}
		s.B = append(s.B, typ|flags)
		s.B = binary.BigEndian.AppendUint16(s.B, uint16(n))
		s.B = binary.BigEndian.AppendUint32(s.B, crc32.Checksum(rec[:n], segment.Castagnoli))
		s.B = append(s.B, rec[:n]...)
		rec = rec[n:]
	}
}

// Commit appends the records and their commit record, which claims that number of samples.
func (s *Builder) Commit(samples uint64, minT, maxT int64, recs ...[]byte) {
	s.Start()
	s.Next.Number++
	s.Next.Records = uint32(len(recs))
	s.Next.Samples = samples
	s.Next.Total += samples
	s.Next.MinT, s.Next.MaxT = minT, maxT
	s.Next.CRC = 0
	for _, rec := range recs {
		s.Next.CRC = crc32.Update(s.Next.CRC, segment.Castagnoli, rec)
		s.Record(rec, s.Compress)
	}
	s.end()
	s.Ends = append(s.Ends, int64(len(s.B)))
}

// end appends the commit record in Next, with the checksum of the records so far.
func (s *Builder) end() {
	c := s.Next
	w := segment.Pages{Start: int64(len(s.B))}
	c.CRC = crc32.Update(c.CRC, segment.Castagnoli, segment.AppendPlace(nil, s.Header.Number, w.Place()))
	s.Record(segment.AppendCommit(nil, c), 0)
}

// Mark returns the mark of the end of the i-th commit, without its number and total.
func (s *Builder) Mark(i int) segment.Mark {
	return segment.Mark{Position: segment.Position{Segment: s.Header.Number, Offset: s.Ends[i]}, Log: s.Header.Log, SegmentID: s.Header.Segment}
}

// Encoder encodes records as the writer does, with start timestamps.
var Encoder = record.Encoder{EnableSTStorage: true}

// Labels returns the labels of the i-th series of a test.
func Labels(i int) labels.Labels {
	return labels.FromStrings("__name__", fmt.Sprintf("metric_%d", i%17), "instance", "host:9100", "n", fmt.Sprint(i))
}

// Series announces the series with these refs.
func Series(refs ...int) []byte {
	var rs []record.RefSeries
	for _, r := range refs {
		rs = append(rs, record.RefSeries{Ref: chunks.HeadSeriesRef(r), Labels: Labels(r)})
	}
	return Encoder.Series(rs, nil)
}

// Samples has one sample of each series at t, with distinct values.
func Samples(t int64, refs ...int) []byte {
	var rs []record.RefSample
	for _, r := range refs {
		rs = append(rs, record.RefSample{Ref: chunks.HeadSeriesRef(r), T: t, V: float64(r) + float64(t)/1e6})
	}
	return Encoder.Samples(rs, nil)
}

// Refs returns the references from, from+1, …, to-1.
func Refs(from, to int) []int {
	var refs []int
	for i := from; i < to; i++ {
		refs = append(refs, i)
	}
	return refs
}

// PadTo appends a commit of one sample that leaves want bytes of its last page.
func (s *Builder) PadTo(t testing.TB, want int, ts int64, ref int) {
	t.Helper()
	try := func(filler int) *Builder {
		next := *s
		next.B = append([]byte(nil), s.B...)
		next.Compress = 0
		// An unknown record type takes any number of bytes, and is skipped.
		rec := append([]byte{250}, make([]byte, filler)...)
		next.Commit(1, ts, ts, Series(ref), rec, Samples(ts, ref))
		next.Compress = s.Compress
		return &next
	}
	aim := (len(s.B)/segment.PageSize+2)*segment.PageSize - want
	for filler := aim - len(try(0).B) - 4*segment.FragmentHeaderSize; filler < aim; filler++ {
		if next := try(filler); len(next.B) == aim {
			*s = *next
			return
		}
	}
	t.Fatalf("cannot leave %d bytes of a page", want)
}

// StaleNaN is the value of a stale marker.
var StaleNaN = math.Float64frombits(0x7ff0000000000002)
