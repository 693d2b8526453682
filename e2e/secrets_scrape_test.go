package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// scrapeFailures returns the cells of scraping, by job: the reported error of its target.
func scrapeFailures() map[string]string {
	return map[string]string{
		"params": "500", "label": "500", "basic": "500", "basic-file": "500", "bearer": "500", "bearer-file": "500", "authorization": "500",
		"authorization-file": "malformed HTTP", "headers": "500", "refused": "refused", "no-host": "no-such-host", "not-tls": "HTTP response to HTTPS client",
		"tls": "500", "proxy": "407", "tunnel": "No ", "proxy-down": "refused", "token": "500", "token-refused": "invalid_client",
		"token-proxy": "", "token-tls": "500", "signed": "invalid_client", "signed-file": "500", "bad-key": "",
		"clusters": "list pods: ", "kube-token": "403 Forbidden", "kube-file": "500 No", "kube-basic": "not a NodeList", "kube-tls": "not JSON", "kube-proxy": "407",
		"kube-exec": "exec", "kube-broken": "line 2 is wrong", "kube-data": "client-key-data is not in base64",
	}
}

// TestNoScrapeSecretShows is TestNoSecretShows for scrape jobs and lists of targets over HTTP, and API servers of Kubernetes.
func TestNoScrapeSecretShows(t *testing.T) {
	t.Parallel()
	e := newEcho()
	a, secrets := canaryAgent(t, e, "canary-scrape.yaml")
	a.run()
	t.Cleanup(a.kill)
	want := scrapeFailures()
	eventually(t, 60*time.Second, func() string {
		_, body, err := a.ask(http.MethodGet, "/api/v1/status")
		if err != nil {
			return err.Error()
		}
		var s struct {
			Scrape []struct {
				Job     string
				Error   string `json:"job_error"`
				Targets []struct {
					LastError string `json:"last_error"`
				} `json:"scrape_targets"`
			}
		}
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Scrape) != len(want)+1 {
			t.Fatalf("%d jobs, the test knows of %d", len(s.Scrape), len(want)+1)
		}
		for _, j := range s.Scrape {
			told := j.Error
			for _, target := range j.Targets {
				told += " " + target.LastError
			}
			if j.Job != "lists" && (strings.TrimSpace(told) == "" || !strings.Contains(told, want[j.Job])) {
				return fmt.Sprintf("job %s says %q, not %q", j.Job, told, want[j.Job])
			}
		}
		hits, _ := e.seen()
		for _, what := range []string{"phrase", "500", "302", "raw", "200", "token", "notoken", "proxy", "pods", "services", "nodes", "ingresses"} {
			if hits[what] == 0 {
				return fmt.Sprintf("nothing came to %s: %v", what, hits)
			}
		}
		for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 18, 31, 32, 33, 34, 35, 36, 37, 38, 39, 43, 46, 48, 51, 52, 53, 54} {
			if list := fmt.Sprintf("sd%d", n); hits[list] == 0 {
				return fmt.Sprintf("the list %s was not asked for: %v", list, hits)
			}
		}
		return ""
	})
	_, shown := e.seen()
	secrets = append(secrets, shown...)
	for _, user := range []string{"CANARY-user:CANARY-pass", "CANARY-puser:CANARY-proxy", "u:CANARY-basic", "id:CANARY-client"} {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(user)))
	}
	o := outputs{t: t, a: a, found: map[string]string{}}
	o.pages()
	for _, more := range [][]string{nil, {"--json"}} {
		for _, args := range [][]string{{"status"}, {"check"}, {"targets"}} {
			o.command(append(args, more...)...)
		}
	}
	o.brokenReloads()
	o.crash()
	o.files()
	o.search(secrets)
}
