package client

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/config"
)

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
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	return func() {
		cancel()
		<-done
	}
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
		dir := testnet.WriteFiles(t, map[string]string{"token": "old"})
		g := &testnet.Guard{}
		n, stop := testnet.Serve(t, nil, g.Handler(testnet.Bearer))
		defer stop()
		c := newClient(t, "{url: http://h.example/, bearer_token_file: token}", dir, Options{Dial: n.Dial})
		defer run(t, c)()
		end := sendLoad(t, c)
		time.Sleep(30 * time.Second)
		_, before := n.Counts()

		testnet.WriteFile(t, filepath.Join(dir, "token"), "new")
		took := testnet.Within(t, 10*time.Second, "new token in use", func() bool { return g.Count("new") > 0 })
		old := g.Count("old")
		time.Sleep(time.Second)
		synctest.Wait()
		if g.Count("old") > old+4 { // requests that had begun
			t.Errorf("the old token is still used")
		}
		if !notified(c) {
			t.Error("no notice of the change")
		}
		open, all := n.Counts()
		if all == before || open > 4 {
			t.Errorf("connections: %d open, %d before, %d ever", open, before, all)
		}
		t.Logf("%d requests; new token after %s", end(), took)
	})
}

// The old token is revoked at the moment that the file changes: the first refusal
// brings the new one into use, and the held target is notified.
func TestTokenRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := testnet.WriteFiles(t, map[string]string{"token": "old"})
		g := &testnet.Guard{}
		n, stop := testnet.Serve(t, nil, g.Handler(testnet.Bearer))
		defer stop()
		c := newClient(t, "{url: http://h.example/, bearer_token_file: token}", dir, Options{Dial: n.Dial})
		g.Allow("old")
		defer run(t, c)()
		if a := c.EmptyWrite(t.Context()); a.Status != 200 || notified(c) {
			t.Fatalf("%+v", a)
		}
		testnet.WriteFile(t, filepath.Join(dir, "token"), "new")
		g.Allow("new")
		if a := c.EmptyWrite(t.Context()); a.Status != 401 {
			t.Fatalf("%+v", a)
		}
		if !notified(c) {
			t.Error("no notice of the change")
		}
		if a := c.EmptyWrite(t.Context()); a.Status != 200 {
			t.Errorf("%+v", a)
		}
		if g.Refusals() != 1 {
			t.Errorf("%d refusals", g.Refusals())
		}
	})
}

// Careless writers: an empty file, half a token, a file that vanishes.
// None of these contents is used, and the fault is visible.
func TestTokenHalfWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := testnet.WriteFiles(t, map[string]string{"token": "old-token"})
		token := filepath.Join(dir, "token")
		g := &testnet.Guard{}
		n, stop := testnet.Serve(t, nil, g.Handler(testnet.Bearer))
		defer stop()
		g.Allow("old-token", "new-token")
		c := newClient(t, "{url: http://h.example/, bearer_token_file: token}", dir, Options{Dial: n.Dial})
		defer run(t, c)()
		defer func() {
			if g.Refusals() > 0 {
				t.Errorf("refused: %v", g.Seen)
			}
		}()
		end := sendLoad(t, c)
		defer end()

		for _, text := range []string{"", "\n"} {
			if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			testnet.Within(t, 10*time.Second, "error of an empty file", func() bool { return c.CredentialError() != nil })
			testnet.WriteFile(t, token, "old-token")
			testnet.Within(t, 10*time.Second, "no error", func() bool { return c.CredentialError() == nil })
		}
		if err := os.Remove(token); err != nil {
			t.Fatal(err)
		}
		testnet.Within(t, 10*time.Second, "error of a missing file", func() bool { return c.CredentialError() != nil })
		if text := c.CredentialError().Error(); !strings.Contains(text, token) {
			t.Errorf("error does not name the file: %s", text)
		}
		if notified(c) {
			t.Error("notice of a change that is none")
		}
		// Half a token, the rest after 1.5 s.
		testnet.WriteFile(t, token, "new-")
		time.Sleep(1500 * time.Millisecond)
		testnet.WriteFile(t, token, "new-token")
		testnet.Within(t, 10*time.Second, "new token in use", func() bool { return g.Count("new-token") > 0 })
	})
}

// Files that are not there at the start: requests fail with the reason, nothing is
// sent without credentials, and all is well when the files come.
func TestFilesComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g := &testnet.Guard{}
		n, stop := testnet.Serve(t, nil, g.Handler(testnet.Bearer))
		defer stop()
		c := newClient(t, "{url: http://h.example/, bearer_token_file: token}", dir, Options{Dial: n.Dial})
		defer run(t, c)()
		if a := c.EmptyWrite(t.Context()); a.Err == nil || !strings.Contains(a.Err.Error(), "token") || Judge(a, config.Policy{}).Verdict != Retry {
			t.Errorf("%+v", a)
		}
		if _, all := n.Counts(); all > 0 {
			t.Error("a request was sent without credentials")
		}
		testnet.WriteFile(t, filepath.Join(dir, "token"), "late")
		testnet.Within(t, 10*time.Second, "notice", func() bool { return notified(c) })
		if a := c.EmptyWrite(t.Context()); a.Status != 200 || g.Count("late") != 1 {
			t.Errorf("%+v", a)
		}
	})
}

// Files of http_headers are read again as token files are: a new value is in use within ten
// seconds, and at once when the old one is refused.
func TestHeaderFileRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := testnet.WriteFiles(t, map[string]string{"key": "old"})
		g := &testnet.Guard{}
		n, stop := testnet.Serve(t, nil, g.Handler(func(r *http.Request) string { return strings.Join(r.Header["X-Key"], ",") }))
		defer stop()
		c := newClient(t, "{url: http://h.example/, headers: {X-Key: zero}, http_headers: {X-Key: {values: [one], files: [key]}}}", dir, Options{Dial: n.Dial})
		defer run(t, c)()
		if a := c.EmptyWrite(t.Context()); a.Status != 200 || g.Count("zero,one,old") != 1 {
			t.Fatalf("%+v, seen %v", a, g.Seen)
		}
		testnet.WriteFile(t, filepath.Join(dir, "key"), "new")
		time.Sleep(10 * time.Second)
		if a := c.EmptyWrite(t.Context()); a.Status != 200 || g.Count("zero,one,new") != 1 || !notified(c) {
			t.Errorf("%+v, seen %v", a, g.Seen)
		}
		testnet.WriteFile(t, filepath.Join(dir, "key"), "newer")
		g.Allow("zero,one,newer")
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
