package remotewrite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"hwsagent/receivers"
)

// Fields of io.prometheus.write.v2.Request.
const (
	symbols2 protowire.Number = 4
	series2  protowire.Number = 5
)

// decode2 adds the samples of an io.prometheus.write.v2.Request to the batch, with one series at a time as an object.
func (h *handler) decode2(r *receivers.Request, body []byte, b *receivers.Batch) error {
	d := h.spare2.Take()
	if d == nil {
		d = &decoder2{lb: labels.NewScratchBuilder(16)}
	}
	d.r, d.b, d.memory = r, b, room{r: r}
	defer func() {
		if d.reset() {
			h.spare2.Put(d)
		}
	}()
	if err := d.table.read(r, body); err != nil {
		return err
	}
	return fields(body, func(number protowire.Number, value []byte) error {
		if number != series2 {
			return nil
		}
		return d.add(value)
	})
}

// reset releases what belongs to the request. It reports false if the decoder is too large to be kept.
func (d *decoder2) reset() bool {
	clear(d.table.bytes)
	*d = decoder2{
		table: symbolTable{bytes: d.table.bytes[:0]}, lb: d.lb, key: d.key[:0],
		plain: plain2{refs: d.plain.refs[:0], floats: d.plain.floats[:0]},
	}
	return cap(d.table.bytes) <= spareSymbols && cap(d.plain.refs) <= spareSymbols && cap(d.plain.floats) <= spareSymbols
}

// spareSymbols is how many symbols there is room for in a decoder that is kept.
const spareSymbols = 16 << 10

// symbolTable is the table of symbols of a request. Most requests need only their bytes.
type symbolTable struct {
	bytes [][]byte // parts of the body
	texts []string // nil until they are needed
}

// read reads the table of symbols, which may be anywhere in the message.
func (t *symbolTable) read(r *receivers.Request, body []byte) error {
	const header, least = 24 + 16, 256 // bytes of a slice and a string; symbols
	size, room := 0, 0
	err := fields(body, func(number protowire.Number, value []byte) error {
		switch {
		case number == series1 || number == metadata1:
			return another(message2)
		case value == nil && (number == symbols2 || number == series2):
			return errKind
		case number != symbols2:
			return nil
		}
		if len(t.bytes) == room {
			more := max(least, room)
			if err := r.Take(int64(header * more)); err != nil {
				return err
			}
			room += more
			t.bytes = slices.Grow(t.bytes, more)
		}
		t.bytes, size = append(t.bytes, value), size+len(value)
		return nil
	})
	if err != nil {
		return err
	}
	if len(t.bytes) > 0 && len(t.bytes[0]) > 0 {
		return errors.New("read the symbols: the first one is not empty")
	}
	return r.Take(int64(size)) // of the texts
}

// strings returns the symbols as strings.
func (t *symbolTable) strings() []string {
	if t.texts == nil {
		t.texts = make([]string, len(t.bytes))
		for i, b := range t.bytes {
			t.texts[i] = string(b)
		}
	}
	return t.texts
}

type decoder2 struct {
	table   symbolTable
	symbols []string // of table, once a series must be decoded
	r       *receivers.Request
	b       *receivers.Batch
	series  writev2.TimeSeries
	lb      labels.ScratchBuilder
	memory  room

	plain plain2
	key   []byte
	help  text // of the series that was repeated last
	unit  text
}

// text is a symbol as a string.
type text struct {
	ref uint32
	s   string
}

// of returns a symbol as a string. Series with one text follow each other.
func (x *text) of(ref uint32, d *decoder2) string {
	if ref != x.ref {
		x.ref, x.s = ref, d.b.Text(d.table.bytes[ref])
	}
	return x.s
}

// maxKey bounds the labels of a series that can be found by their bytes: each reference may name the longest symbol.
const maxKey = 64 << 10

// setKey sets the key of the plain series: its labels as 1.0 encodes them. It reports false for a series that must be
// decoded, because a reference is not in the table or the labels are too long.
func (d *decoder2) setKey() bool {
	p, n := &d.plain, uint32(len(d.table.bytes)) // #nosec G115 -- a body has fewer symbols
	if len(p.refs)%2 != 0 || p.help >= n || p.unit >= n {
		return false
	}
	d.key = d.key[:0]
	for i := 0; i < len(p.refs); i += 2 {
		if p.refs[i] >= n || p.refs[i+1] >= n {
			return false
		}
		name, value := d.table.bytes[p.refs[i]], d.table.bytes[p.refs[i+1]]
		if len(d.key)+len(name)+len(value) > maxKey {
			return false
		}
		d.key = append(d.key, tagMessage1)
		d.key = protowire.AppendVarint(d.key, uint64(protowire.SizeBytes(len(name))+protowire.SizeBytes(len(value))+2)) // #nosec G115 -- lengths
		d.key = protowire.AppendBytes(append(d.key, tagMessage1), name)
		d.key = protowire.AppendBytes(append(d.key, tagMessage2), value)
	}
	return true
}

