package translation

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// family holds the points of one metric on their way to the sink.
type family struct {
	*translator

	name  string
	about storage.AOptions
}

// moment holds the fields common to points of all kinds.
type moment struct {
	st, t int64 // milliseconds
	none  bool  // the point has no value
}

func momentOf(p interface {
	StartTimestamp() pcommon.Timestamp
	Timestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}) moment {
	return moment{st: Milliseconds(p.StartTimestamp()), t: Milliseconds(p.Timestamp()), none: p.Flags().NoRecordedValue()}
}

// Milliseconds converts t, in nanoseconds since 1970.
func Milliseconds(t pcommon.Timestamp) int64 { return int64(t) / 1_000_000 } // #nosec G115 -- a time behind 2262 is one before 1970, as in Prometheus

// append appends a float, or a stale marker if there is no value.
func (f *family) append(ls labels.Labels, m moment, v float64, exemplars []exemplar.Exemplar) error {
	if m.none {
		v = math.Float64frombits(value.StaleNaN)
	}
	about := f.about
	about.Exemplars = exemplars
	_, err := f.sink.Append(0, ls, m.st, m.t, v, nil, nil, about)
	return err
}

// appendNative appends a native histogram.
func (f *family) appendNative(attributes pcommon.Map, m moment, h *histogram.Histogram, from pmetric.ExemplarSlice) error {
	ls, about := f.named(attributes), f.about
	var err error
	if about.Exemplars, err = f.exemplars(from); err != nil {
		return err
	}
	_, err = f.sink.Append(0, ls, m.st, m.t, 0, h, nil, about)
	return err
}

// named returns the labels of a point's series if its metric has one series for a point.
func (f *family) named(attributes pcommon.Map) labels.Labels {
	return f.naming.named(f.naming.series(attributes), f.name, "", "")
}

func number(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue() // 0 where there is none
}

// gauge appends a point without its exemplars: Prometheus supports none on gauges.
func (f *family) gauge(p pmetric.NumberDataPoint) error {
	return f.append(f.named(p.Attributes()), momentOf(p), number(p), nil)
}

func (f *family) sum(p pmetric.NumberDataPoint) error {
	exemplars, err := f.exemplars(p.Exemplars())
	if err != nil {
		return err
	}
	return f.append(f.named(p.Attributes()), momentOf(p), number(p), exemplars)
}

func (f *family) summary(p pmetric.SummaryDataPoint) error {
	key := f.key(p.Attributes())
	base, m := f.naming.series(p.Attributes()), momentOf(p)
	if err := f.append(f.naming.named(base, f.name+"_sum", "", ""), m, p.Sum(), nil); err != nil {
		return err
	}
	if err := f.append(f.naming.named(base, f.name+"_count", "", ""), m, float64(p.Count()), nil); err != nil {
		return err
	}
	quantiles := p.QuantileValues()
	if m.none && quantiles.Len() == 0 {
		for _, q := range f.open.end(key).bounds {
			if err := f.append(f.naming.named(base, f.name, "quantile", decimal(q)), m, 0, nil); err != nil {
				return err
			}
		}
		return nil
	}
	f.open.note(key, quantiles.Len(), func(i int) float64 { return quantiles.At(i).Quantile() }, true)
	for _, q := range quantiles.All() {
		if err := f.append(f.naming.named(base, f.name, "quantile", decimal(q.Quantile())), m, q.Value(), nil); err != nil {
			return err
		}
	}
	return nil
}

// histogram appends a point with explicit bounds as classic series.
func (f *family) histogram(p pmetric.HistogramDataPoint) error {
	key := f.key(p.Attributes())
	base, m := f.naming.series(p.Attributes()), momentOf(p)
	bounds, counts := p.ExplicitBounds(), p.BucketCounts()
	var ends parts // series that p does not name
	if m.none && bounds.Len() == 0 {
		ends = f.open.end(key)
	} else {
		f.open.note(key, min(bounds.Len(), counts.Len()), bounds.At, p.HasSum())
	}
	if p.HasSum() || ends.sum {
		if err := f.append(f.naming.named(base, f.name+"_sum", "", ""), m, p.Sum(), nil); err != nil {
			return err
		}
	}
	if err := f.append(f.naming.named(base, f.name+"_count", "", ""), m, float64(p.Count()), nil); err != nil {
		return err
	}
	exemplars, err := f.exemplars(p.Exemplars())
	if err != nil {
		return err
	}
	bucket := func(le string, v float64, of []exemplar.Exemplar) error {
		return f.append(f.naming.named(base, f.name+"_bucket", "le", le), m, v, of)
	}
	var total uint64
	for _, bound := range ends.bounds {
		if err := bucket(decimal(bound), 0, nil); err != nil {
			return err
		}
	}
	for i := range min(bounds.Len(), counts.Len()) {
		if err := f.step(); err != nil {
			return err
		}
		total += counts.At(i)
		n := 0 // exemplars are sorted by value
		for n < len(exemplars) && !(exemplars[n].Value > bounds.At(i)) {
			n++
		}
		if err := bucket(decimal(bounds.At(i)), float64(total), exemplars[:n:n]); err != nil {
			return err
		}
		exemplars = exemplars[n:]
	}
	return bucket("+Inf", float64(p.Count()), exemplars)
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// maxExemplarRunes bounds an exemplar's labels, see
// https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md#exemplars.
const maxExemplarRunes = 128

func (f *family) exemplars(from pmetric.ExemplarSlice) ([]exemplar.Exemplar, error) {
	if from.Len() == 0 {
		return nil, nil
	}
	to := make([]exemplar.Exemplar, 0, from.Len())
	for _, e := range from.All() {
		if err := f.step(); err != nil {
			return nil, err
		}
		one, err := f.exemplar(e)
		if err != nil {
			return nil, err
		}
		to = append(to, one)
	}
	return to, nil
}

// exemplar returns e with the identifiers of its trace and span, and with its attributes unless they make it too long.
func (f *family) exemplar(e pmetric.Exemplar) (exemplar.Exemplar, error) {
	one := exemplar.Exemplar{Ts: timestamp.FromTime(e.Timestamp().AsTime())}
	one.HasTs = one.Ts != 0
	switch e.ValueType() {
	case pmetric.ExemplarValueTypeInt:
		one.Value = float64(e.IntValue())
	case pmetric.ExemplarValueTypeDouble:
		one.Value = e.DoubleValue()
	case pmetric.ExemplarValueTypeEmpty:
		return one, fmt.Errorf("an exemplar of %q has no value", f.name)
	}
	b, runes := &f.naming.sorted, 0
	b.Reset()
	add := func(name, text string) {
		runes += utf8.RuneCountInString(name) + utf8.RuneCountInString(text)
		b.Add(name, text)
	}
	if id := e.TraceID(); !id.IsEmpty() {
		add("trace_id", hex.EncodeToString(id[:]))
	}
	if id := e.SpanID(); !id.IsEmpty() {
		add("span_id", hex.EncodeToString(id[:]))
	}
	for name, v := range e.FilteredAttributes().All() {
		runes += utf8.RuneCountInString(name) + utf8.RuneCountInString(v.AsString())
	}
	if runes <= maxExemplarRunes {
		for name, v := range e.FilteredAttributes().All() {
			if name != "" {
				b.Add(name, v.AsString())
			}
		}
	}
	b.Sort()
	one.Labels = b.Labels()
	return one, nil
}
