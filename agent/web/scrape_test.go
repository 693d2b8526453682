package web

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTargetsPage: every target stands there with state, last scrape, duration, error and
// labels, what others said as text, and nothing from elsewhere is used.
func TestTargetsPage(t *testing.T) {
	s := load(t, "scrape")
	rec := httptest.NewRecorder()
	(&handlers{o: Options{Status: func() Status { return s }}}).targets(rec, nil)
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

func TestScrapeProblems(t *testing.T) {
	var got []string
	for _, p := range load(t, "scrape").Problems {
		if strings.HasPrefix(p.Subject, "scrape ") {
			got = append(got, p.Severity+" "+p.Subject+": "+firstLine(p.Text))
		}
	}
	want := []string{
		"error scrape bmc: not all of the job works: error creating HTTP client: unable to read CA cert /etc/hwsagent/ca.pem: no such file or directory",
		`warning scrape node: http://10.0.0.2:9100/metrics is down: <script>alert(1)</script> context deadline exceeded`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
