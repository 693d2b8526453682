package remotewrite

import (
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
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
func decode2(r *receivers.Request, body []byte, b *receivers.Batch) error {
	symbols, err := symbolsOf(r, body)
	if err != nil {
		return err
	}
	d := &decoder2{symbols: symbols, r: r, b: b, lb: labels.NewScratchBuilder(16)}
	memory := room{r: r}
	return fields(body, func(number protowire.Number, value []byte) error {
		if number != series2 {
			return nil
		}
		if err := memory.of(value); err != nil {
			return err
		}
		s := &d.series
		s.LabelsRefs, s.Samples, s.Histograms, s.Exemplars = s.LabelsRefs[:0], s.Samples[:0], s.Histograms[:0], s.Exemplars[:0]
		s.Metadata = writev2.Metadata{}
		if err := s.Unmarshal(value); err != nil {
			return fmt.Errorf("read a series: %w", err)
		}
		return d.append()
	})
}

// symbolsOf reads the table of symbols, which may be anywhere in the message.
func symbolsOf(r *receivers.Request, body []byte) ([]string, error) {
	count, bytes := 0, 0
	err := fields(body, func(number protowire.Number, value []byte) error {
		switch {
		case number == series1 || number == metadata1:
			return another(message2)
		case value == nil && (number == symbols2 || number == series2):
			return errKind
		case number == symbols2:
			count, bytes = count+1, bytes+len(value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	const header = 16 // size of a string header in bytes
	if err := r.Take(int64(bytes + header*count)); err != nil {
		return nil, err
	}
	symbols := make([]string, 0, count)
	err = fields(body, func(number protowire.Number, value []byte) error {
		if number == symbols2 {
			symbols = append(symbols, string(value))
		}
		return nil
	})
	if err == nil && (len(symbols) == 0 && bytes > 0 || len(symbols) > 0 && symbols[0] != "") {
		return nil, fmt.Errorf("read the symbols: the first one is not empty")
	}
	return symbols, err
}

type decoder2 struct {
	symbols []string
	r       *receivers.Request
	b       *receivers.Batch
	series  writev2.TimeSeries
	lb      labels.ScratchBuilder
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
