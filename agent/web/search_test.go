package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"hwsagent/agent/status"
)

// found returns the page of a search.
func found(t *testing.T, o Options, query string) string {
	t.Helper()
	rec := httptest.NewRecorder()
	pageOf(o).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "http://localhost/search?q="+url.QueryEscape(query), nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("%q: %d", query, rec.Code)
	}
	return rec.Body.String()
}

// A search finds each kind of thing by its name, its address and what identifies it, the broken ones as rows with their causes; all
// words must be there, in any case.
func TestSearch(t *testing.T) {
	s, events := plant()
	s.Scrape = []status.ScrapeStatus{{Job: "kafka", Targets: []status.ScrapeTargetStatus{{URL: "http://10.1.2.3:9308/metrics", Health: status.HealthUp, Interval: "15s", LastScrape: s.Now, Labels: map[string]string{"rack": "b4"}}}}}
	s.Receivers = []status.ReceiverStatus{{Name: "otlp", Listen: "127.0.0.1:4318", LastRequest: s.Now}}
	o := Options{Status: func() status.Status { return s }, Events: func() []status.Event { return events }, Hardware: func() []status.Component { return site(12, s.Now) }}
	for query, want := range map[string][]string{
		"receiver-03":                 {"1 problem<", "401 Unauthorized"},
		"RECEIVER-01":                 {"1 target<", `<div id="t-receiver-01">`},
		"mimir-03.plant.example":      {"2 problems<"},
		"receiver-0":                  {"4 problems, 6 targets<"},
		"host-1":                      {"1 probe<", `<div id="p-host-1">`},
		"snmp 192.0.2.3":              {"1 probe<"},
		"kafka":                       {"1 scrape job<"},
		"10.1.2.3":                    {"1 scrape job<"},
		`rack="b4"`:                   {"1 scrape job<"},
		"4318":                        {"1 receiver<"},
		"node-07":                     {"1 device, 6 components<", `<a href="/device?name=node-07">`},
		"zl2a77":                      {"1 component<", "Disk 1", "Try: copy its data"},
		"power supply node-1":         {"3 components<"},
		"node-01 predicted failure":   {"1 component<"},
		"receiver-03 nothing":         {"nothing found"},
		"":                            {"nothing found"},
		`"><img src=x onerror="a()">`: {"nothing found", `value="&#34;&gt;&lt;img src=x onerror=&#34;a()&#34;&gt;"`},
	} {
		body := found(t, o, query)
		for _, one := range want {
			if !strings.Contains(body, one) {
				t.Errorf("a search for %q does not show %q", query, one)
			}
		}
		if strings.Contains(body, "are configured") {
			t.Errorf("a search for %q speaks of what is not configured", query)
		}
	}
}

// A search that finds everything has a page of 120 KB at most, and says how much it leaves out. Each page has the field.
func TestSearchOfMany(t *testing.T) {
	s, events := largeFleet()
	s = status.Judge(s)
	o := Options{Status: func() status.Status { return s }, Events: func() []status.Event { return events }, Hardware: func() []status.Component { return site(834, s.Now) }}
	for query, want := range map[string]string{"node": "4944 more", "1": "more with problems"} {
		body := found(t, o, query)
		t.Logf("%q: %d bytes", query, len(body))
		if len(body) > 120_000 || !strings.Contains(body, want) {
			t.Errorf("a search for %q: %d bytes, or nothing is counted", query, len(body))
		}
	}
	if body := render(t, s, nil); strings.Count(body, `role="search"`) != 1 {
		t.Error("the overview has no field")
	}
}
