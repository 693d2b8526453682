package otlp

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/value"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// TestPointWithoutValueEndsAllSeries: a point with NoRecordedValue, which has neither bounds nor quantiles, ends each series
// that the points before have begun, cumulative or delta; another point of the metric goes on.
func TestPointWithoutValueEndsAllSeries(t *testing.T) {
	for name, fill := range map[string]func(m pmetric.Metric, to int64, which string, ends bool){
		"histogram": func(m pmetric.Metric, to int64, which string, ends bool) {
			h := m.SetEmptyHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			histogramPoint(h.DataPoints().AppendEmpty(), to, which, ends)
		},
		"delta": func(m pmetric.Metric, to int64, which string, ends bool) {
			h := m.SetEmptyHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			histogramPoint(h.DataPoints().AppendEmpty(), to, which, ends)
		},
		"summary": func(m pmetric.Metric, to int64, which string, ends bool) {
			p := m.SetEmptySummary().DataPoints().AppendEmpty()
			p.SetTimestamp(at(to))
			p.Attributes().PutStr("which", which)
			if ends {
				p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
				return
			}
			p.SetCount(1)
			for _, q := range []float64{0.5, 0.9} {
				p.QuantileValues().AppendEmpty().SetQuantile(q)
			}
		},
	} {
		r := newRig(Settings{})
		send := func(to int64, which string, ends bool) {
			t.Helper()
			w := r.post("application/x-protobuf", must(request(func(ms pmetric.MetricSlice) {
				m := ms.AppendEmpty()
				m.SetName("size")
				fill(m, to, which, ends)
			}).MarshalProto()))
			if w.Code != 200 || w.Body.Len() > 0 {
				t.Fatalf("%s: %d %q", name, w.Code, w.Body)
			}
		}
		send(now, "a", false)
		send(now, "b", false)
		send(now+1000, "a", true)
		var begun, ended []string
		for _, s := range r.log.Samples() {
			switch {
			case !strings.Contains(s.Labels, `which="a"`):
				if value.IsStaleNaN(s.V) {
					t.Errorf("%s: %s has ended", name, s.Labels)
				}
			case value.IsStaleNaN(s.V):
				ended = append(ended, s.Labels)
			default:
				begun = append(begun, s.Labels)
			}
		}
		slices.Sort(begun)
		slices.Sort(ended)
		if diff := cmp.Diff(begun, ended); diff != "" || len(begun) < 4 {
			t.Errorf("%s: -begun +ended:\n%s", name, diff)
		}
	}
}

func histogramPoint(p pmetric.HistogramDataPoint, to int64, which string, ends bool) {
	p.SetTimestamp(at(to))
	p.Attributes().PutStr("which", which)
	if ends {
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		return
	}
	p.SetCount(3)
	p.SetSum(6)
	p.ExplicitBounds().FromRaw([]float64{1, 2})
	p.BucketCounts().FromRaw([]uint64{1, 1, 1})
}
