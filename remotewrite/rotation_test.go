package remotewrite

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/config"
)

// guard is a receiver that lets requests in by their credentials, and notes which it
// saw.
type guard struct {
	mu      sync.Mutex
	allowed map[string]bool // nil: all
	seen    map[string]int
	refused int
}

// handler asks who for the name under which a request counts.
func (g *guard) handler(who func(*http.Request) string) http.HandlerFunc {
	g.seen = map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		name := who(r)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.seen[name]++
		if g.allowed != nil && !g.allowed[name] {
			g.refused++
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
}

func (g *guard) allow(names ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allowed = map[string]bool{}
	for _, n := range names {
		g.allowed[n] = true
	}
}

func (g *guard) count(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[name]
}

func (g *guard) refusals() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

func bearer(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func commonName(r *http.Request) string { return r.TLS.PeerCertificates[0].Subject.CommonName }

// load sends from several goroutines until stopped, and fails the test for every
// request that was not taken.
func sendLoad(t *testing.T, c *Client) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				a := c.Send(t.Context(), Request{Body: []byte("samples")})
				if a.Status != 200 {
					t.Errorf("request is lost: %+v", a)
				}
				mu.Lock()
				total++
				mu.Unlock()
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	return func() int {
		cancel()
		wg.Wait()
		return total
	}
}

// run starts the client's Run and returns what ends it.
func run(t *testing.T, c *Client) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// within waits in virtual time until the condition holds and returns how long it took.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
	return time.Since(start)
}

func notified(c *Client) bool {
	select {
	case <-c.CredentialsChanged():
		return true
	default:
		return false
	}
}

// A token file is replaced under load while both tokens are good: nothing is lost,
// and the new one is in use within ten seconds, on new connections.
func TestTokenRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := files(t, map[string]string{"token": "old"})
		g := &guard{}
		n, stop := memServe(t, nil, g.handler(bearer))
		defer stop()
		c := newClient(t, "{url: http://h.example/, bearer_token_file: token}", dir, ClientOptions{Dial: n.dial})
		defer run(t, c)()
		end := sendLoad(t, c)
		time.Sleep(30 * time.Second)
		_, before := n.counts()

		write(t, filepath.Join(dir, "token"), "new")
		took := within(t, 10*time.Second, "new token in use", func() bool { return g.count("new") > 0 })
		old := g.count("old")
		time.Sleep(time.Second)
		synctest.Wait()
		if g.count("old") > old+4 { // requests that had begun
			t.Errorf("the old token is still used")
		}
		if !notified(c) {
			t.Error("no notice of the change")
		}
		open, all := n.counts()
		if all == before || open > 4 {
			t.Errorf("connections: %d open, %d before, %d ever", open, before, all)
		}
		t.Logf("%d requests; new token after %s", end(), took)
	})
}

// The old token is revoked in the moment that the file changes: the first refusal
// brings the new one into use, and the held target is told.
func TestTokenRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := files(t, map[string]string{"token": "old"})
		g := &guard{}
		n, stop := memServe(t, nil, g.handler(bearer))
		defer stop()
		c := newClient(t, "{url: http://h.example/, bearer_token_file: token}", dir, ClientOptions{Dial: n.dial})
		g.allow("old")
		defer run(t, c)()
		if a := c.EmptyWrite(t.Context()); a.Status != 200 || notified(c) {
			t.Fatalf("%+v", a)
		}
		write(t, filepath.Join(dir, "token"), "new")
		g.allow("new")
		if a := c.EmptyWrite(t.Context()); a.Status != 401 {
			t.Fatalf("%+v", a)
		}
		if !notified(c) {
			t.Error("no notice of the change")
		}
		if a := c.EmptyWrite(t.Context()); a.Status != 200 {
			t.Errorf("%+v", a)
		}
		if g.refusals() != 1 {
			t.Errorf("%d refusals", g.refusals())
		}
	})
}

