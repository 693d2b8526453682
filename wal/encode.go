package wal

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/record"

	"hwsagent/wal/internal/segment"
)

// maxCommitMetadata bounds the metadata and families in one commit, in bytes; those of
// further series are announced by later commits with samples of these series.
const maxCommitMetadata = 32 << 20

// recordBytes is the approximate size, in bytes, at which the encoder begins another record of
// the same type. It is the size of the blocks that Snappy compresses independently: longer records
// would not compress better, and would only need larger buffers, which are kept.
const recordBytes = 64 << 10

// maxScratch is how many series the encoder's lists of announcements keep room for. Most commits announce none, and the first one
// of a segment all of its series.
const maxScratch = 1024

// encoder turns batches into the bytes of commits. Its buffers are reused.
type encoder struct {
	pages  segment.Pages
	number int // of the segment
	enc    record.Encoder

	rec       []byte // the record being encoded
	crc       uint32 // over the records of the commit so far
	records   uint32
	bytes     int       // of these records, uncompressed
	announced announced // since reset
	ended     int       // references of seriesMap.ended whose end is announced since reset

	series   []*Series
	metadata []record.RefMetadata
	families []segment.Family
}

// announced counts announcements of series.
type announced struct {
	series int
	bytes  int64 // with those of metadata and families
}

func (a announced) plus(b announced) announced {
	return announced{series: a.series + b.series, bytes: a.bytes + b.bytes}
}

// again estimates how many of the bytes another segment would take for the series among these that are alive, if alive series
// are.
func (a announced) again(alive int) int64 {
	if a.series <= alive {
		return a.bytes
	}
	return a.bytes / int64(a.series) * int64(alive)
}

// reset begins encoding at offset start of the segment of that number.
func (e *encoder) reset(number int, start int64) {
	e.number = number
	e.enc.EnableSTStorage = true
	e.pages.Reset(start)
	e.announced, e.ended = announced{}, 0
}

// header appends a segment's header. It is not compressed, so that people can find and
// read it in a dump.
func (e *encoder) header(h segment.Header) {
	e.rec = segment.AppendHeader(e.rec[:0], h)
	e.pages.Fragments(e.rec, 0)
}

// errHugeCommit means that a commit is larger than readers accept. The caller must commit
// smaller parts.
var errHugeCommit = fmt.Errorf("commit takes more than %d bytes", segment.MaxCommit)

// commit appends one commit, with announcements of the series that were not announced in
// this epoch, and marks them in m as announced. If the caller then does not write the
// encoded bytes, it must begin another epoch. The error is errHugeCommit.
func (e *encoder) commit(b *batch, m *seriesMap, epoch uint32) error {
	e.crc, e.records, e.bytes = 0, 0, 0
	e.end(b, m)
	e.announce(b, m, epoch)
	e.samples(b)
	if e.bytes > segment.MaxCommit {
		return errHugeCommit
	}
	e.rec = segment.AppendPlace(e.rec[:0], e.number, e.pages.Place())
	c := segment.Commit{
		Number: b.number, Records: e.records, CRC: crc32.Update(e.crc, segment.Castagnoli, e.rec),
		Samples: b.count(), Total: b.total,
	}
	if c.Samples > 0 {
		c.MinT, c.MaxT = b.minT, b.maxT
	}
	e.rec = segment.AppendCommit(e.rec[:0], c)
	e.pages.Fragments(e.rec, 0)
	return nil
}

// emit appends the record in e.rec to the commit, unless the commit has become too large to
// be written.
func (e *encoder) emit() {
	if e.bytes += len(e.rec); e.bytes > segment.MaxCommit {
		return
	}
	e.crc = crc32.Update(e.crc, segment.Castagnoli, e.rec)
	e.records++
	e.pages.Record(e.rec)
}

// minEnded is the number of series whose end any commit may announce.
const minEnded = 4096

// end appends records of series that have ended. It announces at most as many as the commit has samples, or minEnded, because
// readers at the head of the log hold them until all have read the commit. Each series has had a sample, so none waits
// for ever. A batch begun before the end may still have samples of a series: each commit with them announces it again.
func (e *encoder) end(b *batch, m *seriesMap) {
	for most := e.ended + max(minEnded, len(b.samples)+len(b.histograms)+len(b.floats)); ; {
		e.rec = append(e.rec[:0], segment.TypeEnded)
		m.mu.Lock()
		last := uint64(0)
		for _, ref := range m.ended[e.ended:min(most, len(m.ended))] {
			if m.byRef.Get(ref) == nil { // it has not come back
				e.rec = binary.AppendVarint(e.rec, int64(ref-last)) // #nosec G115 -- a difference
				last = ref
			}
			if e.ended++; len(e.rec) >= recordBytes {
				break
			}
		}
		m.mu.Unlock()
		if last == 0 {
			return
		}
		e.emit()
	}
}

