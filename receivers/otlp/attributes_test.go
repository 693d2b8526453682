package otlp

import (
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
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

// Thousands of attributes of one part would take the translation the square of their number. They cost what has them,
// and nothing else of the request.
func TestThousandsOfAttributes(t *testing.T) {
	for name, of := range parts() {
		for _, json := range []bool{false, true} {
			req := pmetricotlp.NewExportRequest()
			resource := req.Metrics().ResourceMetrics().AppendEmpty()
			all := of(resource)
			for i := range 5000 {
				all.PutStr("k"+strconv.Itoa(i), "v")
			}
			parts()["gauge"](req.Metrics().ResourceMetrics().AppendEmpty())
			body, contentType := must(req.MarshalProto()), "application/x-protobuf"
			if json {
				body, contentType = must(req.MarshalJSON()), "application/json"
			}
			r := newRig(Settings{})
			w := r.post(contentType, body)
			refused := r.gate.Counts().RefusedSamples[receivers.TooManyLabels]
			if name == "exemplar" {
				if w.Code != 200 || refused != 0 || len(r.log.Samples()) != 2 {
					t.Errorf("exemplar: %d %q, %d refused, %d stored", w.Code, w.Body, refused, len(r.log.Samples()))
				}
				continue
			}
			if w.Code != 200 || refused != 1 || len(r.log.Samples()) != 1 || !strings.Contains(w.Body.String(), "5000 attributes, more than 512") {
				t.Errorf("%s: %d %q, %d refused, %d stored", name, w.Code, w.Body, refused, len(r.log.Samples()))
			}
		}
	}
}

// A long attribute of a resource, like the command line of a Java process, costs the resource's target_info, as long as it is no
// label of its series. Otherwise it costs these: without the label they could be those of another process.
func TestLongAttributeOfAResource(t *testing.T) {
	const long, most = "process.command_line", 4096
	req := request(func(ms pmetric.MetricSlice) {
		for i := range 20 {
			m := ms.AppendEmpty()
			m.SetName("jvm_" + strconv.Itoa(i))
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetTimestamp(at(now))
			p.SetIntValue(int64(i))
		}
	})
	first := req.Metrics().ResourceMetrics().At(0)
	first.CopyTo(req.Metrics().ResourceMetrics().AppendEmpty()) // without the long attribute
	req.Metrics().ResourceMetrics().At(1).Resource().Attributes().PutStr("service.instance.id", "i2")
	first.Resource().Attributes().PutStr(long, strings.Repeat("x", most+1))
	body := must(req.MarshalProto())
	for name, tc := range map[string]struct {
		settings        Settings
		refused, stored int
		points          int64
	}{
		"not a label":     {Settings{}, 1, 41, 0},
		"a label":         {Settings{PromoteResourceAttributes: []string{long}}, 21, 21, 20},
		"like all others": {Settings{PromoteAllResourceAttributes: true}, 21, 21, 20},
		"except it":       {Settings{PromoteAllResourceAttributes: true, IgnoreResourceAttributes: []string{long}}, 1, 41, 0},
	} {
		r := newRig(tc.settings)
		w := r.post("application/x-protobuf", body)
		answer := pmetricotlp.NewExportResponse()
		if err := answer.UnmarshalProto(w.Body.Bytes()); err != nil || w.Code != 200 {
			t.Fatalf("%s: %d %v", name, w.Code, err)
		}
		said := answer.PartialSuccess()
		if refused := r.gate.Counts().RefusedSamples[receivers.LabelTooLong]; refused != uint64(tc.refused) || len(r.log.Samples()) != tc.stored || said.RejectedDataPoints() != tc.points {
			t.Errorf("%s: %d refused, %d stored, %d points rejected; want %d, %d, %d", name, refused, len(r.log.Samples()), said.RejectedDataPoints(), tc.refused, tc.stored, tc.points)
		}
		if !strings.Contains(said.ErrorMessage(), "process_command_line") || !strings.Contains(said.ErrorMessage(), "limits.label_value_bytes (4096)") {
			t.Errorf("%s: %s", name, said.ErrorMessage())
		}
	}
}

// An attribute whose key cannot be the name of a label costs nothing but itself, wherever it is.
func TestKeysThatAreNoNames(t *testing.T) {
	for _, settings := range []Settings{{PromoteScopeMetadata: true}, {PromoteAllResourceAttributes: true}, {TranslationStrategy: "NoTranslation", PromoteAllResourceAttributes: true, PromoteScopeMetadata: true}} {
		for name, of := range parts() {
			r := newRig(settings)
			want := map[string]bool{}
			for _, keys := range [][]string{{"good"}, {"good", ""}, {"", "good", "___"}} {
				if len(keys) == 3 && (name == "scope" || settings.TranslationStrategy == "NoTranslation") {
					continue // there ___ gives a name
				}
				req := pmetricotlp.NewExportRequest()
				resource := req.Metrics().ResourceMetrics().AppendEmpty()
				all := of(resource)
				resource.Resource().Attributes().PutStr("service.name", "shop")
				resource.ScopeMetrics().At(0).Scope().SetName("scope")
				for _, key := range keys {
					all.PutStr(key, "v")
				}
				r.gate, r.log = nil, &receivertest.Log{}
				g := r.log.Gate("otlp", receivers.DefaultLimits())
				r.http = New(settings, 100).HTTP(g)
				if w := r.post("application/x-protobuf", must(req.MarshalProto())); w.Code != 200 || w.Body.Len() > 0 {
					t.Errorf("%s, keys %q: %d %q", name, keys, w.Code, w.Body)
				}
				for _, s := range r.log.Samples() {
					if len(keys) == 1 {
						want[s.Labels] = true
					} else if !want[s.Labels] {
						t.Errorf("%s, keys %q: %s, want one of %v", name, keys, s.Labels, want)
					}
				}
				if len(r.log.Samples()) == 0 || len(r.log.Samples()) != len(want) {
					t.Errorf("%s, keys %q: %d are stored, want %d", name, keys, len(r.log.Samples()), len(want))
				}
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
