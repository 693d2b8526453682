package httpbound

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A connection ends after a request with both a length and chunks, or with chunks alone, and stays open after others.
func TestCloseAfterChunked(t *testing.T) {
	s := httptest.NewServer(CloseAfterChunked(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })))
	defer s.Close()
	for head, closed := range map[string]bool{
		"Content-Length: 5\r\n\r\nhello":                                                 false,
		"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n":                      true,
		"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n": true,
	} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: localhost\r\n%s", head); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 || resp.Close != closed {
			t.Errorf("%q: %d, close %t, want %t", head, resp.StatusCode, resp.Close, closed)
		}
		_ = c.Close()
	}
}
