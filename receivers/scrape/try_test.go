package scrape

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTry: a trial scrapes every kind of target once, says why one fails and what to do, and shows no secret.
func TestTry(t *testing.T) {
	serve := func(secure bool, answer http.HandlerFunc) string {
		s := httptest.NewUnstartedServer(answer)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		if secure {
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	text := func(page string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, page)
		}
	}
	good := serve(false, text("a 1\nb{x=\"1\"} 2\n"))
	over := make(chan struct{})
	slow := serve(false, func(http.ResponseWriter, *http.Request) { <-over })
	defer close(over)
	closed := httptest.NewServer(nil)
	closed.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "targets.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `[{"targets": [%q, "127.0.0.1:1"]}]`, good), 0o600); err != nil {
		t.Fatal(err)
	}
	list := serve(false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `[{"targets": [%q]}]`, good)
	})
	static := func(target, more string) string {
		if !strings.Contains(more, "scrape_timeout") { // a busy machine may need more than the rig's
			more += ", scrape_interval: 20s, scrape_timeout: 20s"
		}
		return fmt.Sprintf("{job_name: j, static_configs: [{targets: [%q]}]%s}", target, more)
	}
	for name, c := range map[string]struct {
		job     string
		samples int
		says    string // in the error or the problem; "" for none
		try     string
	}{
		"answers":           {job: static(good, ""), samples: 2},
		"file":              {job: fmt.Sprintf("{job_name: j, file_sd_configs: [{files: [%q]}], relabel_configs: [{source_labels: [__address__], regex: '.*:1', action: drop}]}", file), samples: 2},
		"list over HTTP":    {job: fmt.Sprintf("{job_name: j, http_sd_configs: [{url: 'http://%s/'}]}", list), samples: 2},
		"list that is gone": {job: fmt.Sprintf("{job_name: j, http_sd_configs: [{url: 'http://%s/'}]}", closed.Listener.Addr()), says: "refused"},
		"refused":           {job: static(closed.Listener.Addr().String(), ""), says: "connection refused", try: "is the exporter running"},
		"unknown name":      {job: static("no-such-host.invalid:80", ""), says: "no-such-host.invalid", try: "correct the name"},
		"silent":            {job: static(slow, ", scrape_interval: 200ms, scrape_timeout: 200ms"), says: "no complete page within 200ms", try: "scrape_timeout"},
		"login":             {job: static(serve(false, status(401)), ", basic_auth: {username: u, password: CANARY}"), says: "401 Unauthorized", try: "basic_auth"},
		"wrong path":        {job: static(serve(false, status(404)), ", metrics_path: /m"), says: "404 Not Found", try: "which is /m now"},
		"TLS port":          {job: static(serve(true, status(200)), ""), says: "400 Bad Request", try: "log"},
		"no TLS":            {job: static(good, ", scheme: https"), says: "does not speak TLS", try: "scheme: http"},
		"unknown authority": {job: static(serve(true, status(200)), ", scheme: https"), says: "no known authority", try: "ca_file"},
		"no page":           {job: static(serve(false, text("<html>CANARY?</html>\n")), ""), says: "expected", try: "page of metrics"},
		"too large":         {job: static(good, ", body_size_limit: 5B"), says: "body size limit", try: "body_size_limit"},
		"too many":          {job: static(good, ", sample_limit: 1"), says: "sample limit", try: "sample_limit"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			got := jobs(t, c.job).Try(t.Context(), "j")
			said := got.Problem
			if c.try != "" || c.says == "" {
				if len(got.Targets) != 1 || got.Kept != 1 {
					t.Fatalf("%+v, want one target", got)
				}
				said += got.Targets[0].Error
			}
			if (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
				t.Errorf("%+v, want %q", got, c.says)
			}
			if c.says == "" && got.Targets[0].Samples != c.samples {
				t.Errorf("%+v, want %d samples", got, c.samples)
			}
			if c.try != "" && !strings.Contains(got.Targets[0].Try, c.try) {
				t.Errorf("it says to try %q, want %q", got.Targets[0].Try, c.try)
			}
			if all := fmt.Sprintf("%+v", got); strings.Contains(all, "password: CANARY") || name == "login" && strings.Contains(all, "CANARY") {
				t.Errorf("a secret is shown: %s", all)
			}
		})
	}
}

// TestTryIsBounded: of a job with many silent targets a part is tried, in bounded time.
func TestTryIsBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // whose queue of connections takes a few, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var targets []string
	for i := range tryMost + 10 {
		targets = append(targets, fmt.Sprintf("%q", fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port)))
		targets[i] = strings.Replace(targets[i], "127.0.0.1", fmt.Sprintf("127.0.0.%d", i+1), 1)
	}
	j := jobs(t, "{job_name: j, scrape_interval: 100ms, scrape_timeout: 100ms, static_configs: [{targets: ["+strings.Join(targets, ",")+"]}]}")
	began := time.Now()
	got := j.Try(t.Context(), "j")
	if got.Kept != tryMost+10 || len(got.Targets) != tryMost {
		t.Errorf("%d targets, %d of them tried; want %d and %d", got.Kept, len(got.Targets), tryMost+10, tryMost)
	}
	if took := time.Since(began); took > tryTime {
		t.Errorf("it took %s", took)
	}
}
