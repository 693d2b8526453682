package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hwsagent/agent/status"
)

// TestTargetsPage: every target stands there with state, last scrape, duration, error and
// labels, what others said as text, and nothing from elsewhere is used.
func TestTargetsPage(t *testing.T) {
	s := load(t, "scrape")
	rec := httptest.NewRecorder()
	(&handlers{o: Options{Status: func() status.Status { return s }}}).page(rec, httptest.NewRequest(http.MethodGet, "/targets", nil))
	body := rec.Body.String()
	for _, want := range []string{
		"http://10.0.0.1:9100/metrics", "http://10.0.0.2:9100/metrics", "<b>node</b>: 1 of 3 up, 2 dropped by relabelling", ">down<", ">unknown<",
		"context deadline exceeded", "rack=&#34;b4&#34;", "12 ms", "15s", "unable to read CA cert", "never",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{`src="http`, `href="http`, "style=", "onclick", "<script>alert", "ZgotmplZ", "%!"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}
