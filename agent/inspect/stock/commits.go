package stock

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/record"
)

// maxCommit bounds the records that are kept while their commit record is awaited, in bytes.
// hwsagent writes no longer commits.
const maxCommit = 256 << 20

// Sample is one float sample.
type Sample struct {
	Series Series
	ST, T  int64 // milliseconds
	V      float64
}

// Histogram is one native histogram; exactly one of H and FH is set.
type Histogram struct {
	Series Series
	ST, T  int64
	H      *histogram.Histogram
	FH     *histogram.FloatHistogram
}

// Exemplar is one exemplar.
type Exemplar struct {
	Series Series
	T      int64
	V      float64
	Labels labels.Labels
}

// Series has the labels and metadata of a series, as the sample's segment has announced them before the sample.
type Series struct {
	Labels labels.Labels
	About  *About // nil: nothing, or nothing yet
}

// About is the metadata of a series and, if it was announced, its metric family.
type About struct {
	Type, Unit, Help, Family string
}

// Entry is one commit that counts.
type Entry struct {
	Segment    int
	Offset     int64 // where its commit record ends
	Commit     Commit
	Samples    []Sample
	Histograms []Histogram
	Exemplars  []Exemplar

	// Unannounced is how many samples have a reference that their segment does not announce,
	// as far as Prometheus' reader could read it.
	Unannounced int
}

// Commits puts the records of a log together to commits, and yields those that count, in
// their order: whose commit record confirms the records before it, which belong to the log of
// that ID, and whose number is greater than those before. It holds one commit and the series
// of one segment in memory.
type Commits struct {
	Reader *Reader
	Log    ID

	last    uint64
	segment int
	foreign bool // the segment belongs to another log
	about   map[chunks.HeadSeriesRef]*About

	entry   Entry
	crc     uint32
	records uint64
	bytes   int
}

// Next yields the next commit that counts; it is valid until the following call. The error is
// io.EOF after the last one, or the disk's.
func (c *Commits) Next() (*Entry, error) {
	c.reset()
	for {
		rec, err := c.Reader.Next()
		if err != nil {
			return nil, err
		}
		if rec.Segment != c.segment || c.about == nil {
			c.segment, c.foreign, c.about = rec.Segment, false, map[chunks.HeadSeriesRef]*About{}
			c.reset()
		}
		switch {
		case rec.Header != nil:
			c.foreign = rec.Header.Log != c.Log
			c.reset()
		case rec.Commit != nil:
			if c.counts(*rec.Commit, rec) {
				c.last = rec.Commit.Number
				c.entry.Segment, c.entry.Offset, c.entry.Commit = rec.Segment, rec.Offset, *rec.Commit
				return &c.entry, nil
			}
			c.reset()
		default:
			c.add(rec)
		}
	}
}

// counts reports whether the commit record confirms the records before it, where it stands, and is new.
func (c *Commits) counts(r Commit, at *Record) bool {
	var place [16]byte
	binary.BigEndian.PutUint64(place[:8], uint64(at.Segment))
	binary.BigEndian.PutUint64(place[8:], uint64(at.began))
	return !c.foreign && r.Records == c.records && r.CRC == crc32.Update(c.crc, castagnoli, place[:]) &&
		r.Number > c.last
}

func (c *Commits) reset() {
	e := &c.entry
	*e = Entry{Samples: e.Samples[:0], Histograms: e.Histograms[:0], Exemplars: e.Exemplars[:0]}
	c.crc, c.records, c.bytes = 0, 0, 0
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add takes a record of a commit.
func (c *Commits) add(rec *Record) {
	if c.bytes += len(rec.raw); c.bytes > maxCommit {
		return // no commit record confirms it
	}
	c.crc = crc32.Update(c.crc, castagnoli, rec.raw)
	c.records++
	e := &c.entry
	for _, m := range rec.Metadata {
		a := c.own(m.Ref)
		// The strings are in the reader's buffer.
		a.Type, a.Unit, a.Help = string(record.ToMetricType(m.Type)), strings.Clone(m.Unit), strings.Clone(m.Help)
	}
	for _, f := range rec.Families {
		c.own(chunks.HeadSeriesRef(f.Ref)).Family = f.Name
	}
	for _, s := range rec.Samples {
		e.Samples = append(e.Samples, Sample{Series: c.series(s.Ref), ST: s.ST, T: s.T, V: s.V})
	}
	for _, h := range rec.Histograms {
		e.Histograms = append(e.Histograms, Histogram{Series: c.series(h.Ref), ST: h.ST, T: h.T, H: h.H})
	}
	for _, h := range rec.FloatHistograms {
		e.Histograms = append(e.Histograms, Histogram{Series: c.series(h.Ref), ST: h.ST, T: h.T, FH: h.FH})
	}
	for _, x := range rec.Exemplars {
		e.Exemplars = append(e.Exemplars, Exemplar{Series: c.series(x.Ref), T: x.T, V: x.V, Labels: x.Labels})
	}
}

// own is a copy of what is known about a series, for others may have the present one.
func (c *Commits) own(ref chunks.HeadSeriesRef) *About {
	a := &About{}
	if old := c.about[ref]; old != nil {
		*a = *old
	}
	c.about[ref] = a
	return a
}

func (c *Commits) series(ref chunks.HeadSeriesRef) Series {
	ls, ok := c.Reader.Labels(ref)
	if !ok {
		c.entry.Unannounced++
	}
	return Series{Labels: ls, About: c.about[ref]}
}

// String returns the place of an entry and its numbers of samples, in one line.
func (e *Entry) String() string {
	return fmt.Sprintf("commit %d at %s:%d with %d samples, %d histograms and %d exemplars",
		e.Commit.Number, name(e.Segment), e.Offset, len(e.Samples), len(e.Histograms), len(e.Exemplars))
}
