package remotewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// TestSeriesBeyondALimitForLabels: a series with too many labels, or too long ones, is refused alone, however far beyond
// the limit it is. The answer names it, and the samples of the others are stored.
func TestSeriesBeyondALimitForLabels(t *testing.T) {
	many := []string{"__name__", "bad"}
	for i := range 70 {
		many = append(many, fmt.Sprint("label_", i), "v")
	}
	repeated := []string{"__name__", "bad"}
	for range 100_000 {
		repeated = append(repeated, "a", "b")
	}
	long := strings.Repeat("x", 5000)
	for name, tc := range map[string]struct {
		labels []string
		reason receivers.Reason
		says   string
	}{
		"70 labels":                 {many, receivers.TooManyLabels, "limits.labels (64)"},
		"a label 100,000 times":     {repeated, receivers.TooManyLabels, "limits.labels (64)"},
		"a value of 5,000 bytes":    {[]string{"__name__", "bad", "q", long}, receivers.LabelTooLong, "limits.label_value_bytes (4096)"},
		"a value of 3 MiB":          {[]string{"__name__", "bad", "q", strings.Repeat("x", 3<<20)}, receivers.LabelTooLong, "limits.label_value_bytes (4096)"},
		"a name of 600 bytes":       {[]string{"__name__", "bad", long[:600], "v"}, receivers.LabelTooLong, "limits.label_name_bytes (512)"},
		"a metric name of 5,000":    {[]string{"__name__", "bad" + long}, receivers.LabelTooLong, "limits.label_value_bytes (4096)"},
		"a metric name of 2 MiB":    {[]string{"__name__", "bad" + strings.Repeat("x", 2<<20)}, receivers.LabelTooLong, "limits.label_value_bytes (4096)"},
		"a label name of 2 MiB":     {[]string{"__name__", "bad", strings.Repeat("x", 2<<20), "v"}, receivers.LabelTooLong, "limits.label_name_bytes (512)"},
		"no name, and a long label": {[]string{"bad", long}, receivers.LabelTooLong, "limits.label_value_bytes (4096)"},
	} {
		for content, message := range map[string][]byte{"application/x-protobuf": beyond1Request(t, tc.labels), content2: beyond2Request(t, tc.labels)} {
			l := &receivertest.Log{}
			g := l.Gate("remote_write", receivers.DefaultLimits())
			w := send(New(g), content, message)
			counts := g.Counts()
			if w.Code != 400 || counts.RefusedSamples[tc.reason] != 3 || len(counts.RefusedSamples) != 1 || len(l.Samples()) != 500 {
				t.Errorf("%s, %s: %d, counted %v, %d are stored", name, content, w.Code, counts.RefusedSamples, len(l.Samples()))
			}
			if text := w.Body.String(); !strings.Contains(text, "3 of 503 samples are refused, the others are stored") || !strings.Contains(text, "bad") || !strings.Contains(text, tc.says) || len(text) > 2000 {
				t.Errorf("%s, %s: %.3000s", name, content, text)
			}
			if n := w.Header().Get("X-Prometheus-Remote-Write-Samples-Written"); content == content2 && n != "500" {
				t.Errorf("%s: %s samples are written, as the header says", name, n)
			}
		}
	}
}

// beyond1Request returns 500 good series, and between them one with those labels, two floats and a histogram.
func beyond1Request(t *testing.T, bad []string) []byte {
	r := &prompb.WriteRequest{}
	for i := range 500 {
		if i == 250 {
			r.Timeseries = append(r.Timeseries, prompb.TimeSeries{
				Labels: pairs(bad...), Samples: []prompb.Sample{{Timestamp: 1}, {Timestamp: 2}},
				Histograms: []prompb.Histogram{prompb.FromIntHistogram(3, tsdbutil.GenerateTestHistogram(1))},
			})
		}
		r.Timeseries = append(r.Timeseries, prompb.TimeSeries{Labels: pairs("__name__", "good", "i", fmt.Sprint(i)), Samples: []prompb.Sample{{Timestamp: 1}}})
	}
	return marshal(t, r)
}

func beyond2Request(t *testing.T, bad []string) []byte {
	symbols := writev2.NewSymbolTable()
	r := &writev2.Request{}
	for i := range 500 {
		if i == 250 {
			one := writev2.TimeSeries{
				Samples:    []writev2.Sample{{Timestamp: 1}, {Timestamp: 2}},
				Histograms: []writev2.Histogram{writev2.FromIntHistogram(0, 3, tsdbutil.GenerateTestHistogram(1))},
			}
			for _, text := range bad {
				one.LabelsRefs = append(one.LabelsRefs, symbols.Symbolize(text))
			}
			r.Timeseries = append(r.Timeseries, one)
		}
		r.Timeseries = append(r.Timeseries, writev2.TimeSeries{
			LabelsRefs: symbols.SymbolizeLabels(labels.FromStrings("__name__", "good", "i", fmt.Sprint(i)), nil), Samples: []writev2.Sample{{Timestamp: 1}},
		})
	}
	r.Symbols = symbols.Symbols()
	return marshal(t, r)
}
