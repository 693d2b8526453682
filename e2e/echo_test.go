package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/golang/snappy"
)

// spellings returns the ways in which the other side repeats what it was sent, and a leak may look.
func spellings() map[string]func(string) string {
	return map[string]func(string) string{
		"plain":      func(s string) string { return s },
		"upper case": strings.ToUpper,
		"lower case": strings.ToLower,
		"query":      url.QueryEscape,
		"path":       url.PathEscape,
		"hex":        func(s string) string { return hex.EncodeToString([]byte(s)) },
		"upper hex":  func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"base64":     func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"shifted":    func(s string) string { return base64.URLEncoding.EncodeToString([]byte("u:" + s)) },
		"HTML":       html.EscapeString,
		"JSON": func(s string) string {
			var b strings.Builder
			for _, r := range s {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
			return b.String()
		},
		"bytes": func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				fmt.Fprintf(&b, "%%%02X", s[i])
			}
			return b.String()
		},
	}
}

// spelled is each of the texts in each spelling.
func spelled(texts []string) string {
	var b strings.Builder
	for _, s := range texts {
		for _, spell := range spellings() {
			b.WriteString(spell(s) + " ")
		}
	}
	return b.String()
}

// echo is the other side of each address of a canary configuration: receiver, target, list of
// targets, token endpoint and proxy. It refuses everything, but for the samples that are not refusable, and says again
// all that it was sent.
type echo struct {
	mu    sync.Mutex
	hits  map[string]int  // by the last element of the path, "proxy" for the proxy
	shown map[string]bool // received credentials: none of them may appear anywhere
}

func newEcho() *echo { return &echo{hits: map[string]int{}, shown: map[string]bool{}} }

// note counts a request. It returns what of it is secret.
func (e *echo) note(what string, texts ...string) (secrets []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hits[what]++
	for _, s := range texts {
		if scheme, bare, ok := strings.Cut(s, " "); ok && !strings.Contains(scheme, "CANARY") { // of Authorization
			s = bare
		}
		if s != "" && !slices.Contains(secrets, s) {
			e.shown[s] = true
			secrets = append(secrets, s)
		}
	}
	return secrets
}

func (e *echo) seen() (hits map[string]int, secrets []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	hits = map[string]int{}
	for what, n := range e.hits {
		hits[what] = n
	}
	for s := range e.shown {
		secrets = append(secrets, s)
	}
	return hits, secrets
}

// canariesOf returns the values of a request that hold a canary, with those that let it in.
func canariesOf(r *http.Request) []string {
	all := []string{r.Header.Get("Authorization"), r.Header.Get("Proxy-Authorization"), r.PostForm.Get("assertion"), r.PostForm.Get("client_assertion"), r.PostForm.Get("client_secret")}
	for _, values := range []map[string][]string{r.Header, r.URL.Query(), r.PostForm} {
		for _, of := range values {
			for _, v := range of {
				if strings.Contains(v, "CANARY") {
					all = append(all, v)
				}
			}
		}
	}
	for part := range strings.SplitSeq(r.URL.Path, "/") {
		if strings.Contains(part, "CANARY") {
			all = append(all, part)
		}
	}
	return all
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "token") {
		_ = r.ParseForm()
	}
	body, _ := io.ReadAll(r.Body)
	last := path.Base(r.URL.Path)
	secrets := e.note(last, canariesOf(r)...)
	if first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); strings.HasPrefix(first, "sd") {
		e.note(first)
	}
	again := spelled(secrets)
	// Just where an answer is cut off, half a secret would stand.
	said := fmt.Sprint(again, r.URL.String(), " ", r.Header, " ", r.PostForm, " ", strings.Repeat(".", 100), r.Header, strings.Repeat(strings.Join(secrets, " ")+" ", 100))
	status := 0
	switch last {
	case "token":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token": "CANARY-issued", "expires_in": 3600}`)
		return
	case "notoken":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_client", "error_description": said})
		return
	case "hang":
		<-r.Context().Done()
		return
	case "raw":
		e.hijack(w, fmt.Sprintf("%s\r\n\r\n", r.Header))
		return
	case "phrase": // which scrapes show
		e.hijack(w, fmt.Sprintf("HTTP/1.1 500 No %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", strings.NewReplacer("\r", "", "\n", "").Replace(again)))
		return
	case "pods": // of an API server, as are the next ones
		e.hijack(w, fmt.Sprintf("HTTP/1.1 500 No %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", strings.NewReplacer("\r", "", "\n", "").Replace(again)))
		return
	case "services":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "code": 403, "reason": "Forbidden", "message": said})
		return
	case "nodes":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": strings.Join(secrets, " ") + said})
		return
	case "ingresses":
		w.Header().Set("Content-Type", "text/"+strings.NewReplacer(" ", "", "\n", "", "\r", "").Replace(strings.Join(secrets, "")))
		_, _ = io.WriteString(w, said)
		return
	case "302":
		w.Header().Set("Location", "http://127.0.0.1:1/?"+r.Header.Get("Authorization"))
		status = http.StatusFound
	default:
		_, _ = fmt.Sscanf(last, "%d", &status)
	}
	if (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) && !refusable(body) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if status == 0 {
		status = http.StatusNotFound
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, said)
}

