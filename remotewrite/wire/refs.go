package wire

import (
	"encoding/binary"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// references writes the parts of a request of remote write 2.0 that refer to its symbol table:
// labels, exemplars and metadata. newReferences makes one.
//
// It looks up the texts of a series in the table each time. That is faster than it seems:
// neighbours in the log share most of their labels, and a label that the previous series has
// at the same place needs no lookup. So 2.0 needs no memory per series beyond that of 1.0,
// and nothing to discard when a series ends.
type references struct {
	symbols   *symbols
	before    []labelRefs        // of the series encoded last
	meta      *metadata.Metadata // the metadata encoded last
	metaBytes []byte             // its encoding
}

// labelRefs is a label and its references in this request.
type labelRefs struct {
	label       labels.Label
	name, value uint32
}

func newReferences() *references { return &references{symbols: newSymbols()} }

// reset begins another request. It releases all texts of the previous one.
func (r *references) reset() {
	r.symbols.reset()
	clear(r.before)
	r.before, r.meta = r.before[:0], nil
}

// labels appends the references of a series' labels.
func (r *references) labels(dst []byte, s *Series) []byte {
	dst, at := open(dst, keySeriesRefs, 1)
	i := 0
	for part := range s.Form.parts(V2, s.Labels) {
		for j := range part {
			l := &part[j]
			if i == len(r.before) {
				r.before = append(r.before, labelRefs{})
			}
			b := &r.before[i]
			i++
			if b.label.Name != l.Name {
				b.label.Name, b.name = l.Name, r.symbols.ref(l.Name)
			}
			if b.label.Value != l.Value {
				b.label.Value, b.value = l.Value, r.symbols.ref(l.Value)
			}
			dst = appendRef(dst, b.name)
			dst = appendRef(dst, b.value)
		}
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

// metadata appends the metadata of a series' metric family, unless it is empty.
func (r *references) metadata(dst []byte, m *metadata.Metadata) []byte {
	if m != r.meta {
		r.meta, r.metaBytes = m, r.appendMetadata(r.metaBytes[:0], m)
	}
	return append(dst, r.metaBytes...)
}

func (r *references) appendMetadata(dst []byte, m *metadata.Metadata) []byte {
	typ := writev2.FromMetadataType(m.Type)
	if typ == writev2.Metadata_METRIC_TYPE_UNSPECIFIED && m.Help == "" && m.Unit == "" {
		return dst
	}
	dst, at := open(dst, keySeriesMetadata, 1)
	dst = appendVarint(dst, keyMetadataType, uint64(typ)) // #nosec G115 -- an enum, not negative
	dst = appendVarint(dst, keyMetadataHelp, uint64(r.symbols.ref(validText(m.Help))))
	dst = appendVarint(dst, keyMetadataUnit, uint64(r.symbols.ref(validText(m.Unit))))
	return shut(dst, at, 1)
}

// appendRef is binary.AppendUvarint, optimised for small numbers.
func appendRef(dst []byte, ref uint32) []byte {
	switch {
	case ref < 1<<7:
		return append(dst, byte(ref))
	case ref < 1<<14:
		return append(dst, byte(ref)|0x80, byte(ref>>7))
	}
	return binary.AppendUvarint(dst, uint64(ref))
}
