package e2e

import (
	"encoding/base64"
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

// TestScrapeShowsNoSecret: secrets of scrape jobs, in each place that takes one, against targets that
// echo them, that cannot be reached and that redirect to another host: neither log, page, status, list
// of targets, metrics nor failure log has one, and the other host gets none.
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
	fmt.Fprintf(&jobs, "  - {job_name: ruled, static_configs: [{targets: ['%s']}], relabel_configs: [{target_label: __param_target, replacement: '%s'}]}\n", host, canary())

	a := newAgent(t, "global: {scrape_interval: 1s, scrape_timeout: 1s}\nprobes: [{name: hwsagent, type: self, enabled: false}]\nscrape_configs:\n"+jobs.String())
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
	shown := map[string]string{"the log": a.logText()}
	for _, path := range []string{"/", "/targets", "/api/v1/status", "/api/v1/targets", "/metrics", "/config"} {
		code, body, err := a.ask(http.MethodGet, path)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d, %d bytes", path, code, len(body))
		shown[path] = body
	}
	failures, err := os.ReadFile(filepath.Join(dir, "failures"))
	if err != nil || len(failures) == 0 {
		t.Errorf("the failure log has %d bytes: %v", len(failures), err)
	}
	shown["the failure log"] = string(failures)
	mu.Lock()
	shown["another host"] = strings.Join(elsewhere, "\n")
	mu.Unlock()
	for where, text := range shown {
		for _, c := range canaries {
			if i := strings.Index(text, c); i >= 0 {
				t.Errorf("%s has a secret: …%s…", where, text[max(0, i-200):min(len(text), i+80)])
				break
			}
		}
	}
}
