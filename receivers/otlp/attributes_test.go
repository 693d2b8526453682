package otlp

import (
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// parts returns those of a request that have attributes, each by itself.
func parts() map[string]func(pmetric.ResourceMetrics) pcommon.Map {
	metric := func(r pmetric.ResourceMetrics) pmetric.Metric {
		m := r.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("m")
		return m
	}
	timed := func(p interface{ SetTimestamp(pcommon.Timestamp) }) { p.SetTimestamp(at(1000)) }
	return map[string]func(pmetric.ResourceMetrics) pcommon.Map{
		"resource": func(r pmetric.ResourceMetrics) pcommon.Map {
			timed(metric(r).SetEmptyGauge().DataPoints().AppendEmpty())
			return r.Resource().Attributes()
		},
		"scope": func(r pmetric.ResourceMetrics) pcommon.Map {
			timed(metric(r).SetEmptyGauge().DataPoints().AppendEmpty())
			return r.ScopeMetrics().At(0).Scope().Attributes()
		},
		"gauge": func(r pmetric.ResourceMetrics) pcommon.Map {
			p := metric(r).SetEmptyGauge().DataPoints().AppendEmpty()
			timed(p)
			return p.Attributes()
		},
		"sum": func(r pmetric.ResourceMetrics) pcommon.Map {
			s := metric(r).SetEmptySum()
			s.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			p := s.DataPoints().AppendEmpty()
			timed(p)
			return p.Attributes()
		},
		"exemplar": func(r pmetric.ResourceMetrics) pcommon.Map {
			p := metric(r).SetEmptyGauge().DataPoints().AppendEmpty()
			timed(p)
			return p.Exemplars().AppendEmpty().FilteredAttributes()
		},
		"histogram": func(r pmetric.ResourceMetrics) pcommon.Map {
			h := metric(r).SetEmptyHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := h.DataPoints().AppendEmpty()
			timed(p)
			return p.Attributes()
		},
		"exponential histogram": func(r pmetric.ResourceMetrics) pcommon.Map {
			h := metric(r).SetEmptyExponentialHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := h.DataPoints().AppendEmpty()
			timed(p)
			return p.Attributes()
		},
		"summary": func(r pmetric.ResourceMetrics) pcommon.Map {
			p := metric(r).SetEmptySummary().DataPoints().AppendEmpty()
			timed(p)
			return p.Attributes()
		},
	}
}

// Thousands of attributes of one part are refused before they are translated, which
// would take the square of their number.
func TestThousandsOfAttributes(t *testing.T) {
	for name, of := range parts() {
		for _, json := range []bool{false, true} {
			req := pmetricotlp.NewExportRequest()
			all := of(req.Metrics().ResourceMetrics().AppendEmpty())
			for i := range 5000 {
				all.PutStr("k"+strconv.Itoa(i), "v")
			}
			body, contentType := must(req.MarshalProto()), "application/x-protobuf"
			if json {
				body, contentType = must(req.MarshalJSON()), "application/json"
			}
			w := newRig(Settings{}).post(contentType, body)
			if w.Code != 400 || !strings.Contains(w.Body.String(), "5000 attributes, more than 512") {
				t.Errorf("%s: %d %q", name, w.Code, w.Body)
			}
		}
	}
}

// A resource may have more attributes than a series may have labels.
func TestHundredsOfAttributesOfAResource(t *testing.T) {
	req := pmetricotlp.NewExportRequest()
	all := parts()["resource"](req.Metrics().ResourceMetrics().AppendEmpty())
	for i := range 500 {
		all.PutStr("k"+strconv.Itoa(i), "v")
	}
	if w := newRig(Settings{}).post("application/x-protobuf", must(req.MarshalProto())); w.Code != 200 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}
