package otlpdiff

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/prometheus/prometheus/model/histogram"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// keys are names of attributes, some of which become the same label.
// keys has none that gives no name of a label: such an attribute costs itself here, and the request there (TestKeysThatAreNoNames).
func keys() []string {
	return []string{
		"service.name", "service.namespace", "service.instance.id", "host.name", "host_name", "host-name", "job", "instance", "le", "quantile", "__name__",
		"_private", "__double", "a..b", "a__b", "1st", "ключ", "otel_scope_name", "k",
	}
}

func names() []string {
	return []string{
		"http.server.duration", "requests", "requests_total", "requests.ratio", "temperature", "hw.fan.speed", "__x__", "1st", "имя", "a  b", "_", "system.cpu.time",
	}
}

func units() []string {
	return []string{"", "s", "ms", "By", "1", "%", "{requests}", "By/s", "Cel", "m/h", "{a}/s", "км"}
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func attributes(r *rand.Rand, m pcommon.Map) {
	for range r.IntN(6) {
		value := m.PutEmpty(pick(r, keys()))
		switch r.IntN(9) {
		case 0:
			value.SetInt(r.Int64N(100))
		case 1:
			value.SetDouble(r.Float64())
		case 2:
			value.SetBool(true)
		case 3:
			value.SetEmptySlice().AppendEmpty().SetStr("x")
		case 4:
			value.SetEmptyMap().PutInt("x", 1)
		case 5:
			value.SetEmptyBytes().Append(1, 2)
		case 6:
			value.SetStr("")
		default:
			value.SetStr(pick(r, []string{"a", "b", "ж", "with \"quotes\"", strings.Repeat("l", 60)}))
		}
	}
}

// moment returns a time of which most lie within minutes.
func moment(r *rand.Rand) pcommon.Timestamp {
	const base = 1_700_000_000_000_000_000
	switch r.IntN(40) {
	case 0: // within an hour of the others: the agent writes target_info for no longer
		return base - pcommon.Timestamp(r.Int64N(1700e9))
	case 1:
		return pcommon.Timestamp(base + r.Int64N(1700e9))
	}
	return pcommon.Timestamp(base + r.Int64N(60e9))
}

func flags(r *rand.Rand) pmetric.DataPointFlags {
	return pmetric.DefaultDataPointFlags.WithNoRecordedValue(r.IntN(6) == 0)
}

func number(r *rand.Rand) float64 {
	return pick(r, []float64{0, 1, -1, 0.1, 1e300, math.Inf(1), math.Inf(-1), math.NaN(), r.NormFloat64(), float64(r.IntN(1000))})
}

func exemplars(r *rand.Rand, to pmetric.ExemplarSlice) {
	for range r.IntN(4) {
		e := to.AppendEmpty()
		if r.IntN(4) > 0 {
			e.SetTimestamp(moment(r))
		}
		switch r.IntN(60) {
		case 0: // no value
		case 1, 2, 3, 4, 5, 6, 7, 8, 9:
			e.SetIntValue(r.Int64N(20))
		default:
			e.SetDoubleValue(number(r))
		}
		if r.IntN(2) == 0 {
			e.SetTraceID(pcommon.TraceID{byte(r.IntN(3)), 15: 2})
			e.SetSpanID(pcommon.SpanID{byte(r.IntN(3)), 7: byte(r.IntN(2))})
		}
		attributes(r, e.FilteredAttributes())
	}
}

// buckets are counts of which many are 0, at times in long rows.
func buckets(r *rand.Rand) []uint64 {
	counts := make([]uint64, r.IntN(40))
	for i := range counts {
		if r.IntN(3) == 0 {
			counts[i] = r.Uint64N(9)
		}
		if r.IntN(200) == 0 {
			counts[i] = math.MaxUint64 - r.Uint64N(2)
		}
	}
	if len(counts) > 0 && r.IntN(2) == 0 {
		clear(counts[r.IntN(len(counts)):])
	}
	return counts
}

func metrics(r *rand.Rand) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for range 1 + r.IntN(2) {
		resource := md.ResourceMetrics().AppendEmpty()
		attributes(r, resource.Resource().Attributes())
		for range r.IntN(3) {
			scope := resource.ScopeMetrics().AppendEmpty()
			scope.SetSchemaUrl(pick(r, []string{"", "https://schema"}))
			scope.Scope().SetName(pick(r, []string{"", "scope"}))
			scope.Scope().SetVersion(pick(r, []string{"", "1"}))
			attributes(r, scope.Scope().Attributes())
			for range r.IntN(3) {
				metric(r, scope.Metrics().AppendEmpty())
			}
		}
	}
	return md
}

