package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/status"
)

// largeFleet returns a status with 50 targets, three of them broken with 10 GB of log before them, and 1,000 probes, of which each
// tenth fails.
func largeFleet() (status.Status, []status.Event) {
	s, events := brokenFleet(50)
	for i := range s.Targets {
		if s.Targets[i].State != status.StateOK {
			s.Targets[i].PendingBytes, s.Targets[i].PendingSamples = 10<<30, 5_000_000_000
		}
	}
	s.WAL.Bytes, s.WAL.Segments = 10<<30, 160
	s.Probes = nil
	for i := range 1000 {
		p := status.ProbeStatus{Name: fmt.Sprintf("switch-%04d", i), Type: "snmp", Target: fmt.Sprintf("10.0.%d.%d:161", i/250, i%250), State: "ok", Interval: time.Minute, LastRun: s.Now.Add(-30 * time.Second), Took: 2 * time.Second, Samples: 800}
		if i%10 == 0 {
			p.State, p.LastError = "failing", fmt.Sprintf("read 10.0.%d.%d: no answer", i/250, i%250)
		}
		s.Probes = append(s.Probes, p)
	}
	return s, events
}

// ask returns how long an address takes to answer, and how many bytes it says.
func askFleet(t testing.TB, h http.Handler, address string) (took time.Duration, bytes int) {
	t.Helper()
	rec := httptest.NewRecorder()
	begin := time.Now()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "http://localhost"+address, nil))
	took = time.Since(begin)
	if rec.Code != http.StatusOK || rec.Body.Len() < 10_000 {
		t.Fatalf("%s: %d, %d bytes", address, rec.Code, rec.Body.Len())
	}
	return took, rec.Body.Len()
}

// Page and API take less than 200 ms with 1,000 probes, 50 targets, 5,000 components and a backlog of 10 GB. The fastest of ten counts: the others
// tell how busy the machine is.
func TestPageIsFast(t *testing.T) {
	s, events := largeFleet()
	parts := site(834, s.Now) // 5,004 components
	h := pageOf(Options{Status: func() status.Status { return status.Judge(s) }, Events: func() []status.Event { return events }, Hardware: func() []status.Component { return parts }})
	for _, address := range []string{"/", "/api/v1/status"} {
		best, size := time.Hour, 0
		for range 10 {
			took, bytes := askFleet(t, h, address)
			best, size = min(best, took), bytes
		}
		t.Logf("%s: %s, %d bytes", address, best, size)
		if best > 200*time.Millisecond {
			t.Errorf("%s takes %s", address, best)
		}
	}
}

// What goes to each reader every two seconds is at most 120 KB, however many probes there are, each with an error of its own: the worst
// rows come first, and the page says how many others there are and where. With ?all it has them, and does not refresh.
func TestPageOfManyProbes(t *testing.T) {
	s, events := largeFleet()
	parts := site(834, s.Now)
	h := newHandlers(Options{
		Status: func() status.Status { return status.Judge(s) }, Events: func() []status.Event { return events }, Hardware: func() []status.Component { return parts },
		History: func(string) []Figures { return nil },
	})
	body := overview().part(h.look(&url.URL{Path: "/"}))
	t.Logf("%d bytes", len(body))
	if len(body) > 120_000 {
		t.Errorf("%d bytes", len(body))
	}
	rows := problemRows(t, body)
	if n := strings.Count(body, `id="p-`); n != mostRows || len(rows) < mostRows {
		t.Errorf("%d probes, and %d rows with problems", n, len(rows))
	}
	for _, want := range []string{">50 more with problems: <code>hwsagent status</code>", ">900 more are well: <code>hwsagent status</code>", `<a href="/?all">`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	rec := httptest.NewRecorder()
	h.routes().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "http://localhost/?all", nil))
	whole := rec.Body.String()
	if n := strings.Count(whole, `<div id="p-`); n != 1000 || strings.Contains(whole, "http-equiv") || !strings.Contains(whole, ` data-all>`) {
		t.Errorf("with all rows there are %d probes", n)
	}
}

func BenchmarkLargeFleet(b *testing.B) {
	s, events := largeFleet()
	h := pageOf(Options{Status: func() status.Status { return status.Judge(s) }, Events: func() []status.Event { return events }})
	for _, address := range []string{"/", "/api/v1/status"} {
		b.Run(address, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				askFleet(b, h, address)
			}
		})
	}
}
