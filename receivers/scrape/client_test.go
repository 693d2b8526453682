package scrape

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/internal/pages"
)

// configOf is the configuration of the only job of an entry.
func configOf(t testing.TB, entry string) *settings {
	t.Helper()
	return jobs(t, entry).settings()[0]
}

// getAt gets the page at address by the settings of an entry.
func getAt(t *testing.T, entry, address string) (page string, err error) {
	t.Helper()
	cfg := configOf(t, entry)
	c, err := newClient(cfg.HTTPClientConfig, cfg.Params, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	r := newRequester(c, &target{url: u.String(), timeout: 10 * time.Second}, cfg)
	var buf bytes.Buffer
	_, err = r.get(t.Context(), &buf, new(pages.Buffers))
	return buf.String(), err
}

// TestRedirectsCarryNoSecrets: a redirect is followed as in Prometheus, but credentials, headers of
// http_headers and the query of the first address go to no other host or port, also not on the way
// back, and a change from https to http counts as another.
func TestRedirectsCarryNoSecrets(t *testing.T) {
	const canary = "CANARY-5e3c"
	settings := map[string]string{
		"bearer":  "authorization: {credentials: " + canary + "}",
		"basic":   "basic_auth: {username: u, password: " + canary + "}",
		"headers": "http_headers: {X-Key: {secrets: [" + canary + "]}, X-Tenant: {values: [" + canary + "]}, Cookie: {secrets: [" + canary + "]}}",
	}
	for name, setting := range settings {
		for _, to := range []string{"other", "back", "home"} {
			t.Run(name+" "+to, func(t *testing.T) {
				var mu sync.Mutex
				seen := map[string][]bool{} // whether a request to a server had the canary, in their order
				note := func(server string, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					all := fmt.Sprint(r.Header, r.URL)
					has := strings.Contains(all, canary) || strings.Contains(all, base64.StdEncoding.EncodeToString([]byte("u:"+canary)))
					seen[server] = append(seen[server], has)
				}
				var home *httptest.Server
				other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					note("other", r)
					if to == "back" && r.URL.Path == "/1" {
						http.Redirect(w, r, home.URL+"/2", http.StatusFound)
						return
					}
					fmt.Fprint(w, "a 1\n")
				}))
				defer other.Close()
				home = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					note("home", r)
					switch {
					case r.URL.Path != "/":
						fmt.Fprint(w, "a 1\n")
					case to == "home":
						http.Redirect(w, r, "/2", http.StatusFound)
					default:
						http.Redirect(w, r, other.URL+"/1", http.StatusFound)
					}
				}))
				defer home.Close()
				page, err := getAt(t, "{job_name: j, "+setting+"}", home.URL+"/?key="+canary)
				if err != nil || page != "a 1\n" {
					t.Fatalf("got %q, %v", page, err)
				}
				want := map[string]string{"other": "map[home:[true] other:[false]]", "back": "map[home:[true false] other:[false]]", "home": "map[home:[true true]]"}[to]
				if got := fmt.Sprint(seen); got != want {
					t.Errorf("requests with the secret: %s, want %s", got, want)
				}
			})
		}
	}
}

func TestAtHome(t *testing.T) {
	for _, tc := range []struct {
		way  string
		want bool
	}{
		{"http://a/", true}, {"http://a/ http://a/x", true}, {"http://a/ http://A/x", true},
		{"http://a/ https://a/", true}, {"http://a:1/ https://a:2/", true}, {"https://a/ http://a/", false},
		{"http://a/ http://b/", false}, {"http://a/ http://a:81/", false}, {"http://a/ http://x.a/", false},
		{"http://a/ http://b/ http://a/", false}, {"http://a/ https://a/ http://a/", true}, {"https://a/ https://a:444/", false},
	} {
		var req *http.Request
		for _, to := range strings.Fields(tc.way) {
			next := httptest.NewRequest(http.MethodGet, to, nil)
			if req != nil {
				next.Response = &http.Response{Request: req}
			}
			req = next
		}
		if got := atHome(req); got != tc.want {
			t.Errorf("%s: %t, want %t", tc.way, got, tc.want)
		}
	}
}

