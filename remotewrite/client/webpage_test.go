package client

import (
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/remotewrite/config"
)

// TestSendMeetsOddWebPages: a page that begins with other things, is compressed although the agent did not ask for that, or
// shows only by its type that it is a page, is no receiver's 2xx either. The words of a compressed answer can be read.
func TestSendMeetsOddWebPages(t *testing.T) {
	zipped := func(text string) string {
		var b strings.Builder
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text)) // into memory
		_ = z.Close()
		return b.String()
	}
	const login = "<!DOCTYPE html><title>Log in</title>"
	for _, c := range []struct {
		kind, encoding, body string
		page                 bool
		text                 string // "": any
	}{
		{"text/plain", "", "<!-- ours -->\n <!-- and more -->" + login, true, "Log in"},
		{"text/plain", "", "<?xml version=\"1.0\"?>\n<!-- XHTML -->" + login, true, "Log in"},
		{"text/plain", "", "<!-- never ends " + login, false, ""},
		{"text/html; charset=utf-8", "", "<head><script>location='/login'</script>", true, ""},
		{"application/xhtml+xml", "", "<body>", true, ""},
		{"text/html", "", "stored", false, "stored"}, // by default in some frameworks
		{"text/html", "", "", false, ""},
		{"application/xml", "", "<?xml version=\"1.0\"?><ok/>", false, ""},
		{"text/html", "gzip", zipped(login), true, "Log in"},
		{"", "X-Gzip", zipped(login), true, "Log in"},
		{"text/html", "gzip", zipped("stored"), false, "stored"},
		{"text/html", "gzip", "not gzip at all", false, ""},
		{"text/html", "br", "\x8b\x02\x80login", true, ""},
		{"text/plain", "br", "\x8b\x02\x80ok", false, ""},
		{"text/html", "identity", "stored", false, "stored"},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			if c.encoding != "" {
				w.Header().Set("Content-Encoding", c.encoding)
			}
			_, _ = io.WriteString(w, c.body)
		})
		a := newClient(t, "url: "+s.URL, "", Options{}).Send(t.Context(), Request{Body: []byte("x")})
		if a.Status != 200 || a.Page != c.page || (Judge(a, config.Policy{}).Verdict == Delivered) == c.page || c.text != "" && a.Text != c.text {
			t.Errorf("%s, %s, body %q: %+v", c.kind, c.encoding, c.body, a)
		}
	}
}

// TestTokenWithByteOrderMark: what editors put around a token does not become part of it.
func TestTokenWithByteOrderMark(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("\ufeffabc\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") })
	newClient(t, "url: "+s.URL+"\nauthorization: {credentials_file: token}", dir, Options{}).EmptyWrite(t.Context())
	if have := <-got; have != "Bearer abc" {
		t.Errorf("the agent sent %q", have)
	}
}