// refusable reports whether a write has a sample of the series "1" of the canary probe. The echo takes the
// others: only then does the agent keep letters of those that it refuses.
func refusable(body []byte) bool {
	message, err := snappy.Decode(nil, body)
	return err == nil && bytes.Contains(message, []byte("\x0a\x06series\x12\x011")) // the label as remote write 1.0 has it
}

func (e *echo) hijack(w http.ResponseWriter, text string) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
}

// proxy refuses each request and says it again.
func (e *echo) proxy(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				secrets := e.note("proxy", req.Header.Get("Proxy-Authorization"), req.Header.Get("X-Proxy"))
				said := strings.NewReplacer("\r", "", "\n", "").Replace(spelled(secrets) + fmt.Sprint(req.Header))
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 407 No %s\r\nContent-Length: %d\r\n\r\n%s", said, len(said), said)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// device answers each packet with that packet, the community in it.
func (e *echo) device(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		packet := make([]byte, 1<<16)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			e.note("device")
			_, _ = conn.WriteTo(packet[:n], from)
		}
	})
	t.Cleanup(func() {
		conn.Close()
		wg.Wait()
	})
	return conn.LocalAddr().String()
}

// leaks finds a secret in what has come out, in any spelling; "" if there is none.
func leaks(text string, secrets []string) string {
	if i := strings.Index(text, "CANARY"); i >= 0 {
		return fmt.Sprintf("…%s…", text[max(0, i-200):min(len(text), i+80)])
	}
	text = strings.ToLower(text)
	for _, s := range append(secrets, "CANARY-") { // the dash, since a probe is called canary
		for name, spell := range spellings() {
			if name == "shifted" || name == "base64" && s == "CANARY-" {
				continue // what of it depends on the secret alone is looked for below
			}
			if i := strings.Index(text, strings.ToLower(spell(s))); i >= 0 {
				return fmt.Sprintf("%q as %s: …%s…", s, name, text[max(0, i-200):min(len(text), i+80)])
			}
		}
	}
	for before := range 3 { // as base64 has it after 0, 1 and 2 bytes, without what depends on others
		code := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("u", before) + "CANARY."))[(8*before+5)/6 : 8*(before+len("CANARY"))/6]
		if i := strings.Index(text, strings.ToLower(code)); i >= 0 {
			return fmt.Sprintf("base64: …%s…", text[max(0, i-200):min(len(text), i+80)])
		}
	}
	return ""
}

func TestLeaksFindsEachSpelling(t *testing.T) {
	for name, spell := range spellings() {
		if leaks("before "+spell("CANARY-secret")+" after", nil) == "" {
			t.Errorf("a secret spelled as %s is not found in %q", name, spell("CANARY-secret"))
		}
	}
	if found := leaks("nothing <secret> of the kind", []string{"plain-secret"}); found != "" {
		t.Errorf("found %s", found)
	}
}
