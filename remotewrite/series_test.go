package remotewrite

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v4"

	"hwsagent/remotewrite/config"
	"hwsagent/wal"
)

func rules(t testing.TB, text string) []*relabel.Config {
	t.Helper()
	var rules []*relabel.Config
	if err := yaml.Unmarshal([]byte(text), &rules); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if err := r.Validate(config.NameValidation); err != nil {
			t.Fatal(err)
		}
	}
	return rules
}

func TestSeriesLabels(t *testing.T) {
	for _, tc := range []struct {
		name     string
		external labels.Labels
		rules    string
		in, want labels.Labels
	}{
		{
			name: "as it is",
			in:   labels.FromStrings("__name__", "up", "job", "host"),
			want: labels.FromStrings("__name__", "up", "job", "host"),
		}, {
			name:     "external labels fill in and do not override",
			external: labels.FromStrings("site", "fra1", "job", "other"),
			in:       labels.FromStrings("__name__", "up", "job", "host"),
			want:     labels.FromStrings("__name__", "up", "job", "host", "site", "fra1"),
		}, {
			name:     "rules see external labels",
			external: labels.FromStrings("site", "fra1"),
			rules:    `[{source_labels: [site, job], separator: /, target_label: where}, {regex: site, action: labeldrop}]`,
			in:       labels.FromStrings("__name__", "up", "job", "host"),
			want:     labels.FromStrings("__name__", "up", "job", "host", "where", "fra1/host"),
		}, {
			name:  "dropped",
			rules: `[{source_labels: [__name__], regex: go_.*, action: drop}]`,
			in:    labels.FromStrings("__name__", "go_goroutines"),
		}, {
			name:  "nothing left",
			rules: `[{regex: .*, action: labeldrop}]`,
			in:    labels.FromStrings("__name__", "up", "job", "host"),
		}, {
			name: "utf-8 names are escaped",
			in:   labels.FromStrings("__name__", "hw.temperature:max", "hw.id", "a", "9x", "b", "x:y", "c"),
			want: labels.FromStrings("__name__", "hw_temperature:max", "_x", "b", "hw_id", "a", "x_y", "c"),
		}, {
			name: "names that become equal",
			in:   labels.FromStrings("__name__", "up", "a.b", "1", "a_b", "2", "a-b", "3"),
			want: labels.FromStrings("__name__", "up", "a_b", "3;1;2"),
		}, {
			name: "values become valid UTF-8",
			in:   labels.FromStrings("__name__", "up", "disk", "WD\xff\xfe1"),
			want: labels.FromStrings("__name__", "up", "disk", "WD\uFFFD1"),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newSeriesCache(tc.external, rules(t, tc.rules))
			got := c.get(&wal.Series{Labels: tc.in})
			if d := cmp.Diff(tc.want.Map(), got.labels().Map()); d != "" {
				t.Errorf("labels (-want +got):\n%s", d)
			}
			if got.dropped() != tc.want.IsEmpty() {
				t.Errorf("dropped() = %v", got.dropped())
			}
			if got.hash != tc.want.Hash() && !got.dropped() {
				t.Error("hash is not that of the final labels")
			}
			got.labels().Validate(func(l labels.Label) error {
				if l.Name == "" || l.Value == "" {
					t.Errorf("label %q=%q", l.Name, l.Value)
				}
				return nil
			})
		})
	}
}

// A slot that is used again for another series does not bring the old one's labels.
func TestSeriesSlotReused(t *testing.T) {
	c := newSeriesCache(labels.EmptyLabels(), nil)
	a := &wal.Series{Slot: 7, Labels: labels.FromStrings("__name__", "a")}
	b := &wal.Series{Slot: 7, Labels: labels.FromStrings("__name__", "b")}
	first := c.get(a)
	if c.get(a) != first {
		t.Error("a second look-up makes a new series")
	}
	if got := c.get(b); got.labels().Get("__name__") != "b" {
		t.Errorf("reused slot gives %v", got.labels())
	}
	if first.labels().Get("__name__") != "a" {
		t.Error("the evicted series changed")
	}
}

func TestSeriesLookupAllocatesNothing(t *testing.T) {
	c := newSeriesCache(labels.FromStrings("site", "fra1"), rules(t, `[{source_labels: [job], regex: "(.*)", target_label: work}]`))
	s := &wal.Series{Slot: 3, Labels: labels.FromStrings("__name__", "up", "job", "host")}
	c.get(s)
	if n := testing.AllocsPerRun(100, func() { c.get(s) }); n != 0 {
		t.Errorf("a look-up allocates %v times", n)
	}
}

func TestNoCustomBucketsIn1(t *testing.T) {
	for _, tc := range []struct {
		h    wal.Histogram
		want bool
	}{
		{wal.Histogram{H: &histogram.Histogram{Schema: 3}}, true},
		{wal.Histogram{FH: &histogram.FloatHistogram{Schema: -4}}, true},
		{wal.Histogram{H: &histogram.Histogram{Schema: histogram.CustomBucketsSchema}}, false},
		{wal.Histogram{FH: &histogram.FloatHistogram{Schema: histogram.CustomBucketsSchema}}, false},
	} {
		q := &Queue{cfg: config.Config{SendNativeHistograms: true}}
		if got := q.cfg.CarriesHistogram(tc.h.H, tc.h.FH); got != tc.want {
			t.Errorf("1.0 carries %+v: %v", tc.h, got)
		}
	}
}
