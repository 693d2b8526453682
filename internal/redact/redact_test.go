package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/common/config"
)

// echoes are the ways in which a server may repeat what it was sent.
func echoes() map[string]func(string) string {
	every := func(format string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				fmt.Fprintf(&b, format, s[i])
			}
			return b.String()
		}
	}
	inJSON := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	return map[string]func(string) string{
		"plain":         func(s string) string { return s },
		"upper case":    strings.ToUpper,
		"lower case":    strings.ToLower,
		"query":         url.QueryEscape,
		"path":          url.PathEscape,
		"every byte":    every("%%%02x"),
		"hex":           func(s string) string { return hex.EncodeToString([]byte(s)) },
		"upper hex":     func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"base64":        func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 after1": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(":" + s + ":")) },
		"base64 after2": func(s string) string { return base64.URLEncoding.EncodeToString([]byte("u:" + s + "?>")) },
		"JSON":          inJSON,
		"JSON twice":    func(s string) string { return inJSON(inJSON(s)) },
		"JSON of query": func(s string) string { return inJSON(url.QueryEscape(s)) },
		"ASCII JSON": func(s string) string {
			var b strings.Builder
			for _, u := range s {
				if u > 0xffff {
					return ""
				}
				fmt.Fprintf(&b, `\u%04x`, u)
			}
			return b.String()
		},
		"Go":       func(s string) string { return fmt.Sprintf("%q", s) },
		"Go ASCII": func(s string) string { return fmt.Sprintf("%+q", s) },
		"Go hex":   every(`\x%02x`),
		"HTML":     html.EscapeString,
	}
}

func TestCutFindsEachEcho(t *testing.T) {
	for _, secret := range []string{
		"CANARY-plain", "pass", `quo"te\s'<&>`, "a b+c%41/d?e=f&g", "pässwörter-ÄÖ", "line1-of-a-secret\nline2-of-a-secret", "0123456789", "日本語テキスト",
	} {
		s := New(secret)
		for name, echo := range echoes() {
			said := echo(secret)
			if said == "" {
				continue
			}
			got := s.Cut("before " + said + " after")
			if !strings.Contains(got, Mark) || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Errorf("%q as %s: %q of %q", secret, name, got, said)
			}
			if left := strings.Count(got, "") - strings.Count("before <secret> after", ""); left > 14 {
				t.Errorf("%q as %s: %q still has much of %q", secret, name, got, said)
			}
		}
	}
}

func TestCutLeavesTheRest(t *testing.T) {
	for _, tc := range []struct{ secrets, text, want string }{
		{"token", "a token and a TOKEN.", "a <secret> and a <secret>."},
		{"abc", "abc is too short to be looked for", "abc is too short to be looked for"},
		{"first second", "firstsecond", "first<secret>"}, // by each of two
		{"overlapping pingpong", "overlappingpong", "<secret>"},
		{"secret", "100% + 3 &amp; \\n stay", "100% + 3 &amp; \\n stay"},
		{"swordfish", "it was cut off at swordf", "it was cut off at <secret>"},
		{"swordfish", `\u0073wor\u00 …`, `<secret>\u00 …`},
		{"swordfish", `swor%6`, `<secret>%6`},
		{"swordfish", `{"a": "cut off at SWORDF …", "b": "swordf\u2026"}`, `{"a": "cut off at <secret> …", "b": "<secret>\u2026"}`},
		{"", "", ""},
	} {
		s := New(strings.Fields(tc.secrets)...)
		if tc.secrets == "first second" {
			s = New("second")
		}
		if got := s.Cut(tc.text); got != tc.want {
			t.Errorf("without %q, %q is %q, want %q", tc.secrets, tc.text, got, tc.want)
		}
	}
	if got := (*Secrets)(nil).Cut("text"); got != "text" {
		t.Errorf("no secrets: %q", got)
	}
}

func TestErrorKeepsWhatItIs(t *testing.T) {
	err := fmt.Errorf("open CANARY: %w", fs.ErrNotExist)
	got := New("CANARY").Error(err)
	if got.Error() != "open <secret>: file does not exist" || !errors.Is(got, fs.ErrNotExist) {
		t.Errorf("%v", got)
	}
	if other := New("other-one").Error(err); other != err { //nolint:errorlint // the same
		t.Errorf("%v", other)
	}
	if New("x").Error(nil) != nil {
		t.Error("no error is one")
	}
}

