package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// manySeries imports series that make an answer of the pull endpoint more than 10 MB.
func manySeries(t *testing.T, port int) {
	t.Helper()
	for part := range 3 {
		var b strings.Builder
		for i := range 30_000 {
			fmt.Fprintf(&b, "many{part=\"%d\",i=\"%d\",padding=\"%s\"} %d\n", part, i, strings.Repeat("x", 100), i)
		}
		resp, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/api/v1/import/prometheus", port), "text/plain", strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			t.Fatalf("import: %s", resp.Status)
		}
	}
}

// askSlowly asks for the metrics and reads nothing.
func askSlowly(t *testing.T, port int) *net.TCPConn {
	t.Helper()
	c, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPullSlowReaders: clients that send requests but do not read keep no other client out, however many they are, and
// one that reads slowly but steadily keeps its place among them and those that wait.
func TestPullSlowReaders(t *testing.T) {
	t.Parallel()
	text, port := freePort(t), freePort(t)
	a := startAgent(t, fmt.Sprintf("receivers: {import: {listen: \"127.0.0.1:%d\"}}\npull: {listen: \"127.0.0.1:%d\"}\n", text, port))
	manySeries(t, text)

	type outcome struct {
		bytes int64
		err   error
	}
	steady, answered, served := make(chan outcome, 1), make(chan struct{}), make(chan struct{})
	c := askSlowly(t, port)
	go func() {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		close(answered)
		if err != nil {
			steady <- outcome{0, err}
			return
		}
		defer resp.Body.Close()
		var n int64
		for { // a quarter of a megabyte a second, so that it is not done before the others are served
			m, err := io.CopyN(io.Discard, resp.Body, 25_000)
			n += m
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if err != nil || m < 25_000 {
				steady <- outcome{n, err}
				return
			}
			select {
			case <-served:
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	<-answered     // so that it has a place: the agent accepts connections in any order
	for range 12 { // three have a place, the others wait for one
		askSlowly(t, port)
	}
	time.Sleep(time.Second) // they have what the sockets hold
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, Timeout: time.Minute}
	for i := range 3 {
		began := time.Now()
		resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "" && i == 0 {
			continue // the twelve were before it; it comes again, as it was told
		}
		if err != nil || resp.StatusCode != http.StatusOK || n < 10<<20 {
			t.Errorf("request %d: %s, %d bytes, %v after %v", i, resp.Status, n, err, time.Since(began))
		}
	}
	close(served)
	if o := <-steady; o.err != nil || o.bytes < 10<<20 {
		t.Errorf("the steady reader got %d bytes and %v", o.bytes, o.err)
	}
	if !strings.Contains(a.logText(), "lost its place") {
		t.Error("the log does not tell that a reader lost its place")
	}
}
