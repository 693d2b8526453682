package confdiff

import (
	"slices"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestOf: each kind of change at each kind of place.
func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":                  {"a: 1\nb: [x]", "b: [x]\na: 1", nil},
		"a value":                  {"global: {scrape_interval: 15s}", "global: {scrape_interval: 30s}", []string{"~ global.scrape_interval: 15s → 30s"}},
		"a key added":              {"global: {a: 1}", "global: {a: 1, b: {c: 2}}", []string{"+ global.b.c: 2"}},
		"a key removed":            {"global: {a: 1, b: {c: 2}}", "global: {a: 1}", []string{"- global.b.c: 2"}},
		"null is nothing":          {"probes:", "{}", nil},
		"an empty list is nothing": {"probes: []", "{}", nil},
		"an entry added":           {"probes: [{name: a, type: host}]", "probes: [{name: a, type: host}, {name: b, type: snmp}]", []string{`+ probes "b"`}},
		"the first entry":          {"{}", "probes: [{name: b, type: snmp}]", []string{`+ probes "b"`}},
		"an entry removed":         {"probes: [{name: a}, {name: b}]", "probes: [{name: b}]", []string{`- probes "a"`}},
		"an entry changed":         {"remote_write: [{name: t, queue_config: {max_shards: 4}}]", "remote_write: [{name: t, queue_config: {max_shards: 8}}]", []string{`~ remote_write "t".queue_config.max_shards: 4 → 8`}},
		"entries in another order": {"probes: [{name: a}, {name: b}]", "probes: [{name: b}, {name: a}]", nil},
		"a job":                    {"scrape_configs: [{job_name: j, honor_labels: true}]", "scrape_configs: [{job_name: j, honor_labels: false}]", []string{`~ scrape_configs "j".honor_labels: true → false`}},
		"a target without a name":  {"remote_write: [{url: http://a/}]", "remote_write: [{url: http://b/}]", []string{`- remote_write "http://a/"`, `+ remote_write "http://b/"`}},
		"a list without names":     {"modules: [a, b]", "modules: [a]", []string{"~ modules: [a, b] → [a]"}},
		"rules":                    {"r: [{action: drop}]", "r: [{action: keep, regex: 'a,b'}]", []string{`~ r: [{action: drop}] → [{action: keep, regex: "a,b"}]`}},
		"another kind":             {"a: [1]", "a: {b: 1}", []string{"~ a: [1] → {b: 1}"}},
		"a name twice":             {"probes: [{name: a, x: 1}, {name: a, x: 2}]", "probes: [{name: a, x: 1}]", []string{`- probes "a"#2`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range Of(parsed(t, c.before), parsed(t, c.after)) {
				got = append(got, one.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func parsed(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var n yaml.Node
	if err := yaml.Load([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	return &n
}

func TestStrings(t *testing.T) {
	for want, c := range map[string]Change{
		"~ a: <secret> changed":                   {Path: "a", Change: Changed, Hidden: true},
		"~ web.listen: x → y (at the next start)": {Path: "web.listen", Change: Changed, Before: "x", After: "y", AtStart: true},
	} {
		if got := c.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