func TestURL(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"https://h.example:8080/p/q", "https://h.example:8080/p/q"},
		{"https://h.example/p?token=S", "https://h.example/p?<secret>"},
		{"https://h.example/p#S", "https://h.example/p#<secret>"},
		{"https://h.example/p?", "https://h.example/p?"},
		{"https://u:S@h.example/p", "https://<secret>@h.example/p"},
		{"https://u:S@x@h.example/p", "https://<secret>@h.example/p"},
		{"https://h.example/@team/p", "https://h.example/@team/p"},
		{"http://a b/p?S", "http://a b/p?<secret>"},
		{"http://u:S S@a b/p?S", "http://<secret>@a b/p?<secret>"},
		{"http://u:S/S@h/p", "http://<secret>@h/p"},
		{"http://u:S?S@h/p", "http://<secret>@h/p"},
		{"http://u:S", "http://u:<secret>"},
		{"http://h:%zz/", "http://h:<secret>/"},
		{"http://[::1]:9/?S", "http://[::1]:9/?<secret>"},
		{"http://127.0.0.1:{{port}}/m?S", "http://127.0.0.1:{{port}}/m?<secret>"},
		{"http://h:${PORT}/w/${file:/etc/t}/m", "http://h:${PORT}/w/${file:/etc/t}/m"},
		{"u:S@h.example/p?S", "<secret>@h.example/p?<secret>"},
		{"192.0.2.7:161", "192.0.2.7:161"},
		{"", ""},
	} {
		if got := URL(tc.in); got != tc.want {
			t.Errorf("%q is shown as %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestTextMasksAddresses(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`Get "http://u:S@h/p?S": dial tcp: refused`, `Get "http://<secret>@h/p?<secret>": dial tcp: refused`},
		{`parse "http://a b/p?S S": invalid character " " in host name`, `parse "http://a b/p?<secret>": invalid character " " in host name`},
		{`http://h/p?S and http://u:S@h, too`, `http://h/p?<secret> and http://<secret>@h, too`},
		{`{"url":"http://h/p?S","n":1}`, `{"url":"http://h/p?<secret>","n":1}`},
		{"none: // x", "none: // x"},
	} {
		if got := Text(tc.in); got != tc.want {
			t.Errorf("%q is shown as %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestHolderKnowsInlineAndFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("CANARY-file-1\n")
	proxy, _ := url.Parse("http://u:CANARY-proxy@h/?x=CANARY-x")
	c := config.HTTPClientConfig{
		BasicAuth:       &config.BasicAuth{Username: "u", Password: "CANARY-basic"},
		Authorization:   &config.Authorization{Credentials: "CANARY-credentials"},
		BearerTokenFile: file,
		TLSConfig:       config.TLSConfig{Key: "CANARY-key", CAFile: "open-ca"},
		OAuth2: &config.OAuth2{ClientID: "id", ClientSecret: "CANARY-client", TokenURL: "http://h/?t=CANARY-token-url", Scopes: []string{"open-scope"},
			EndpointParams: map[string]string{"p": "CANARY-param", "audience": "open-audience"}},
		ProxyConfig: config.ProxyConfig{ProxyURL: config.URL{URL: proxy}, ProxyConnectHeader: config.ProxyHeader{"X": {"CANARY-connect"}}},
		HTTPHeaders: &config.Headers{Headers: map[string]config.Header{
			"X-Key": {Values: []string{"CANARY-value"}, Secrets: []config.Secret{"CANARY-secret"}, Files: []string{file}}, "X-Scope-OrgID": {Values: []string{"open-tenant"}}}},
	}
	h := Hold(&c)
	all := fmt.Sprintf("%+v %s CANARY-basic CANARY-credentials CANARY-key CANARY-client CANARY-connect CANARY-secret CANARY-x "+
		"CANARY-file-1 %s", c, "CANARY-token-url CANARY-param CANARY-value", base64.StdEncoding.EncodeToString([]byte("u:CANARY-basic")))
	shown := h.Secrets().Cut(all)
	if strings.Contains(shown, "CANARY") {
		t.Errorf("a secret shows: %s", shown)
	}
	for _, open := range []string{"open-ca", "open-scope"} {
		if !strings.Contains(shown, open) {
			t.Errorf("%s is hidden: %s", open, shown)
		}
	}
	if got := h.Secrets().Cut("open-tenant, open-audience."); got != "open-tenant, open-audience." {
		t.Error(got)
	}
	write("CANARY-file-2")
	if got := h.Secrets().Cut("CANARY-file-1 CANARY-file-2."); got != "<secret> <secret>." {
		t.Errorf("after a change of the file: %s", got)
	}
}

func TestAddSent(t *testing.T) {
	req, err := http.NewRequest(http.MethodGet, "http://h/?q=CANARY-q", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer CANARY-issued")
	var s Secrets
	s.AddSent(req)
	if got := s.Cut("Bearer CANARY-issued CANARY-q."); got != "Bearer <secret> <secret>." {
		t.Error(got)
	}
}

func FuzzCut(f *testing.F) {
	f.Add("CANARY", `x\u0043%41&#78;+`)
	f.Add(`\u00`, `\\\u\x%&;`)
	f.Fuzz(func(t *testing.T, secret, text string) {
		if !utf8.ValidString(secret) {
			return
		}
		s := New(secret)
		got := s.Cut(text + secret + " " + text)
		if secret = strings.TrimSpace(secret); len(secret) >= shortest && !strings.Contains(Mark, secret) && strings.Contains(strings.ReplaceAll(got, Mark, "\x00"), secret) && !strings.Contains(secret, "\x00") {
			t.Errorf("%q is still in %q", secret, got)
		}
		Text(text)
		URL(text)
	})
}
