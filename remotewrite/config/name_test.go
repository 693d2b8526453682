package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

func entries(t *testing.T, text string) []*Config {
	t.Helper()
	var all []*Config
	if err := yaml.Load([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

const alike = `
- {url: "http://r/push", headers: {X-Scope-OrgID: a}}
- {url: "http://r/push", headers: {X-Scope-OrgID: b}}
- {url: "http://r/push"}
- {url: "http://influx/write?db=one&p=CANARY"}
- {url: "http://influx/write?db=two"}
- {url: "http://login/push", basic_auth: {username: eve, password: CANARY}}
- {url: "http://login/push", oauth2: {client_id: bob, client_secret: CANARY, token_url: "http://t"}}
- {url: "http://rules/push", write_relabel_configs: [{source_labels: [job], regex: x, action: keep}]}
- {url: "http://rules/push", write_relabel_configs: [{source_labels: [job], regex: y, action: keep}]}
- {url: "http://rules/push", bearer_token_file: one}
- {url: "http://alone/push", headers: {X-Scope-OrgID: a}}
- {url: "http://named/push", name: n}
- {url: "http://named/push"}
`

func names(all []*Config) (names []string) {
	NameApart(all)
	for _, c := range all {
		names = append(names, c.TargetName())
	}
	return names
}

// TestNameApart: entries with one address get names from what tells them apart; the order of the list and further entries do not
// matter, and no secret is in a name.
func TestNameApart(t *testing.T) {
	got := names(entries(t, alike))
	want := []string{"r/push,X-Scope-OrgID=a", "r/push,X-Scope-OrgID=b", "r/push", "influx/write,db=one", "influx/write,db=two", "login/push,eve", "login/push,bob",
		got[7], got[8], got[9], "alone/push", "n", "named/push"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, name := range got[7:10] {
		if sum, ok := strings.CutPrefix(name, "rules/push,"); !ok || len(sum) != 8 {
			t.Errorf("%q has no checksum", name)
		}
	}
	if sorted := slices.Sorted(slices.Values(got)); len(slices.Compact(sorted)) != len(got) {
		t.Errorf("two are equal: %q", got)
	}
	turned := entries(t, alike)
	slices.Reverse(turned)
	turned = append(turned, entries(t, `[{url: "http://r/push", headers: {X-Scope-OrgID: c}}]`)...)
	again := names(turned)[:len(got)]
	slices.Reverse(again)
	if d := cmp.Diff(got, again); d != "" {
		t.Errorf("in another order (-want +got):\n%s", d)
	}
	if strings.Contains(strings.Join(got, " "), "CANARY") {
		t.Errorf("a secret shows: %q", got)
	}
}

// TestNameApartBySecret: entries of which only secrets differ are named by their order; equal ones have one name.
func TestNameApartBySecret(t *testing.T) {
	got := names(entries(t, `
- {url: "http://r/push", headers: {X-Api-Key: one}}
- {url: "http://r/push", headers: {X-Api-Key: two}}
- {url: "http://r/push", headers: {X-Api-Key: one}}
`))
	if d := cmp.Diff([]string{"r/push", "r/push,2", "r/push"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	odd := names(entries(t, `
- {url: "http://r/push", headers: {X-Scope-OrgID: "a\nb"}}
- {url: "http://r/push", headers: {X-Scope-OrgID: `+strings.Repeat("x", 300)+`}}
`))
	for _, name := range odd {
		if len(name) > 40 || strings.Contains(name, "\n") {
			t.Errorf("%q", name)
		}
	}
}
