package wire

import (
	"encoding/binary"

	"github.com/prometheus/prometheus/model/labels"
)

// references writes what refers to the symbol table of a request of remote write 2.0:
// labels, exemplars and metadata. newReferences makes one.
//
// It looks the texts of a series up in the table each time. That is quicker than it seems:
// neighbours in the log share most of their labels, and a label that the series before has
// at the same place is known already. So a series needs no memory for 2.0 that 1.0 does not
// need, and nothing must be forgotten with it.
type references struct {
	symbols   *symbols
	before    []labelRefs // of the series encoded last
	meta      *series2    // whose metadata was encoded last
	metaBytes []byte      // that metadata, encoded
}

// labelRefs is an encoded label, as in Series.labels, and its references in this request.
type labelRefs struct {
	label       string
	name, value uint32
}

func newReferences() *references { return &references{symbols: newSymbols()} }

// reset begins another request. No text of the one before stays in memory.
func (r *references) reset() {
	r.symbols.reset()
	clear(r.before)
	r.before, r.meta = r.before[:0], nil
}

// labels appends the references of labels that are encoded as in a prompb TimeSeries.
func (r *references) labels(dst []byte, encoded string) []byte {
	dst, at := open(dst, keySeriesRefs, 1)
	for i := 0; encoded != ""; i++ {
		var label string
		label, encoded = cutLabel(encoded)
		if i == len(r.before) {
			r.before = append(r.before, labelRefs{})
		}
		b := &r.before[i]
		if b.label != label {
			name, value := labelTexts(label)
			*b = labelRefs{label, r.symbols.ref(name), r.symbols.ref(value)}
		}
		dst = appendRef(dst, b.name)
		dst = appendRef(dst, b.value)
	}
	return shut(dst, at, 1)
}

func (r *references) exemplar(dst []byte, t int64, v float64, ls labels.Labels) []byte {
	dst, at := open(dst, keySeriesExemplar2, 1)
	if !ls.IsEmpty() {
		var inner int
		dst, inner = open(dst, keyExemplarRefs, 1)
		ls.Range(func(l labels.Label) {
			dst = appendRef(dst, r.symbols.ref(l.Name))
			dst = appendRef(dst, r.symbols.ref(l.Value))
		})
		dst = shut(dst, inner, 1)
	}
	dst = appendDouble(dst, keyExemplarValue, v)
	dst = appendVarint(dst, keyExemplarTime, uint64(t))
	return shut(dst, at, 1)
}

func (r *references) metadata(dst []byte, m *series2) []byte {
	if m != r.meta {
		b, at := open(r.metaBytes[:0], keySeriesMetadata, 1)
		b = appendVarint(b, keyMetadataType, uint64(m.typ))
		b = appendVarint(b, keyMetadataHelp, uint64(r.symbols.ref(m.help)))
		b = appendVarint(b, keyMetadataUnit, uint64(r.symbols.ref(m.unit)))
		r.meta, r.metaBytes = m, shut(b, at, 1)
	}
	return append(dst, r.metaBytes...)
}

// appendRef is binary.AppendUvarint, made for small numbers.
func appendRef(dst []byte, ref uint32) []byte {
	switch {
	case ref < 1<<7:
		return append(dst, byte(ref))
	case ref < 1<<14:
		return append(dst, byte(ref)|0x80, byte(ref>>7))
	}
	return binary.AppendUvarint(dst, uint64(ref))
}

// cutLabel splits the first label off labels as appendLabels wrote them.
func cutLabel(encoded string) (label, rest string) {
	n, at := textLength(encoded[1:])
	end := 1 + at + n
	return encoded[:end], encoded[end:]
}

// labelTexts returns name and value of a label as appendLabels wrote it. Neither is empty
// in a series.
func labelTexts(label string) (name, value string) {
	_, at := textLength(label[1:])
	fields := label[1+at:]
	n, at := textLength(fields[1:])
	name, fields = fields[1+at:1+at+n], fields[1+at+n:]
	n, at = textLength(fields[1:])
	return name, fields[1+at : 1+at+n]
}

// textLength decodes the length at the front of s, and tells how many bytes it takes.
func textLength(s string) (n, size int) {
	if s[0] < 0x80 {
		return int(s[0]), 1
	}
	for i := range len(s) {
		n |= int(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			return n, i + 1
		}
	}
	return 0, len(s) // cannot be: this package encoded it
}
