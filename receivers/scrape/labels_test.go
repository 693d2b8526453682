package scrape

import (
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// TestTargetLabels: the labels of a target come from it, its group, its job and the rules.
func TestTargetLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		entry      string
		own, group model.LabelSet
		want, fail string
		url        string
	}{
		"plain": {
			own: model.LabelSet{"__address__": "a:1", "__meta_x": "y"}, group: model.LabelSet{"rack": "b4", "__meta_z": "y"},
			want: `{instance="a:1", job="j", rack="b4"}`, url: "http://a:1/metrics",
		},
		"own before group": {
			own: model.LabelSet{"__address__": "a:1", "x": "own", "instance": "i", "job": "k"}, group: model.LabelSet{"x": "group"},
			want: `{instance="i", job="k", x="own"}`, url: "http://a:1/metrics",
		},
		"parameters": {
			entry: "params: {m: [one, two], n: [three]}, metrics_path: /p, scheme: https, ",
			own:   model.LabelSet{"__address__": "a", "__param_m": "mine", "__param_o": "other"},
			want:  `{instance="a", job="j"}`, url: "https://a/p?m=mine&m=two&n=three&o=other",
		},
		"rules": {
			entry: "relabel_configs: [{source_labels: [__meta_port], target_label: __address__, replacement: 'b:$1'}, {action: labelmap, regex: __meta_(port)}], ",
			own:   model.LabelSet{"__address__": "a:1", "__meta_port": "7"}, want: `{instance="b:7", job="j", port="7"}`, url: "http://b:7/metrics",
		},
		"dropped":         {entry: "relabel_configs: [{action: drop, source_labels: [job]}], ", own: model.LabelSet{"__address__": "a:1"}},
		"socket":          {own: model.LabelSet{"__address__": "x", "__unix_socket__": "/s"}, want: `{instance="x", job="j"}`, url: "http://x/metrics"},
		"no address":      {own: model.LabelSet{"x": "y"}, fail: "no address"},
		"a path":          {own: model.LabelSet{"__address__": "a/b"}, fail: "not a valid hostname"},
		"no interval":     {own: model.LabelSet{"__address__": "a", "__scrape_interval__": "0s"}, fail: "must not be 0"},
		"a bad interval":  {own: model.LabelSet{"__address__": "a", "__scrape_interval__": "x"}, fail: "__scrape_interval__"},
		"a long timeout":  {own: model.LabelSet{"__address__": "a", "__scrape_timeout__": "1h"}, fail: "longer than its interval"},
		"a bad flag":      {own: model.LabelSet{"__address__": "a", "__scrape_native_histograms__": "maybe"}, fail: "must be true or false"},
		"not UTF-8":       {own: model.LabelSet{"__address__": "a", "x": "\xff"}, fail: "not UTF-8"},
		"too long":        {own: model.LabelSet{"__address__": "a", "x": model.LabelValue(strings.Repeat("y", maxLabelBytes))}, fail: "more than the 1048576"},
		"too long by far": {own: model.LabelSet{"__address__": "a", "x": model.LabelValue(strings.Repeat("y", 17<<20))}, fail: "more than the 1048576"},
	} {
		cfg := configOf(t, "{"+tc.entry+"job_name: j}")
		got, err := newTarget(labels.NewBuilder(labels.EmptyLabels()), cfg, tc.own, tc.group)
		switch {
		case tc.fail != "":
			if err == nil || !strings.Contains(err.Error(), tc.fail) {
				t.Errorf("%s: %v, want %q", name, err, tc.fail)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.want == "":
			if got != nil {
				t.Errorf("%s: %v, want none", name, got.labels)
			}
		case got == nil || got.public.String() != tc.want || got.url != tc.url:
			t.Errorf("%s: %+v, want %s at %s", name, got, tc.want, tc.url)
		}
	}
}

func TestWithTarget(t *testing.T) {
	target := labels.FromStrings("instance", "i", "job", "j", "exported_job", "e")
	for _, tc := range []struct {
		sample labels.Labels
		honor  bool
		want   string
	}{
		{labels.FromStrings("__name__", "a"), false, `{__name__="a", exported_job="e", instance="i", job="j"}`},
		{labels.FromStrings("__name__", "a", "job", "mine"), true, `{__name__="a", exported_job="e", instance="i", job="mine"}`},
		{labels.FromStrings("__name__", "a", "job", "mine"), false, `{__name__="a", exported_exported_job="mine", exported_job="e", instance="i", job="j"}`},
		{labels.FromStrings("__name__", "a", "job", "x", "exported_job", "y"), false, `{__name__="a", exported_exported_exported_job="y", exported_exported_job="x", exported_job="e", instance="i", job="j"}`},
	} {
		b := labels.NewBuilder(tc.sample)
		withTarget(b, tc.sample, target, tc.honor)
		if got := b.Labels().String(); got != tc.want {
			t.Errorf("%s, honoured: %t: got %s, want %s", tc.sample, tc.honor, got, tc.want)
		}
	}
}
