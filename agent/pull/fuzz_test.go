package pull

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/agent/inputs"
)

// FuzzPull: for any name and metadata of a series, Prometheus' parsers read the shown series from
// the page, and an unrelated series beside it.
func FuzzPull(f *testing.F) {
	kinds := []model.MetricType{"", "counter", "gauge", "histogram", "summary", "info", "stateset", "gaugehistogram"}
	f.Add(false, byte(1), "a_total", "a_total", "help \\ \n\"", "l.é", "v\n\"\\", 1.5)
	f.Add(true, byte(3), "a_bucket", "a", "", "le", "0.1", -1.0)
	f.Add(true, byte(4), "a", "a", "", "quantile", "+Inf", 0.0)
	f.Fuzz(func(t *testing.T, open bool, kind byte, name, family, help, label, value string, v float64) {
		if label == model.MetricNameLabel || !model.UTF8Validation.IsValidMetricName(name) || !model.UTF8Validation.IsValidLabelName(label) ||
			value == "" || !utf8.ValidString(value) {
			return // which no input brings
		}
		if _, err := strconv.ParseFloat(value, 64); err == nil && (label == "le" || label == "quantile") {
			value = "0.5" // who reads a bound writes it in its own way
		}
		ls := labels.FromStrings("__name__", name, label, value)
		all := []inputs.Sample{
			{Labels: ls, T: 1000, V: v, Family: family, Meta: metadata.Metadata{Type: kinds[int(kind)%len(kinds)], Help: help}},
			{Labels: labels.FromStrings("__name__", "up"), T: 1000, V: 1, Family: "up", Meta: metadata.Metadata{Type: "gauge"}},
		}
		if name == "up" {
			all = all[:1]
		}
		h := New(Options{Newest: func(to []inputs.Sample) []inputs.Sample { return append(to, all...) }})
		accept := "text/plain;version=0.0.4;escaping=allow-utf-8"
		if open {
			accept = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8"
		}
		_, header, text := get(t, h, "/metrics", "Accept", accept)
		want, whole := map[string]string{}, map[string]string{}
		for _, s := range all {
			whole[s.Labels.String()] = fmt.Sprint(s.V)
			if strings.ContainsRune(name+label+value, 0) && s.Labels.Get("__name__") == name {
				continue // the formats cannot say it
			}
			want[s.Labels.String()] = fmt.Sprint(s.V)
		}
		if diff := cmp.Diff(want, parsed(t, header.Get("Content-Type"), text)); diff != "" {
			t.Errorf("%s\n%s", diff, text)
		}
		_, header, text = get(t, h, "/metrics", "Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;escaping=allow-utf-8")
		if diff := cmp.Diff(whole, parsed(t, header.Get("Content-Type"), text)); diff != "" {
			t.Errorf("in protobuf: %s\n%q", diff, text)
		}
	})
}