// TestErrorsHideSecrets: whatever fails, and whatever a server says, an error shows no secret.
func TestErrorsHideSecrets(t *testing.T) {
	const canary = "CANARY+5e/3c"
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = r.ParseForm()
		said := fmt.Sprint(r.Header, r.URL.Query(), r.URL.RawQuery, r.Form)
		fmt.Fprintf(conn, "HTTP/1.1 418 %s\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n{\"error\": \"bad\", \"error_description\": %q}", said, said)
	}))
	defer echo.Close()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/?next="+url.QueryEscape(canary), http.StatusFound)
	}))
	defer elsewhere.Close()
	forms := []string{canary, url.QueryEscape(canary), base64.StdEncoding.EncodeToString([]byte("u:" + canary)), "CANARY"}
	for name, entry := range map[string]string{
		"bearer":     "authorization: {credentials: '" + canary + "'}",
		"basic":      "basic_auth: {username: u, password: '" + canary + "'}",
		"headers":    "http_headers: {X-Key: {secrets: ['" + canary + "']}}",
		"values":     "http_headers: {X-Key: {values: ['" + canary + "']}}",
		"params":     "params: {token: ['" + canary + "']}",
		"oauth":      "oauth2: {client_id: u, client_secret: '" + canary + "', token_url: '" + echo.URL + "/token'}",
		"oauth form": "oauth2: {client_id: u, client_secret: x, endpoint_params: {key: '" + canary + "'}, token_url: '" + echo.URL + "/token'}",
		"oauth url":  "oauth2: {client_id: u, client_secret: x, token_url: 'http://127.0.0.1:1/token?key=" + url.QueryEscape(canary) + "'}",
		"connect":    "oauth2: {client_id: u, client_secret: x, token_url: 'https://127.0.0.1:1/t', proxy_url: '" + echo.URL + "', proxy_connect_header: {X-Key: ['" + canary + "']}}",
		"proxy":      "proxy_url: 'http://u:" + url.QueryEscape(canary) + "@127.0.0.1:1/'",
	} {
		for at, address := range map[string]string{"echo": echo.URL, "unreachable": "http://127.0.0.1:1", "redirect": elsewhere.URL, "no address": "http://["} {
			query := "/?token=" + url.QueryEscape(canary)
			if at == "no address" {
				query = ""
			}
			cfg := configOf(t, "{job_name: j, "+entry+"}")
			c, err := newClient(cfg.HTTPClientConfig, cfg.Params, "")
			if err != nil {
				t.Fatal(err)
			}
			r := newRequester(c, &target{url: address + query, timeout: 10 * time.Second}, cfg)
			_, err = r.get(t.Context(), new(bytes.Buffer), new(pages.Buffers))
			c.close()
			if err == nil {
				t.Errorf("%s at %s: no error", name, at)
				continue
			}
			for _, form := range forms {
				if strings.Contains(err.Error(), form) {
					t.Errorf("%s at %s shows %q: %v", name, at, form, err)
				}
			}
		}
	}
}

// TestErrorsAreShort: a server cannot fill the log with a text.
func TestErrorsAreShort(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 500 %s\r\nConnection: close\r\n\r\n", strings.Repeat("long ", 100_000))
	}))
	defer s.Close()
	_, err := getAt(t, "{job_name: j}", s.URL)
	if err == nil || len(err.Error()) > 2*maxErrorText || !strings.Contains(err.Error(), "500 long") {
		t.Errorf("%.2000v", err)
	}
}

// TestSocket: a target with a socket is asked through that.
func TestSocket(t *testing.T) {
	socket := t.TempDir() + "/s"
	l := listenUnix(t, socket)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "a{host=%q} 1\n", r.Host) })}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // until it is closed
	}()
	defer func() { s.Close(); <-done }()
	m := newMemory()
	run(t, m, jobs(t, fmt.Sprintf("{job_name: j, static_configs: [{targets: ['far.example:80'], labels: {instance: i, __unix_socket__: %q}}]}", socket)))
	until(t, "it is scraped", func() bool { return len(m.all(`{__name__="a", host="far.example:80", instance="i", job="j"}`)) > 0 })
}
