package e2e

import (
	"fmt"
	"math"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// otlpRequest is a request of the corpus. What one receiver refuses costs no other request.
type otlpRequest struct {
	name string
	md   pmetric.Metrics
}

func (r otlpRequest) proto(t *testing.T) []byte {
	t.Helper()
	b, err := pmetricotlp.NewExportRequestFromMetrics(r.md).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// differs reports whether it is of what is named as different.
func (r otlpRequest) differs() bool {
	v, ok := r.md.ResourceMetrics().At(0).Resource().Attributes().Get("service.instance.id")
	return ok && v.Str() == differs
}

// otlpClock gives the times of a corpus: minutes since its beginning, which is ten minutes ago.
type otlpClock struct{ zero time.Time }

func (c otlpClock) at(minutes float64) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(c.zero.Add(time.Duration(minutes * float64(time.Minute))))
}

// differs is the instance of what docs/receiving.md names as different.
const differs = "differs"

// different returns a request of that instance.
func (c otlpClock) different(name string, fill func(pmetric.MetricSlice)) otlpRequest {
	r := c.one(name, fill)
	r.md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", differs)
	return r
}

// one returns a request of a usual resource and scope.
func (c otlpClock) one(name string, fill func(pmetric.MetricSlice)) otlpRequest {
	md := pmetric.NewMetrics()
	r := md.ResourceMetrics().AppendEmpty()
	a := r.Resource().Attributes()
	a.PutStr("service.namespace", "trade")
	a.PutStr("service.name", "shop")
	a.PutStr("service.instance.id", "i-1")
	a.PutStr("deployment.environment", "prod")
	a.PutStr("host.name", "h1")
	a.PutStr("größe", "XL")
	a.PutInt("process.pid", 7)
	s := r.ScopeMetrics().AppendEmpty()
	s.SetSchemaUrl("https://opentelemetry.io/schemas/1.26.0")
	s.Scope().SetName("meter")
	s.Scope().SetVersion("1.2")
	s.Scope().Attributes().PutStr("short.name", "m")
	fill(s.Metrics())
	return otlpRequest{name, md}
}

func metric(ms pmetric.MetricSlice, name, unit string) pmetric.Metric {
	m := ms.AppendEmpty()
	m.SetName(name)
	m.SetUnit(unit)
	m.SetDescription("What " + name + " says.")
	return m
}

func (c otlpClock) gauge(ms pmetric.MetricSlice, name, unit string, v float64, minute float64) pmetric.NumberDataPoint {
	p := metric(ms, name, unit).SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetDoubleValue(v)
	p.SetTimestamp(c.at(minute))
	return p
}

func (c otlpClock) sum(ms pmetric.MetricSlice, name, unit string, kind pmetric.AggregationTemporality, monotonic bool, v int64, from, to float64) pmetric.NumberDataPoint {
	s := metric(ms, name, unit).SetEmptySum()
	s.SetAggregationTemporality(kind)
	s.SetIsMonotonic(monotonic)
	p := s.DataPoints().AppendEmpty()
	p.SetIntValue(v)
	p.SetStartTimestamp(c.at(from))
	p.SetTimestamp(c.at(to))
	p.Attributes().PutStr("code", "200")
	return p
}

func (c otlpClock) histogram(ms pmetric.MetricSlice, name string, kind pmetric.AggregationTemporality, from, to float64, counts ...uint64) pmetric.HistogramDataPoint {
	h := metric(ms, name, "ms").SetEmptyHistogram()
	h.SetAggregationTemporality(kind)
	p := h.DataPoints().AppendEmpty()
	p.SetStartTimestamp(c.at(from))
	p.SetTimestamp(c.at(to))
	p.ExplicitBounds().FromRaw([]float64{0.5, 10, 100}[:max(len(counts)-1, 0)])
	p.BucketCounts().FromRaw(counts)
	var n uint64
	for _, c := range counts {
		n += c
	}
	p.SetCount(n)
	p.SetSum(float64(n) * 3)
	p.Attributes().PutStr("route", "/a")
	return p
}

func (c otlpClock) exponential(ms pmetric.MetricSlice, name string, kind pmetric.AggregationTemporality, from, to float64, scale int32, up, down []uint64) pmetric.ExponentialHistogramDataPoint {
	h := metric(ms, name, "s").SetEmptyExponentialHistogram()
	h.SetAggregationTemporality(kind)
	p := h.DataPoints().AppendEmpty()
	p.SetStartTimestamp(c.at(from))
	p.SetTimestamp(c.at(to))
	p.SetScale(scale)
	p.SetZeroCount(2)
	p.SetZeroThreshold(0.001)
	p.Positive().SetOffset(-2)
	p.Positive().BucketCounts().FromRaw(up)
	p.Negative().SetOffset(1)
	p.Negative().BucketCounts().FromRaw(down)
	n := uint64(2)
	for _, c := range append(up[:len(up):len(up)], down...) {
		n += c
	}
	p.SetCount(n)
	p.SetSum(float64(n) / 2)
	return p
}

func (c otlpClock) summary(ms pmetric.MetricSlice, name string, to float64, n uint64) pmetric.SummaryDataPoint {
	p := metric(ms, name, "s").SetEmptySummary().DataPoints().AppendEmpty()
	p.SetStartTimestamp(c.at(0))
	p.SetTimestamp(c.at(to))
	p.SetCount(n)
	p.SetSum(float64(n))
	for _, q := range []float64{0, 0.5, 1} {
		v := p.QuantileValues().AppendEmpty()
		v.SetQuantile(q)
		v.SetValue(q * 10)
	}
	return p
}

func exemplar(all pmetric.ExemplarSlice, v float64, at pcommon.Timestamp, id byte) {
	e := all.AppendEmpty()
	e.SetDoubleValue(v)
	e.SetTimestamp(at)
	if id > 0 {
		e.SetTraceID(pcommon.TraceID{id})
		e.SetSpanID(pcommon.SpanID{id})
	}
	e.FilteredAttributes().PutStr("user.id", fmt.Sprint("u", id))
}

const (
	cumulativeOTLP = pmetric.AggregationTemporalityCumulative
	deltaOTLP      = pmetric.AggregationTemporalityDelta
)

// otlpCorpus returns what is sent, in this order.
func otlpCorpus(c otlpClock) []otlpRequest {
	all := []otlpRequest{
		c.one("gauges and units", func(ms pmetric.MetricSlice) {
			for _, unit := range []string{"", "1", "By", "%", "m/s", "{request}/min", "Cel", "odd unit", "KiBy/{op}"} {
				c.gauge(ms, "room.temperature."+fmt.Sprint(len(unit)), unit, 21.5, 1)
			}
			c.gauge(ms, "load_ratio", "1", 0.5, 1)
			c.gauge(ms, "inf", "", math.Inf(-1), 1)
			c.gauge(ms, "nan", "", math.NaN(), 1)
			c.gauge(ms, "whole", "", 0, 1).SetIntValue(1 << 53)
		}),
		c.one("names", func(ms pmetric.MetricSlice) {
			for _, name := range []string{"9lives", "größe", "a b", "a..b", "_hidden", "x_total", "x:y", "done.ratio", "with\"quote", "a__b"} {
				c.gauge(ms, name, "", 1, 1)
				c.sum(ms, "of."+name, "s", cumulativeOTLP, true, 2, 0, 1)
			}
		}),
		c.one("attributes", func(ms pmetric.MetricSlice) {
			a := c.gauge(ms, "attributes", "", 1, 1).Attributes()
			a.PutStr("größe", "é")
			a.PutStr("a.b", "1")
			a.PutStr("a_b", "2") // the same label, once escaped
			a.PutStr("__reserved", "x")
			a.PutStr("_private", "x")
			a.PutStr("0digit", "x")
			a.PutStr("a..b", "x")
			a.PutStr("empty", "")
			a.PutStr("job", "mine")
			a.PutStr("le", "7")
			a.PutStr("long", fmt.Sprintf("%0100d", 7))
			a.PutInt("int", 7)
			a.PutDouble("double", 0.1)
			a.PutBool("bool", true)
			a.PutEmptyBytes("bytes").FromRaw([]byte{0, 255})
			a.PutEmptySlice("slice").AppendEmpty().SetStr("x")
			a.PutEmptyMap("map").PutInt("y", 1)
			a.PutEmpty("nothing")
		}),
	}
	for step := range 4 {
		from, to := float64(step), float64(step)+1
		all = append(all, c.one(fmt.Sprint("cumulative, step ", step), func(ms pmetric.MetricSlice) {
			n := uint64(step + 1)
			began := 0.0
			if step == 3 { // a reset
				n, began = 1, 3.5
			}
			p := c.sum(ms, "requests", "{request}", cumulativeOTLP, true, int64(n), began, to)
			exemplar(p.Exemplars(), float64(n), c.at(to), byte(n))
			c.sum(ms, "queue.length", "1", cumulativeOTLP, false, int64(n), began, to)
			h := c.histogram(ms, "duration", cumulativeOTLP, began, to, n, 0, 2*n, 1)
			h.SetMin(0.1)
			h.SetMax(200)
			exemplar(h.Exemplars(), 0.3, c.at(from+0.1), 1)
			exemplar(h.Exemplars(), 50, c.at(from+0.2), 2)
			exemplar(h.Exemplars(), 500, c.at(from+0.3), 0)
			exemplar(c.exponential(ms, "latency", cumulativeOTLP, began, to, 3, []uint64{n, 0, 0, 0, 2 * n}, []uint64{1}).Exemplars(), 0.7, c.at(to), 3)
			c.exponential(ms, "fine", cumulativeOTLP, began, to, 12, []uint64{n, n, n, n}, nil)
			c.summary(ms, "rt", to, n)
		}), c.one(fmt.Sprint("delta, step ", step), func(ms pmetric.MetricSlice) {
			n := uint64(step + 1)
			p := c.sum(ms, "bytes.sent", "By", deltaOTLP, true, int64(n), from, to)
			if step == 0 {
				exemplar(p.Exemplars(), float64(n), c.at(to), byte(n))
			}
			c.sum(ms, "balance", "", deltaOTLP, false, 3-2*int64(step), from, to)
			h := c.histogram(ms, "size", deltaOTLP, from, to, n, 0, n, 1)
			if step == 0 {
				exemplar(h.Exemplars(), 0.3, c.at(from+0.1), 1)
			}
			c.exponential(ms, "wait", deltaOTLP, from, to, 3, []uint64{n, 0, 0, 1}, []uint64{n})
			c.sum(ms, "mixed.in", "", cumulativeOTLP, true, int64(n), 0, to)
		}))
	}
	for _, again := range []string{"first", "second"} { // the answer was lost, say
		all = append(all, c.one("a delta again: "+again, func(ms pmetric.MetricSlice) {
			c.sum(ms, "again", "", deltaOTLP, true, 5, 1, 2)
		}))
	}
	all = append(all,
		c.one("a delta that is older", func(ms pmetric.MetricSlice) { c.sum(ms, "again", "", deltaOTLP, true, 5, 0, 1) }),
		c.one("a delta after a gap", func(ms pmetric.MetricSlice) { c.sum(ms, "again", "", deltaOTLP, true, 5, 4, 5) }),
		c.one("a delta that overlaps", func(ms pmetric.MetricSlice) { c.sum(ms, "again", "", deltaOTLP, true, 5, 4.5, 6) }),
		c.one("a delta that began before", func(ms pmetric.MetricSlice) {
			c.sum(ms, "again", "", deltaOTLP, true, 5, 0, 7)
			c.gauge(ms, "beside.that", "", 1, 7) // else the agent alone tells target_info of this time
		}),
		c.one("a delta of another scale", func(ms pmetric.MetricSlice) {
			c.exponential(ms, "wait", deltaOTLP, 4, 5, 1, []uint64{1, 2, 3}, []uint64{1})
		}),
		c.different("deltas of some bounds", func(ms pmetric.MetricSlice) { c.histogram(ms, "size", deltaOTLP, 3, 4, 1, 2, 3) }),
		c.different("deltas of other bounds", func(ms pmetric.MetricSlice) { c.histogram(ms, "size", deltaOTLP, 4, 5, 1, 2) }),
		c.one("a delta without a start", func(ms pmetric.MetricSlice) {
			c.sum(ms, "startless", "", deltaOTLP, true, 5, 0, 1).SetStartTimestamp(0)
		}),
		c.one("no recorded value", func(ms pmetric.MetricSlice) {
			flag := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
			c.gauge(ms, "load_ratio", "1", 0, 5).SetFlags(flag)
			c.sum(ms, "requests", "{request}", cumulativeOTLP, true, 0, 3.5, 5).SetFlags(flag)
			c.histogram(ms, "duration", cumulativeOTLP, 3.5, 5, 0, 0, 0, 0).SetFlags(flag)
			c.exponential(ms, "latency", cumulativeOTLP, 3.5, 5, 3, nil, nil).SetFlags(flag)
			c.summary(ms, "rt", 5, 0).SetFlags(flag)
		}),
		c.different("deltas before no value", func(ms pmetric.MetricSlice) {
			exemplar(c.sum(ms, "bytes.sent", "By", deltaOTLP, true, 5, 4, 5).Exemplars(), 5, c.at(5), 5)
			c.histogram(ms, "size", deltaOTLP, 4, 5, 1, 1, 1, 1)
			c.exponential(ms, "wait", deltaOTLP, 4, 5, 1, []uint64{1}, nil)
		}),
		c.different("no recorded delta", func(ms pmetric.MetricSlice) {
			flag := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
			c.sum(ms, "bytes.sent", "By", deltaOTLP, true, 0, 5, 6).SetFlags(flag)
			c.histogram(ms, "size", deltaOTLP, 5, 6, 0, 0, 0, 0).SetFlags(flag)
			c.exponential(ms, "wait", deltaOTLP, 5, 6, 1, nil, nil).SetFlags(flag)
		}),
		c.different("deltas after no value", func(ms pmetric.MetricSlice) {
			exemplar(c.sum(ms, "bytes.sent", "By", deltaOTLP, true, 5, 6, 7).Exemplars(), 7, c.at(7), 7)
			c.histogram(ms, "size", deltaOTLP, 6, 7, 1, 1, 1, 1)
			c.exponential(ms, "wait", deltaOTLP, 6, 7, 1, []uint64{1}, nil)
		}),
		c.one("histograms without much", func(ms pmetric.MetricSlice) {
			c.histogram(ms, "no.buckets", cumulativeOTLP, 0, 1)
			c.histogram(ms, "one.bucket", cumulativeOTLP, 0, 1, 7)
			c.histogram(ms, "no.sum", cumulativeOTLP, 0, 1, 1, 2).RemoveSum()
			c.exponential(ms, "no.sum.either", cumulativeOTLP, 0, 1, 0, []uint64{1}, nil).RemoveSum()
			c.exponential(ms, "nothing.but.zeros", cumulativeOTLP, 0, 1, 0, nil, nil)
			c.summary(ms, "no.quantiles", 1, 3).QuantileValues().RemoveIf(func(pmetric.SummaryDataPointValueAtQuantile) bool { return true })
		}),
		c.one("metrics without points", func(ms pmetric.MetricSlice) {
			metric(ms, "empty.gauge", "").SetEmptyGauge()
			metric(ms, "empty.sum", "").SetEmptySum().SetAggregationTemporality(cumulativeOTLP)
			c.gauge(ms, "beside.them", "", 1, 1)
		}),
		c.one("several points", func(ms pmetric.MetricSlice) {
			points := metric(ms, "several", "").SetEmptyGauge().DataPoints()
			for i := range 6 { // of two series, every second out of order
				p := points.AppendEmpty()
				p.SetDoubleValue(float64(i))
				p.SetTimestamp(c.at(float64([]int{1, 3, 2, 5, 4, 6}[i])))
				p.Attributes().PutInt("series", int64(i%2))
			}
		}),
		c.different("without a time", func(ms pmetric.MetricSlice) { c.gauge(ms, "timeless", "", 1, 1).SetTimestamp(0) }),
		c.one("an exemplar of long labels", func(ms pmetric.MetricSlice) {
			p := c.sum(ms, "exemplary", "", cumulativeOTLP, true, 5, 0, 1)
			exemplar(p.Exemplars(), 1, c.at(0.5), 1)
			p.Exemplars().At(0).FilteredAttributes().PutStr("long", fmt.Sprintf("%0200d", 7))
		}),
		c.different("a scale that is too small", func(ms pmetric.MetricSlice) {
			c.exponential(ms, "coarse", cumulativeOTLP, 0, 1, -5, []uint64{1}, nil)
			c.gauge(ms, "beside.it", "", 1, 1)
		}),
		c.different("no type and no temporality", func(ms pmetric.MetricSlice) {
			metric(ms, "typeless", "")
			c.sum(ms, "whenless", "", pmetric.AggregationTemporalityUnspecified, true, 5, 0, 1)
			c.gauge(ms, "beside.those", "", 1, 1)
		}),
		c.different("no name", func(ms pmetric.MetricSlice) {
			c.gauge(ms, "", "", 1, 1)
			c.gauge(ms, "beside.none", "", 1, 1)
		}),
		c.one("a value", func(ms pmetric.MetricSlice) { c.gauge(ms, "twice", "1", 0.5, 1) }),
		c.one("another value for the same moment", func(ms pmetric.MetricSlice) { c.gauge(ms, "twice", "1", 0.75, 1) }),
		c.different("the future", func(ms pmetric.MetricSlice) {
			c.gauge(ms, "future", "", 1, 60)
			c.gauge(ms, "present", "", 1, 9)
		}),
	)
	nobody, bare := pmetric.NewMetrics(), pmetric.NewMetrics()
	c.gauge(nobody.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics(), "of.nobody", "", 1, 1)
	r := bare.ResourceMetrics().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", "bare")
	c.gauge(r.ScopeMetrics().AppendEmpty().Metrics(), "of.bare", "", 1, 1)
	two := c.one("two resources", func(ms pmetric.MetricSlice) { c.gauge(ms, "one.of.two", "", 1, 1) })
	two.md.ResourceMetrics().At(0).CopyTo(two.md.ResourceMetrics().AppendEmpty())
	two.md.ResourceMetrics().At(1).Resource().Attributes().PutStr("service.instance.id", "i-2")
	return append(all, otlpRequest{"a resource without attributes", nobody}, otlpRequest{"a resource with a name only", bare}, two)
}