// described returns the metadata of the plain series.
func (d *decoder2) described() metadata.Metadata {
	kind := writev2.TimeSeries{Metadata: writev2.Metadata{Type: writev2.Metadata_MetricType(d.plain.kind)}}
	var none [1]string
	meta, _ := kind.ToMetadata(none[:]) // fails for references only
	meta.Help, meta.Unit = d.help.of(d.plain.help, d), d.unit.of(d.plain.unit, d)
	return meta
}

// add adds the series of one message. It decodes the labels only if the receiver does not know them.
func (d *decoder2) add(message []byte) error {
	if err := d.memory.of(message); err != nil {
		return err
	}
	plain := d.plain.read(message) && d.setKey()
	if plain {
		if s := d.b.Find(d.key); s != nil {
			if err := d.b.Repeat(s, "", d.described()); err != nil {
				return err
			}
			for _, p := range d.plain.floats {
				if err := d.b.Append(p.st, p.t, p.v, nil, nil); err != nil {
					return err
				}
			}
			return nil
		}
	}
	s := &d.series
	s.LabelsRefs, s.Samples, s.Histograms, s.Exemplars = s.LabelsRefs[:0], s.Samples[:0], s.Histograms[:0], s.Exemplars[:0]
	s.Metadata = writev2.Metadata{}
	if err := s.Unmarshal(message); err != nil {
		return fmt.Errorf("read a series: %w", err)
	}
	d.symbols = d.table.strings()
	if err := d.append(); err != nil {
		return err
	}
	if plain {
		d.b.Learn(d.key)
	}
	return nil
}

// append adds the series that was decoded last.
func (d *decoder2) append() error {
	s := &d.series
	if err := d.begin(); err != nil {
		return err
	}
	for i := range s.Samples {
		p := &s.Samples[i]
		if err := d.b.Append(p.StartTimestamp, p.Timestamp, p.Value, nil, nil); err != nil {
			return err
		}
	}
	for i := range s.Histograms {
		p := &s.Histograms[i]
		var err error
		if p.IsFloatHistogram() {
			err = d.b.Append(p.StartTimestamp, p.Timestamp, 0, nil, p.ToFloatHistogram())
		} else {
			err = d.b.Append(p.StartTimestamp, p.Timestamp, 0, p.ToIntHistogram(), nil)
		}
		if err != nil {
			return err
		}
	}
	for i := range s.Exemplars {
		if d.check(s.Exemplars[i].LabelsRefs) != nil {
			d.b.LongExemplars(1)
			continue
		}
		e, err := s.Exemplars[i].ToExemplar(&d.lb, d.symbols)
		if err != nil {
			return fmt.Errorf("read an exemplar: %w", err)
		}
		if err := d.b.AppendExemplar(e); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the series that was decoded last the current one of the batch.
func (d *decoder2) begin() error {
	s := &d.series
	if why := d.check(s.LabelsRefs); why != nil {
		return d.b.SeriesBeyond(d.name(s.LabelsRefs), why)
	}
	ls, err := s.ToLabels(&d.lb, d.symbols)
	if err != nil {
		return fmt.Errorf("read the labels of a series: %w", err)
	}
	meta, err := s.ToMetadata(d.symbols)
	if err != nil {
		return fmt.Errorf("read the metadata of a series: %w", err)
	}
	return d.b.Series(ls, "", meta)
}

// check returns why references must not become labels, nil if they may: few bytes would turn into very large labels,
// because each may name the longest symbol once more.
func (d *decoder2) check(refs []uint32) *receivers.Refusal {
	if why := d.r.CheckCount(len(refs)/2 - 1); why != nil {
		return why
	}
	for i := 0; i+1 < len(refs); i += 2 {
		name, value := d.symbol(refs[i]), d.symbol(refs[i+1])
		if why := d.r.CheckLabel(name, len(name), len(value)); why != nil {
			return why
		}
	}
	return nil
}

// name returns the name of the series with these labels, "" if it has none.
func (d *decoder2) name(refs []uint32) string {
	for i := 0; i+1 < len(refs); i += 2 {
		if d.symbol(refs[i]) == model.MetricNameLabel {
			return d.symbol(refs[i+1])
		}
	}
	return ""
}

// symbol returns the symbol of a reference, "" for one behind the end of the table.
func (d *decoder2) symbol(ref uint32) string {
	if int(ref) < len(d.symbols) {
		return d.symbols[ref]
	}
	return ""
}
