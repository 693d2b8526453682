package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	o := scrapeOutputs(t, a)
	o.brokenReloads()
	o.crash()
	o.files()
	o.search(40, secrets)
}

// scrapeOutputs returns the pages of a running agent, and what its commands print.
func scrapeOutputs(t *testing.T, a *agent) outputs {
	t.Helper()
	o := outputs{t: t, a: a, found: map[string]string{}}
	o.pages()
	for _, more := range [][]string{nil, {"--json"}} {
		for _, args := range [][]string{{"status"}, {"check"}, {"targets"}} {
			o.command(append(args, more...)...)
		}
	}
	return o
}

// TestScrapeShowsNoSecret: secrets of scrape jobs, in each place that takes one, against targets that
// echo them, that cannot be reached and that redirect to another host: neither log, page, command, file,
// metrics nor failure log has one, and the other host gets none.
func TestScrapeShowsNoSecret(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	var mu sync.Mutex
	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		elsewhere = append(elsewhere, fmt.Sprint(r.Header, r.URL))
		mu.Unlock()
		fmt.Fprint(w, "a 1\n")
	}))
	defer other.Close()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/redirect") {
			http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+r.URL.Path, http.StatusFound)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = r.ParseForm()
		said := fmt.Sprint(r.Header, r.URL.Query(), r.URL.RawQuery, r.Form)
		fmt.Fprintf(conn, "HTTP/1.1 403 %s\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n{\"error\": \"bad\", \"error_description\": %q}", said, said)
	}))
	defer echo.Close()
	dir := t.TempDir()
	n := 0
	var canaries []string
	canary := func() string {
		n++
		c := fmt.Sprintf("CANARY%03dxyz", n)
		canaries = append(canaries, c, base64.StdEncoding.EncodeToString([]byte("u:"+c)), url.QueryEscape(c))
		return c
	}
	host := strings.TrimPrefix(echo.URL, "http://")
	var jobs strings.Builder
	redirected := 0
	for kind, setting := range map[string]func() string{
		"bearer": func() string { return "authorization: {credentials: " + canary() + "}" },
		"file": func() string {
			return "authorization: {credentials_file: " + writeFile(t, filepath.Join(dir, "token"), canary()) + "}"
		},
		"basic": func() string { return "basic_auth: {username: u, password: " + canary() + "}" },
		"header": func() string {
			return "http_headers: {X-Key: {secrets: [" + canary() + "], values: [" + canary() + "]}}"
		},
		"params": func() string { return "params: {token: [" + canary() + ", " + canary() + "]}" },
		"oauth": func() string {
			return "oauth2: {client_id: u, client_secret: " + canary() + ", endpoint_params: {extra: " + canary() + "}, token_url: '" + echo.URL + "/token?k=" + canary() + "'}"
		},
		"proxy": func() string { return "proxy_url: 'http://u:" + canary() + "@127.0.0.1:1'" },
	} {
		for _, at := range []string{"echo", "gone", "redirect"} {
			address := host
			if at == "gone" {
				address = "127.0.0.1:1"
			}
			if at == "redirect" && kind != "proxy" && kind != "oauth" {
				redirected++
			}
			fmt.Fprintf(&jobs, "  - {job_name: %s-%s, metrics_path: /%s/%s, scrape_failure_log_file: %s, static_configs: [{targets: ['%s']}], %s}\n", kind, at, at, kind, filepath.Join(dir, "failures"), address, setting())
			discovered := echo.URL
			if at == "gone" {
				discovered = "http://127.0.0.1:1"
			}
			if at == "echo" || kind != "params" {
				extra := ", " + setting()
				if kind == "params" {
					extra = ""
				}
				fmt.Fprintf(&jobs, "  - {job_name: sd-%s-%s, http_sd_configs: [{refresh_interval: 1s, url: '%s/%s/sd?t=%s'%s}]}\n", kind, at, discovered, at, canary(), extra)
			}
		}
	}
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `[{"targets": [%q]}]`, host)
	}))
	defer list.Close()
	fmt.Fprintf(&jobs, "  - {job_name: found, http_sd_configs: [{url: '%s/sd?t=%s'}]}\n", strings.Replace(list.URL, "://", "://u:"+canary()+"@", 1), canary())
	rule := canary()
	fmt.Fprintf(&jobs, "  - {job_name: ruled, static_configs: [{targets: ['%s']}], relabel_configs: [{target_label: __param_target, replacement: '%s'}]}\n", host, rule)

	a := newAgent(t, "web: {pprof: true}\nglobal: {scrape_interval: 1s, scrape_timeout: 1s}\nprobes: [{name: hwsagent, type: self, enabled: false}]\nscrape_configs:\n"+jobs.String())
	a.args = append(a.args, "--log.level", "debug")
	a.run()
	t.Cleanup(a.kill)
	eventually(t, 60*time.Second, func() string {
		waiting := 0
		for _, one := range apiTargets(t, a) {
			if one.Health == "unknown" {
				waiting++
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if got := len(elsewhere); waiting > 0 || got < redirected {
			return fmt.Sprintf("%d targets have not been scraped, %d redirects of %d were followed", waiting, got, redirected)
		}
		return ""
	})
	eventually(t, 30*time.Second, func() string { // each list has been asked for
		for _, kind := range []string{"bearer", "file", "basic", "header", "oauth", "proxy"} {
			if !strings.Contains(a.logText(), "sd-"+kind+"-gone") {
				return "nothing is logged of the list for sd-" + kind + "-gone"
			}
		}
		return ""
	})
	o := scrapeOutputs(t, a)
	inForce := "GET /api/v1/config" // has the rules as they are written
	o.found[inForce] = strings.ReplaceAll(o.found[inForce], rule, "")
	failures, err := os.ReadFile(filepath.Join(dir, "failures"))
	if err != nil || len(failures) == 0 {
		t.Errorf("the failure log has %d bytes: %v", len(failures), err)
	}
	o.found["the failure log"] = string(failures)
	o.crash()
	o.files()
	mu.Lock()
	o.found["another host"] = strings.Join(elsewhere, "\n")
	mu.Unlock()
	o.search(20, canaries)
}
