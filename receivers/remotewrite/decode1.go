package remotewrite

import (
	"bytes"
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"
	"google.golang.org/protobuf/encoding/protowire"

	"hwsagent/receivers"
)

// Fields of prometheus.WriteRequest.
const (
	series1   protowire.Number = 1
	metadata1 protowire.Number = 3
)

// decode1 adds the samples of a prometheus.WriteRequest to the batch, with one series at a time as an object. It
// returns the metadata of families, to be recorded when the request is stored.
func (h *handler) decode1(r *receivers.Request, body []byte, b *receivers.Batch) (said []prompb.MetricMetadata, err error) {
	d := &decoder1{h: h, r: r, b: b, lb: labels.NewScratchBuilder(16), memory: room{r: r}, described: !h.families.empty()}
	err = fields(body, func(number protowire.Number, value []byte) error {
		switch {
		case number == symbols2 || number == series2:
			return another(message1)
		case value == nil && (number == series1 || number == metadata1):
			return errKind
		}
		switch number {
		case series1:
			return d.add(value)
		case metadata1:
			m, err := metadataOf(r, value)
			said = append(said, m)
			return err
		}
		return nil
	})
	return said, err
}

type decoder1 struct {
	h      *handler
	r      *receivers.Request
	b      *receivers.Batch
	series prompb.TimeSeries
	floats []prompb.Sample
	lb     labels.ScratchBuilder
	memory room

	described bool   // there is metadata
	name      []byte // of the series that was repeated last
	family    string // of the series with that name
	meta      metadata.Metadata
}

// describe sets the family and the metadata of the series with these labels. Series with one name follow each other.
func (d *decoder1) describe(key []byte) {
	if !d.described {
		return
	}
	if name := nameOf(key); d.name == nil || !bytes.Equal(name, d.name) {
		d.name = name
		d.family, d.meta = d.h.families.of(string(name))
	}
}

// add adds the series of one message. It decodes the labels only if the receiver does not know them.
func (d *decoder1) add(message []byte) error {
	if len(message) > maxSeriesBytes {
		if name, why, samples := beyond1(d.r, message); why != nil {
			return refuse1(d.b, name, why, samples)
		}
	}
	if err := d.memory.of(message); err != nil {
		return err
	}
	var key []byte
	var plain bool
	key, d.floats, plain = floats1(message, d.floats[:0])
	if plain {
		if s := d.b.Find(key); s != nil {
			d.describe(key)
			if err := d.b.Repeat(s, d.family, d.meta); err != nil {
				return err
			}
			return d.append(d.floats)
		}
	}
	series := &d.series
	series.Labels, series.Samples = series.Labels[:0], series.Samples[:0]
	series.Exemplars, series.Histograms = series.Exemplars[:0], series.Histograms[:0]
	if err := series.Unmarshal(message); err != nil {
		return fmt.Errorf("read a series: %w", err)
	}
	ls := series.ToLabels(&d.lb, nil)
	family, meta := d.h.families.of(ls.Get(model.MetricNameLabel))
	if err := d.b.Series(ls, family, meta); err != nil {
		return err
	}
	if err := d.append(series.Samples); err != nil {
		return err
	}
	if plain {
		d.b.Learn(key)
		return nil
	}
	return d.appendOthers()
}

// append adds floats of the current series.
func (d *decoder1) append(floats []prompb.Sample) error {
	for i := range floats {
		if err := d.b.Append(0, floats[i].Timestamp, floats[i].Value, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// appendOthers adds the histograms and the exemplars of the series that was decoded last.
func (d *decoder1) appendOthers() error {
	for i := range d.series.Histograms {
		p := &d.series.Histograms[i]
		var err error
		if p.IsFloatHistogram() {
			err = d.b.Append(0, p.Timestamp, 0, nil, p.ToFloatHistogram())
		} else {
			err = d.b.Append(0, p.Timestamp, 0, p.ToIntHistogram(), nil)
		}
		if err != nil {
			return err
		}
	}
	for i := range d.series.Exemplars {
		if err := d.b.AppendExemplar(d.series.Exemplars[i].ToExemplar(&d.lb, nil)); err != nil {
			return err
		}
	}
	return nil
}

// beyond1 returns why the labels of a series exceed the receiver's limits, nil if they do not, without decoding the
// series: such a message may be too large for that. It also returns the name of the series and the number of its samples.
func beyond1(r *receivers.Request, message []byte) (name string, why *receivers.Refusal, samples int) {
	const labels, floats, histograms = 1, 2, 4 // fields of prometheus.TimeSeries
	n := 0
	err := fields(message, func(number protowire.Number, value []byte) error {
		switch number {
		case floats, histograms:
			samples++
		case labels:
			var pair [3][]byte // by the fields of prometheus.Label: name and value
			n++
			if err := fields(value, func(number protowire.Number, value []byte) error {
				if int(number) < len(pair) {
					pair[number] = value
				}
				return nil
			}); err != nil {
				return err
			}
			if string(pair[1]) == model.MetricNameLabel {
				name = string(pair[2][:min(len(pair[2]), r.Limits().LabelValueBytes)])
			}
			if why == nil {
				why = r.CheckLabel(string(pair[1][:min(len(pair[1]), r.Limits().LabelNameBytes)]), len(pair[1]), len(pair[2]))
			}
		}
		return nil
	})
	if err != nil {
		return "", nil, 0 // the decoder reports the error
	}
	if why == nil {
		why = r.CheckCount(n - 1)
	}
	return name, why, samples
}

// refuse1 adds a series that beyond1 refuses to the batch.
func refuse1(b *receivers.Batch, name string, why *receivers.Refusal, samples int) error {
	if err := b.SeriesBeyond(name, why); err != nil {
		return err
	}
	for range samples {
		if err := b.Append(0, 0, 0, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// metadataBytes is the memory of one entry of the metadata, beside its texts, in a list that grows. Two bytes of a
// message can be an entry.
const metadataBytes = 256

// metadataOf decodes one entry of the metadata.
func metadataOf(r *receivers.Request, value []byte) (m prompb.MetricMetadata, err error) {
	if err := (&room{r: r}).of(value); err != nil {
		return m, err
	}
	if err := r.Take(metadataBytes); err != nil {
		return m, err
	}
	if err := m.Unmarshal(value); err != nil {
		return m, fmt.Errorf("read metadata: %w", err)
	}
	return m, nil
}

// note records the metadata of a request. 1.0 sends it in separate requests, once a minute; it goes into the log with
// the next samples.
func (h *handler) note(said []prompb.MetricMetadata, b *receivers.Batch) {
	for _, m := range said {
		if !h.families.note(m.MetricFamilyName, metadata.Metadata{Type: metricType(m.Type), Unit: m.Unit, Help: m.Help}) {
			b.MetadataUnkept()
		}
	}
}

// metricType returns a type in the log's form.
func metricType(t prompb.MetricMetadata_MetricType) model.MetricType {
	switch t {
	case prompb.MetricMetadata_COUNTER:
		return model.MetricTypeCounter
	case prompb.MetricMetadata_GAUGE:
		return model.MetricTypeGauge
	case prompb.MetricMetadata_HISTOGRAM:
		return model.MetricTypeHistogram
	case prompb.MetricMetadata_GAUGEHISTOGRAM:
		return model.MetricTypeGaugeHistogram
	case prompb.MetricMetadata_SUMMARY:
		return model.MetricTypeSummary
	case prompb.MetricMetadata_INFO:
		return model.MetricTypeInfo
	case prompb.MetricMetadata_STATESET:
		return model.MetricTypeStateset
	}
	return model.MetricTypeUnknown
}
