package httpbound

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers each connection's first request by hand; the connection stays open until the
// test ends or the client closes it. closed receives once for each connection that the client
// closed.
func serve(t *testing.T, answer func(c net.Conn)) (url string, closed <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{}, 10)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				answer(c)
				_, _ = io.Copy(io.Discard, c)
				gone <- struct{}{}
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return "http://" + l.Addr().String(), gone
}

// drip sends one byte each 10 ms until the client has gone.
func drip(head string) func(c net.Conn) {
	return func(c net.Conn) {
		_, err := io.WriteString(c, head)
		for ; err == nil; time.Sleep(10 * time.Millisecond) { // the pace of the fault
			_, err = io.WriteString(c, "x")
		}
	}
}

func say(text string) func(c net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

const (
	limit   = 200 * time.Millisecond // of a body
	timeout = 300 * time.Millisecond // of a request
	patient = 20 * time.Second       // of the test, on a busy machine
)

// TestEveryAnswerEnds: each kind of endless answer, with each way to bound it.
func TestEveryAnswerEnds(t *testing.T) {
	answers := map[string]func(c net.Conn){
		"101":                 say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
		"101 that drips":      drip("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
		"hangs in the body":   say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nxx"),
		"drips to its length": drip("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"),
		"drips without end":   drip("HTTP/1.1 503 Service Unavailable\r\n\r\n"),
		"a chunk that drips":  drip("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n"),
	}
	for name, answer := range answers {
		for _, by := range []string{"limit", "context", "deadline"} {
			t.Run(name+", "+by, func(t *testing.T) {
				t.Parallel()
				url, closed := serve(t, answer)
				next := &http.Transport{}
				client := &http.Client{Transport: Transport{Next: next}}
				defer client.CloseIdleConnections()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				switch by {
				case "limit":
					client.Transport = Transport{Next: next, Limit: limit}
				case "context":
					time.AfterFunc(timeout, cancel)
				case "deadline":
					ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTest)
					defer cancel()
				}
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_, err = io.ReadAll(resp.Body)
				if resp.StatusCode == http.StatusSwitchingProtocols {
					if err != nil || resp.Body != http.NoBody {
						t.Errorf("the body of 101: %v", err)
					}
				} else if want := map[string]error{"limit": ErrEndless, "context": context.Canceled, "deadline": errTest}[by]; !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
				if took := time.Since(began); took > patient {
					t.Errorf("it took %s", took)
				}
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
				select {
				case <-closed:
				case <-time.After(patient):
					t.Error("the connection stays open")
				}
			})
		}
	}
}

var errTest = errors.New("the test's deadline")

// TestGoodAnswersPass: a body that ends is read whole, its connection is used again, and
// nothing cuts it later.
func TestGoodAnswersPass(t *testing.T) {
	connections := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		fmt.Fprint(w, "well")
	}))
	defer server.Close()
	client := &http.Client{Transport: Transport{Next: &http.Transport{}, Limit: time.Minute}}
	defer client.CloseIdleConnections()
	for range 3 {
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || string(text) != "well" {
			t.Errorf("got %q, %v", text, err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(connections) != 1 {
		t.Errorf("%d connections for three requests, want 1", len(connections))
	}
}
