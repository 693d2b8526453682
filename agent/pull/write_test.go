package pull

import (
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/inputs"
)

// Series that are written alike, by the external labels or by escaping, stand once in a page, with the newest sample, and
// families with one written name have one head.
func TestEqualSeriesStandOnce(t *testing.T) {
	at := func(s inputs.Sample, t int64) inputs.Sample {
		s.T += t
		return s
	}
	all := []inputs.Sample{
		sample("m", "gauge", 1, "__name__", "m"),
		at(sample("m", "gauge", 2, "__name__", "m", "site", "lab"), 5),
		sample("m", "gauge", 3, "__name__", "m", "site", "other"),
		at(sample("x y", "gauge", 4, "__name__", "x y"), 9),
		sample("x.y", "gauge", 5, "__name__", "x.y"),
		sample("x_y", "gauge", 6, "__name__", "x_y", "job", "a"),
		at(sample("l", "gauge", 7, "__name__", "l", "a.b", "v"), 1),
		sample("l", "counter", 8, "__name__", "l", "a b", "v", "site", "lab"),
		sample("", "", 9, "__name__", "last"),
	}
	for _, accept := range []string{"text/plain; version=0.0.4; escaping=underscores", "application/openmetrics-text; version=1.0.0; escaping=underscores"} {
		_, _, page := get(t, server(t, all), "/metrics", "Accept", accept)
		series, types := map[string]int{}, map[string]int{}
		for line := range strings.Lines(page) {
			if about, ok := strings.CutPrefix(line, "# TYPE "); ok {
				name, _, _ := strings.Cut(about, " ")
				types[name]++
			} else if !strings.HasPrefix(line, "#") {
				series[strings.TrimSpace(line)]++
			}
		}
		for _, want := range []string{`m{job="not this",site="lab"} 2`, `m{job="not this",site="other"} 3`, `x_y{job="not this",site="lab"} 4`, `x_y{job="a",site="lab"} 6`, `l{a_b="v",job="not this",site="lab"} 7`} {
			found := series[want]
			if found != 1 {
				t.Errorf("%s: %s is there %d times:\n%s", accept, want, found, page)
			}
		}
		if len(series) != 6 || types["x_y"] != 1 || types["m"] != 1 {
			t.Errorf("%s: %d series, types %v:\n%s", accept, len(series), types, page)
		}
	}
	// Without escaping, names that differ stay different.
	rows, _ := prepare(all, labels.FromStrings("site", "lab"), nil, model.NoEscaping, false)
	if len(rows) != 8 {
		t.Errorf("%d rows without escaping, want 8", len(rows))
	}
}
