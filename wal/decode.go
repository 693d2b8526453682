package wal

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/tsdb/record"

	"hwsagent/wal/internal/segment"
)

// entryDecoder decodes the records of tsdb/record directly into an Entry. The decoder of
// tsdb/record allocates for each histogram, needs a second pass over the samples, and
// trusts lengths. This one does not allocate in the steady state and is safe on any
// bytes.
type entryDecoder struct {
	series  *seriesTable
	to      *decoded
	builder labels.ScratchBuilder

	// texts holds the help texts, units and family names seen so far, because every segment
	// repeats them with each series of a family. textBytes is the memory that they take.
	texts     map[string]string
	textBytes int
}

// decoded is an entry and the memory of its histograms.
type decoded struct {
	entry  Entry
	ints   arena[intHistogram]
	floats arena[floatHistogram]
}

// maxTextBytes bounds entryDecoder.texts, which is cleared when it is full.
const maxTextBytes = 4 << 20

// text returns b as a string; equal texts share one string.
func (d *entryDecoder) text(b []byte) string {
	if s, ok := d.texts[string(b)]; ok {
		return s
	}
	const entry = 64 // of the map, about
	if d.textBytes += entry + len(b); d.textBytes > maxTextBytes {
		clear(d.texts)
		d.textBytes = entry + len(b)
	}
	s := string(b)
	d.texts[s] = s
	return s
}

var errMalformed = errors.New("record is malformed")

// newEntryDecoder makes a decoder whose series are among these.
func newEntryDecoder(all *seriesMap) *entryDecoder {
	return &entryDecoder{series: newSeriesTable(all), to: &decoded{}, texts: make(map[string]string), builder: labels.NewScratchBuilder(4)}
}

// reset empties the entry and reuses its memory.
func (d *entryDecoder) reset() {
	e := &d.to.entry
	clear(e.Ended) // nothing else may hold them
	*e = Entry{Samples: e.Samples[:0], Histograms: e.Histograms[:0], Exemplars: e.Exemplars[:0], Ended: e.Ended[:0]}
	d.to.ints.used, d.to.floats.used = 0, 0
}

// learn takes only the announcements of a record, which may belong to no valid commit.
func (d *entryDecoder) learn(rec []byte) error {
	switch rec[0] {
	case byte(record.Series):
		return d.announcements(rec[1:])
	case byte(record.Metadata):
		return d.metadata(rec[1:])
	case segment.TypeFamily:
		return d.families(rec[1:])
	}
	return nil
}

// skim takes the announcements of a record of a valid commit, and the ends of series.
func (d *entryDecoder) skim(rec []byte) error {
	if rec[0] == segment.TypeEnded {
		return d.ends(rec[1:], nil)
	}
	return d.learn(rec)
}

// decode takes everything of a record of a valid commit. It skips records of unknown types.
func (d *entryDecoder) decode(rec []byte) error {
	body := rec[1:]
	switch record.Type(rec[0]) {
	case record.Series, record.Metadata, record.Type(segment.TypeFamily):
		return d.learn(rec)
	}
	d.series.settle()
	switch record.Type(rec[0]) {
	case record.SamplesV2:
		return d.floatSamples(body)
	case record.HistogramSamplesV2, record.FloatHistogramSamplesV2:
		return d.histogramSamples(body, record.Type(rec[0]) == record.FloatHistogramSamplesV2)
	case record.Exemplars:
		return d.exemplars(body)
	case record.Type(segment.TypeEnded):
		return d.ends(body, &d.to.entry)
	}
	return nil
}

// ends releases the series that the log does not use any more, and adds them to the entry, if it is not nil.
func (d *entryDecoder) ends(b []byte, e *Entry) error {
	r := segment.Decoder{B: b}
	ref := uint64(0)
	for len(r.B) > 0 && r.Err == nil {
		ref += uint64(r.Varint()) // #nosec G115 -- the difference to the one before
		if s := d.series.take(ref); s != nil {
			d.series.all.release(s)
			if e != nil {
				e.Ended = append(e.Ended, s)
			}
		}
	}
	return r.Err
}

func (d *entryDecoder) announcements(b []byte) error {
	for len(b) > 8 {
		ref := binary.BigEndian.Uint64(b)
		n := labelsLength(b[8:])
		if n < 0 || !d.series.announce(ref, b[8:8+n]) {
			return errMalformed
		}
		b = b[8+n:]
	}
	if len(b) > 0 {
		return errMalformed
	}
	return nil
}

// labelsLength is the length in bytes of the encoded labels at the beginning of b, or -1 if
// b does not hold all of them.
func labelsLength(b []byte) int {
	d := segment.Decoder{B: b}
	for n := d.Uvarint(); n > 0 && d.Err == nil; n-- {
		d.Bytes(d.Uvarint())
		d.Bytes(d.Uvarint())
	}
	if d.Err != nil {
		return -1
	}
	return len(b) - len(d.B)
}