func metric(r *rand.Rand, m pmetric.Metric) {
	m.SetName(pick(r, names()))
	if r.IntN(60) == 0 {
		m.SetName("")
	}
	m.SetUnit(pick(r, units()))
	m.SetDescription(pick(r, []string{"", "what it is"}))
	temporality := pmetric.AggregationTemporalityCumulative
	if r.IntN(60) == 0 {
		temporality = pick(r, []pmetric.AggregationTemporality{pmetric.AggregationTemporalityDelta, pmetric.AggregationTemporalityUnspecified})
	}
	points := r.IntN(4)
	switch r.IntN(31) {
	case 0: // no type
	case 1, 2, 3, 4, 5, 6:
		all := m.SetEmptyGauge().DataPoints()
		for range points {
			numberPoint(r, all.AppendEmpty())
		}
	case 7, 8, 9, 10, 11, 12:
		s := m.SetEmptySum()
		s.SetIsMonotonic(r.IntN(2) == 0)
		s.SetAggregationTemporality(temporality)
		for range points {
			numberPoint(r, s.DataPoints().AppendEmpty())
		}
	case 13, 14, 15, 16, 17, 18:
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(temporality)
		for range points {
			explicit(r, h.DataPoints().AppendEmpty())
		}
	case 19, 20, 21, 22, 23, 24:
		h := m.SetEmptyExponentialHistogram()
		h.SetAggregationTemporality(temporality)
		for range points {
			exponential(r, h.DataPoints().AppendEmpty())
		}
	default:
		s := m.SetEmptySummary()
		for range points {
			summary(r, s.DataPoints().AppendEmpty())
		}
	}
}

func numberPoint(r *rand.Rand, p pmetric.NumberDataPoint) {
	attributes(r, p.Attributes())
	p.SetStartTimestamp(pick(r, []pcommon.Timestamp{0, moment(r)}))
	p.SetTimestamp(moment(r))
	p.SetFlags(flags(r))
	exemplars(r, p.Exemplars())
	switch r.IntN(5) {
	case 0: // no value
	case 1:
		p.SetIntValue(r.Int64() - r.Int64())
	default:
		p.SetDoubleValue(number(r))
	}
}

func explicit(r *rand.Rand, p pmetric.HistogramDataPoint) {
	attributes(r, p.Attributes())
	p.SetStartTimestamp(pick(r, []pcommon.Timestamp{0, moment(r)}))
	p.SetTimestamp(moment(r))
	p.SetFlags(flags(r))
	exemplars(r, p.Exemplars())
	if r.IntN(3) > 0 {
		p.SetSum(number(r))
	}
	p.SetCount(r.Uint64N(100))
	p.BucketCounts().FromRaw(buckets(r))
	for i := range r.IntN(12) {
		p.ExplicitBounds().Append(float64(i) * 1.5)
	}
	if n := p.ExplicitBounds().Len(); n > 0 && r.IntN(10) == 0 {
		p.ExplicitBounds().SetAt(r.IntN(n), number(r))
	}
}

func exponential(r *rand.Rand, p pmetric.ExponentialHistogramDataPoint) {
	attributes(r, p.Attributes())
	p.SetStartTimestamp(pick(r, []pcommon.Timestamp{0, moment(r)}))
	p.SetTimestamp(moment(r))
	p.SetFlags(flags(r))
	exemplars(r, p.Exemplars())
	if r.IntN(3) > 0 {
		p.SetSum(number(r))
	}
	p.SetCount(r.Uint64N(100))
	p.SetZeroCount(r.Uint64N(5))
	if r.IntN(3) == 0 {
		p.SetZeroThreshold(number(r))
		p.SetMin(number(r))
		p.SetMax(number(r))
	}
	p.SetScale(int32(r.IntN(13)) - 4)
	if r.IntN(100) == 0 {
		p.SetScale(pick(r, []int32{math.MinInt32, -5, 39, 40, 41, 100, math.MaxInt32}))
	}
	for _, side := range []pmetric.ExponentialHistogramDataPointBuckets{p.Positive(), p.Negative()} {
		side.SetOffset(int32(r.IntN(200)) - 100)
		if r.IntN(50) == 0 {
			side.SetOffset(pick(r, []int32{math.MaxInt32, math.MaxInt32 - 1, math.MaxInt32 - 5, math.MinInt32, math.MinInt32 + 5, -1, 1 << 30}))
		}
		counts := buckets(r)
		// Two intended differences. Prometheus counts the first observation after an empty merged bucket in that one. And buckets
		// with an index behind the greatest number have no place in either translation, and no common one.
		if p.Scale() > histogram.ExponentialSchemaMax || int64(side.Offset())+int64(len(counts)) > math.MaxInt32 {
			continue
		}
		side.BucketCounts().FromRaw(counts)
	}
}

func summary(r *rand.Rand, p pmetric.SummaryDataPoint) {
	attributes(r, p.Attributes())
	p.SetStartTimestamp(pick(r, []pcommon.Timestamp{0, moment(r)}))
	p.SetTimestamp(moment(r))
	p.SetFlags(flags(r))
	p.SetCount(r.Uint64N(100))
	p.SetSum(number(r))
	for range r.IntN(4) {
		q := p.QuantileValues().AppendEmpty()
		q.SetQuantile(r.Float64())
		q.SetValue(number(r))
	}
}
