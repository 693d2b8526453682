package pull

import (
	"bufio"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"hwsagent/agent/inputs"
)

// protobufRow prepares a series for protobuf. As in Prometheus' /federate, a family has the name of
// its series, and the series of classic histograms and summaries become untyped families. So they
// may be incomplete, and stay as they are.
func protobufRow(s inputs.Sample) row {
	r := row{Sample: s, name: s.Labels.Get(model.MetricNameLabel), kind: model.MetricTypeUnknown, group: s.Labels}
	r.family = r.name
	switch {
	case native(s) && (s.Meta.Type == model.MetricTypeGaugeHistogram || s.H != nil && s.H.CounterResetHint == histogram.GaugeType || s.FH != nil && s.FH.CounterResetHint == histogram.GaugeType):
		r.kind = model.MetricTypeGaugeHistogram
	case native(s):
		r.kind = model.MetricTypeHistogram
	case s.Meta.Type == model.MetricTypeCounter, s.Meta.Type == model.MetricTypeGauge:
		r.kind = s.Meta.Type
	}
	return r
}

func native(s inputs.Sample) bool { return s.H != nil || s.FH != nil }

// custom reports whether a native histogram has custom buckets, for which protobuf has no
// field.
func custom(s inputs.Sample) bool {
	return s.H != nil && s.H.UsesCustomBuckets() || s.FH != nil && s.FH.UsesCustomBuckets()
}

// writeProtobuf writes rows as delimited families, with one family in memory at a time.
func writeProtobuf(w *bufio.Writer, rows []row, how writing) error {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].shown == rows[0].shown && rows[n].kind == rows[0].kind {
			n++
		}
		if _, err := protodelim.MarshalTo(w, familyOf(rows[:n], how)); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// familyOf makes a family of rows that share one.
func familyOf(rows []row, how writing) *dto.MetricFamily {
	f := &dto.MetricFamily{Name: proto.String(model.EscapeName(rows[0].name, how.escape)), Type: protobufType(rows[0].kind).Enum()}
	if help := rows[0].Meta.Help; help != "" {
		f.Help = proto.String(strings.ToValidUTF8(help, "\uFFFD"))
	}
	for i := range rows {
		r := &rows[i]
		m := &dto.Metric{}
		r.Labels.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel {
				m.Label = append(m.Label, &dto.LabelPair{Name: proto.String(labelName(r.Labels, l.Name, how.escape)), Value: proto.String(l.Value)})
			}
		})
		switch r.kind {
		case model.MetricTypeCounter:
			m.Counter = &dto.Counter{Value: proto.Float64(r.V)}
		case model.MetricTypeGauge:
			m.Gauge = &dto.Gauge{Value: proto.Float64(r.V)}
		case model.MetricTypeHistogram, model.MetricTypeGaugeHistogram:
			m.Histogram = protobufHistogram(r.H, r.FH)
		default:
			m.Untyped = &dto.Untyped{Value: proto.Float64(r.V)}
		}
		if how.times {
			m.TimestampMs = proto.Int64(r.T)
		}
		f.Metric = append(f.Metric, m)
	}
	return f
}

func protobufType(kind model.MetricType) dto.MetricType {
	switch kind {
	case model.MetricTypeCounter:
		return dto.MetricType_COUNTER
	case model.MetricTypeGauge:
		return dto.MetricType_GAUGE
	case model.MetricTypeHistogram:
		return dto.MetricType_HISTOGRAM
	case model.MetricTypeGaugeHistogram:
		return dto.MetricType_GAUGE_HISTOGRAM
	}
	return dto.MetricType_UNTYPED
}

// protobufHistogram converts h, or fh if h is nil.
func protobufHistogram(h *histogram.Histogram, fh *histogram.FloatHistogram) *dto.Histogram {
	var out *dto.Histogram
	if h != nil {
		out = &dto.Histogram{
			SampleCount: proto.Uint64(h.Count), SampleSum: proto.Float64(h.Sum), Schema: proto.Int32(h.Schema),
			ZeroThreshold: proto.Float64(h.ZeroThreshold), ZeroCount: proto.Uint64(h.ZeroCount),
			PositiveSpan: spans(h.PositiveSpans), PositiveDelta: h.PositiveBuckets,
			NegativeSpan: spans(h.NegativeSpans), NegativeDelta: h.NegativeBuckets,
		}
	} else {
		out = &dto.Histogram{
			SampleCountFloat: proto.Float64(fh.Count), SampleSum: proto.Float64(fh.Sum), Schema: proto.Int32(fh.Schema),
			ZeroThreshold: proto.Float64(fh.ZeroThreshold), ZeroCountFloat: proto.Float64(fh.ZeroCount),
			PositiveSpan: spans(fh.PositiveSpans), PositiveCount: fh.PositiveBuckets,
			NegativeSpan: spans(fh.NegativeSpans), NegativeCount: fh.NegativeBuckets,
		}
	}
	if len(out.PositiveSpan)+len(out.NegativeSpan) == 0 {
		// Without buckets, an empty span marks it as a native histogram.
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
	return out
}

func spans(all []histogram.Span) (out []*dto.BucketSpan) {
	for _, s := range all {
		out = append(out, &dto.BucketSpan{Offset: proto.Int32(s.Offset), Length: proto.Uint32(s.Length)})
	}
	return out
}