func (d *entryDecoder) metadata(b []byte) error {
	r := segment.Decoder{B: b}
	for len(r.B) > 0 && r.Err == nil {
		ref := r.Uvarint()
		typ := r.Bytes(1)
		var unit, help []byte
		for n := r.Uvarint(); n > 0 && r.Err == nil; n-- {
			name, value := r.Bytes(r.Uvarint()), r.Bytes(r.Uvarint())
			switch string(name) {
			case "UNIT":
				unit = value
			case "HELP":
				help = value
			}
		}
		if r.Err == nil {
			m := metadata.Metadata{Type: record.ToMetricType(typ[0]), Unit: d.text(unit), Help: d.text(help)}
			d.series.describe(ref, func(a *About) { a.Meta = m })
		}
	}
	return r.Err
}

func (d *entryDecoder) families(b []byte) error {
	r := segment.Decoder{B: b}
	for len(r.B) > 0 && r.Err == nil {
		ref := r.Uvarint()
		if name := d.text(r.Bytes(r.Uvarint())); r.Err == nil {
			d.series.describe(ref, func(a *About) { a.Family = name })
		}
	}
	return r.Err
}

// floatSamples decodes floats: the first in full, the others as differences to the previous
// one (ref) and to the first (times).
func (d *entryDecoder) floatSamples(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	r := segment.Decoder{B: b}
	ref, firstT, firstST := r.Varint(), r.Varint(), r.Varint()
	if r.Err != nil || len(r.B) < 8 {
		return errMalformed
	}
	t, st := firstT, firstST
	b = r.B
	for {
		d.sample(uint64(ref), st, t, binary.BigEndian.Uint64(b))
		if b = b[8:]; len(b) == 0 {
			return nil
		}
		var dref, dt int64
		if dref, b = cutVarint(b); len(b) == 0 {
			return errMalformed
		}
		if dt, b = cutVarint(b); len(b) == 0 {
			return errMalformed
		}
		ref += dref
		t = firstT + dt
		marker := b[0]
		b = b[1:]
		switch marker {
		case noStart:
			st = 0
		case sameStart:
		default:
			var dst int64
			dst, b = cutVarint(b)
			st = firstST + dst
		}
		if len(b) < 8 {
			return errMalformed
		}
	}
}

// How a record encodes the start time of a sample after the first.
const (
	noStart   = 0 // no start time
	sameStart = 1 // that of the previous sample; for other values, a difference to the first follows
)

func (d *entryDecoder) sample(ref uint64, st, t int64, bits uint64) {
	s := d.series.lookup(ref)
	if s == nil {
		return // its announcement is lost to damage
	}
	e := &d.to.entry
	e.Samples = append(e.Samples, Sample{Series: s, ST: st, T: t, V: math.Float64frombits(bits)})
}

// cutVarint reads a varint from the front of b and returns the rest, which is empty if b
// does not hold a whole varint.
func cutVarint(b []byte) (int64, []byte) {
	if len(b) > 0 && b[0] < 0x80 { // most differences are small
		return int64(b[0]>>1) ^ -int64(b[0]&1), b[1:]
	}
	v, n := binary.Varint(b)
	if n <= 0 {
		return 0, nil
	}
	return v, b[n:]
}

func (d *entryDecoder) exemplars(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if len(b) < 16 {
		return errMalformed
	}
	ref, t := binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:]))
	r := segment.Decoder{B: b[16:]}
	for len(r.B) > 0 {
		dref, dt, v := r.Varint(), r.Varint(), r.Be64()
		d.builder.Reset()
		for n := r.Uvarint(); n > 0 && r.Err == nil; n-- {
			name, value := r.Bytes(r.Uvarint()), r.Bytes(r.Uvarint())
			d.builder.Add(string(name), string(value))
		}
		if r.Err != nil {
			return errMalformed
		}
		if s := d.series.lookup(ref + uint64(dref)); s != nil {
			d.to.entry.Exemplars = append(d.to.entry.Exemplars, Exemplar{
				Series: s, T: t + dt, V: math.Float64frombits(v), Labels: d.builder.Labels(),
			})
		}
	}
	return nil
}

// histogramSamples decodes histograms with start times: refs and times as in floatSamples.
func (d *entryDecoder) histogramSamples(b []byte, floats bool) error {
	if len(b) == 0 {
		return nil
	}
	r := segment.Decoder{B: b}
	ref, firstT, firstST := r.Varint(), r.Varint(), r.Varint()
	t, st := firstT, firstST
	for first := true; len(r.B) > 0 && r.Err == nil; first = false {
		if !first {
			ref += r.Varint()
			t = firstT + r.Varint()
			switch marker := r.Bytes(1); {
			case r.Err != nil:
			case marker[0] == noStart:
				st = 0
			case marker[0] != sameStart:
				st = firstST + r.Varint()
			}
		}
		d.histogram(&r, uint64(ref), st, t, floats)
	}
	return r.Err
}

// histogram decodes one histogram. It leaves out one with an unknown schema, which could
// not be encoded for a receiver.
func (d *entryDecoder) histogram(r *segment.Decoder, ref uint64, st, t int64, floats bool) {
	h := Histogram{ST: st, T: t}
	var ok bool
	if floats {
		h.FH = d.to.floats.take().decode(r)
		ok = r.Err == nil && readableFloat(h.FH)
	} else {
		h.H = d.to.ints.take().decode(r)
		ok = r.Err == nil && readableInt(h.H)
	}
	if !ok {
		return
	}
	if h.Series = d.series.lookup(ref); h.Series == nil {
		return // its announcement is lost to damage
	}
	d.to.entry.Histograms = append(d.to.entry.Histograms, h)
}