// Writers that are not careful: an empty file, half a token, a file that vanishes.
// None of it is used, and what is wrong can be seen.
func TestTokenHalfWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := files(t, map[string]string{"token": "old-token"})
		token := filepath.Join(dir, "token")
		g := &guard{}
		n, stop := memServe(t, nil, g.handler(bearer))
		defer stop()
		g.allow("old-token", "new-token")
		c := newClient(t, "{url: http://h.example/, bearer_token_file: token}", dir, ClientOptions{Dial: n.dial})
		defer run(t, c)()
		defer func() {
			if g.refusals() > 0 {
				t.Errorf("refused: %v", g.seen)
			}
		}()
		end := sendLoad(t, c)
		defer end()

		for _, text := range []string{"", "\n"} {
			if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			within(t, 10*time.Second, "error of an empty file", func() bool { return c.CredentialError() != nil })
			write(t, token, "old-token")
			within(t, 10*time.Second, "no error", func() bool { return c.CredentialError() == nil })
		}
		if err := os.Remove(token); err != nil {
			t.Fatal(err)
		}
		within(t, 10*time.Second, "error of a missing file", func() bool { return c.CredentialError() != nil })
		if text := c.CredentialError().Error(); !strings.Contains(text, token) {
			t.Errorf("error does not name the file: %s", text)
		}
		if notified(c) {
			t.Error("notice of a change that is none")
		}
		// Half a token, the rest after 1.5 s.
		write(t, token, "new-")
		time.Sleep(1500 * time.Millisecond)
		write(t, token, "new-token")
		within(t, 10*time.Second, "new token in use", func() bool { return g.count("new-token") > 0 })
	})
}

// Files that are not there at the start: requests fail with the reason, nothing is
// sent without credentials, and all is well when the files come.
func TestFilesComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g := &guard{}
		n, stop := memServe(t, nil, g.handler(bearer))
		defer stop()
		c := newClient(t, "{url: http://h.example/, bearer_token_file: token}", dir, ClientOptions{Dial: n.dial})
		defer run(t, c)()
		if a := c.EmptyWrite(t.Context()); a.Err == nil || !strings.Contains(a.Err.Error(), "token") || Classify(a, config.Policy{}) != Retry {
			t.Errorf("%+v", a)
		}
		if _, all := n.counts(); all > 0 {
			t.Error("a request was sent without credentials")
		}
		write(t, filepath.Join(dir, "token"), "late")
		within(t, 10*time.Second, "notice", func() bool { return notified(c) })
		if a := c.EmptyWrite(t.Context()); a.Status != 200 || g.count("late") != 1 {
			t.Errorf("%+v", a)
		}
	})
}

// Files of http_headers are read again as token files are: a new value is in use within ten
// seconds, and at once when the old one is refused.
func TestHeaderFileRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := files(t, map[string]string{"key": "old"})
		g := &guard{}
		n, stop := memServe(t, nil, g.handler(func(r *http.Request) string { return strings.Join(r.Header["X-Key"], ",") }))
		defer stop()
		c := newClient(t, "{url: http://h.example/, headers: {X-Key: zero}, http_headers: {X-Key: {values: [one], files: [key]}}}", dir, ClientOptions{Dial: n.dial})
		defer run(t, c)()
		if a := c.EmptyWrite(t.Context()); a.Status != 200 || g.count("zero,one,old") != 1 {
			t.Fatalf("%+v, seen %v", a, g.seen)
		}
		write(t, filepath.Join(dir, "key"), "new")
		time.Sleep(10 * time.Second)
		if a := c.EmptyWrite(t.Context()); a.Status != 200 || g.count("zero,one,new") != 1 || !notified(c) {
			t.Errorf("%+v, seen %v", a, g.seen)
		}
		write(t, filepath.Join(dir, "key"), "newer")
		g.allow("zero,one,newer")
		if a := c.EmptyWrite(t.Context()); a.Status != 401 {
			t.Errorf("%+v", a)
		}
		if a := c.EmptyWrite(t.Context()); a.Status != 200 {
			t.Errorf("%+v", a)
		}
		c.Close()
		synctest.Wait()
	})
}
