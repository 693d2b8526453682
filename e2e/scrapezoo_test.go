package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/e2e/hostile"
	"hwsagent/internal/tools/tier"
)

// TestScrapeEveryMisbehaviour scrapes, and requests a list of targets from, each kind of server that remote write is
// tested against, with HTTP/1.1 and HTTP/2: a server that hangs one client of the agent may hang another. Each only
// affects its own job; a reload and the stop do not wait for any of them.
func TestScrapeEveryMisbehaviour(t *testing.T) { // alone: 450 jobs take a core, and the time of the stop is judged
	endToEnd(t)
	certs, err := hostile.NewCerts()
	if err != nil {
		t.Fatal(err)
	}
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a 1\n") }))
	defer good.Close()
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	jobs := "scrape_configs:\n  - {job_name: good, static_configs: [{targets: ['" + strings.TrimPrefix(good.URL, "http://") + "']}]}\n"
	servers := map[string]*hostile.Server{}
	for i, b := range hostile.Behaviours() {
		o := hostile.Options{HTTP2: b.HTTP2, Elsewhere: elsewhere.Addr().String()}
		scheme, trust := "http", ""
		if b.Secure || b.HTTP2 {
			o.Certs, scheme, trust = certs, "https", ", tls_config: {ca_file: DIR/ca.pem}"
		}
		for _, as := range []string{"target", "list"} {
			s, err := hostile.Start(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Stop)
			if err := s.Play(&b); err != nil {
				t.Fatal(err)
			}
			servers[b.Name+", as a "+as] = s
			address := strings.TrimSuffix(strings.TrimPrefix(s.URL(), scheme+"://"), "/api/v1/write")
			if as == "target" {
				jobs += fmt.Sprintf("  - {job_name: target-%d, scheme: %s%s, static_configs: [{targets: [%q]}]}\n", i, scheme, trust, address)
			} else {
				jobs += fmt.Sprintf("  - {job_name: list-%d, http_sd_configs: [{url: '%s://%s/targets', refresh_interval: 1s%s}]}\n", i, scheme, address, trust)
			}
		}
	}
	a := newAgent(t, "")
	writeFile(t, filepath.Join(a.dir, "ca.pem"), string(certs.CA))
	config := strings.ReplaceAll("global: {scrape_interval: 1s, scrape_timeout: 1s}\nprobes: [{name: hwsagent, type: self}]\n"+jobs, "DIR", a.dir)
	a.configure(config)
	a.run()
	t.Cleanup(a.kill)
	eventually(t, 60*time.Second, func() string {
		if gone := a.ended(); gone != "" {
			t.Fatalf("%s: %.300s", gone, a.tail(30))
		}
		for name, s := range servers {
			if s.Counts().Fired == 0 {
				return name + " was not met"
			}
		}
		return ""
	})
	// Every job goes on, the hostile ones too: a scrape that hangs is not tried again.
	first := map[string]time.Time{}
	eventually(t, 30*time.Second, func() string {
		late := ""
		for _, one := range apiTargets(t, a) {
			if first[one.ScrapePool].IsZero() {
				first[one.ScrapePool] = one.LastScrape
			}
			if one.LastScrape.Sub(first[one.ScrapePool]) < 3*time.Second {
				late = one.ScrapePool
			}
		}
		if late != "" || len(first) != len(servers)/2+1 {
			return fmt.Sprintf("job %q does not go on; %d jobs have a target", late, len(first))
		}
		return ""
	})
	// All hostile jobs go.
	a.configure("global: {scrape_interval: 1s, scrape_timeout: 1s}\nprobes: [{name: hwsagent, type: self}]\nscrape_configs:\n" + strings.Split(jobs, "\n")[1] + "\n")
	began := time.Now()
	if status, body, err := a.ask(http.MethodPost, "/-/reload"); err != nil || status != http.StatusOK {
		t.Errorf("the reload: %d %s %v", status, body, err)
	}
	if took := time.Since(began); took > tier.Within(10*time.Second) {
		t.Errorf("the reload took %s", took)
	}
	a.configure(config)
	if status, body, err := a.ask(http.MethodPost, "/-/reload"); err != nil || status != http.StatusOK {
		t.Errorf("the reload that brings them back: %d %s %v", status, body, err)
	}
	time.Sleep(2 * time.Second) // the scrapes' own pace
	if log := a.logText(); strings.Contains(log, "panic") {
		t.Errorf("something panicked:\n%.2000s", log)
	}
	took, code := a.terminate(30 * time.Second)
	if took > tier.Within(2*time.Second) || code != 0 {
		t.Errorf("stopped after %s with code %d:\n%.2000s", took, code, a.tail(3))
	}
	t.Logf("%d servers; stopped after %s", len(servers), took)
}