// announce appends series, metadata and family records. Each commit announces the series that the appender has forgotten, because
// their end may be in the log.
func (e *encoder) announce(b *batch, m *seriesMap, epoch uint32) {
	e.series, e.metadata, e.families = e.series[:0], e.metadata[:0], e.families[:0]
	metadata := 0 // bytes
	m.mu.Lock()
	for _, s := range b.touched {
		if !s.live {
			s = m.nowLocked(s)
		}
		again := s.live && s.epoch == epoch // readers may know other metadata of the series
		if !again {
			s.epoch, s.described = epoch, false
			e.series = append(e.series, s)
		}
		if !s.described && metadata <= maxCommitMetadata {
			about := cmp.Or(s.said, m.unknown)
			s.described = true
			metadata += about.bytes()
			if again || !about.Meta.IsEmpty() {
				e.metadata = append(e.metadata, record.RefMetadata{
					Ref: headRef(s.ref), Type: record.GetMetricType(about.Meta.Type), Unit: about.Meta.Unit, Help: about.Meta.Help,
				})
			}
			if about.Family != "" && (again || about.Family != m.symbols.value(s.labels, model.MetricNameLabel)) {
				e.families = append(e.families, segment.Family{Ref: s.ref, Name: about.Family})
			}
		}
	}
	m.mu.Unlock()
	if len(e.series)+len(e.metadata)+len(e.families) == 0 {
		return
	}

	before := e.pages.End()
	e.announced.series += len(e.series)
	for s, n := e.series, 0; len(s) > 0; s = s[n:] {
		n = prefix(s, func(s **Series) int { return 8 + (*s).labels.size() })
		e.rec = append(e.rec[:0], byte(record.Series)) // as record.Encoder writes it
		for _, s := range s[:n] {
			e.rec = m.symbols.announce(binary.BigEndian.AppendUint64(e.rec, s.ref), s.labels)
		}
		e.emit()
	}
	for s, n := e.metadata, 0; len(s) > 0; s = s[n:] {
		n = prefix(s, func(s *record.RefMetadata) int { return 32 + len(s.Unit) + len(s.Help) })
		e.rec = e.enc.Metadata(s[:n], e.rec[:0])
		e.emit()
	}
	for s, n := e.families, 0; len(s) > 0; s = s[n:] {
		n = prefix(s, func(s *segment.Family) int { return 16 + len(s.Name) })
		e.rec = segment.AppendFamilies(e.rec[:0], s[:n])
		e.emit()
	}
	e.announced.bytes += e.pages.End() - before
	clear(e.series) // release the series
	clear(e.metadata)
	if len(e.series) > maxScratch {
		e.series, e.metadata, e.families = nil, nil, nil
	}
}

// samples appends all samples and exemplars.
func (e *encoder) samples(b *batch) {
	for s := b.samples; len(s) > 0; {
		n := min(len(s), recordBytes/16)
		e.rec = e.enc.Samples(s[:n], e.rec[:0])
		e.emit()
		s = s[n:]
	}
	for s, n := b.histograms, 0; len(s) > 0; s = s[n:] {
		n = prefix(s, func(s *record.RefHistogramSample) int { return histogramBytes(s.H) })
		e.rec, _ = e.enc.HistogramSamples(s[:n], e.rec[:0]) // with start times, it leaves none out
		e.emit()
	}
	for s, n := b.floats, 0; len(s) > 0; s = s[n:] {
		n = prefix(s, func(s *record.RefFloatHistogramSample) int { return floatHistogramBytes(s.FH) })
		e.rec, _ = e.enc.FloatHistogramSamples(s[:n], e.rec[:0])
		e.emit()
	}
	for s, n := b.exemplars, 0; len(s) > 0; s = s[n:] {
		n = prefix(s, func(s *record.RefExemplar) int { return 32 + int(s.Labels.ByteSize()) })
		e.rec = e.enc.Exemplars(s[:n], e.rec[:0])
		e.emit()
	}
}

// prefix returns how many of s, at least one, fit into a record.
func prefix[T any](s []T, size func(*T) int) int {
	total := 0
	for i := range s {
		if total += size(&s[i]); total > recordBytes && i > 0 {
			return i
		}
	}
	return len(s)
}

// histogramBytes bounds the encoding of h.
func histogramBytes(h *histogram.Histogram) int {
	return 80 + 10*(len(h.PositiveBuckets)+len(h.NegativeBuckets)+len(h.CustomValues)) + 20*(len(h.PositiveSpans)+len(h.NegativeSpans))
}

// floatHistogramBytes bounds the encoding of h.
func floatHistogramBytes(h *histogram.FloatHistogram) int {
	return 80 + 10*(len(h.PositiveBuckets)+len(h.NegativeBuckets)+len(h.CustomValues)) + 20*(len(h.PositiveSpans)+len(h.NegativeSpans))
}
