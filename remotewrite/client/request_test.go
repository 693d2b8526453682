package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
)

// answeringFast accepts connections until the test ends, and answers each request without a body. It allocates nothing for a
// request. It returns its URL.
func answeringFast(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if err := answer(conn); err != nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return fmt.Sprintf("http://%s/", l.Addr())
}

// answer answers requests until the client closes the connection.
func answer(conn net.Conn) error {
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 256<<10)
	for {
		size := -1
		for {
			line, err := r.ReadSlice('\n')
			if errors.Is(err, io.EOF) && size < 0 {
				return nil
			}
			if err != nil {
				return err
			}
			if line = bytes.TrimSpace(line); len(line) == 0 {
				break
			}
			if name, value, ok := bytes.Cut(line, []byte(": ")); ok && string(name) == "Content-Length" {
				if size, err = strconv.Atoi(string(value)); err != nil {
					return err
				}
			}
		}
		if _, err := r.Discard(max(size, 0)); err != nil {
			return err
		}
		if _, err := conn.Write([]byte("HTTP/1.1 204 No Content\r\n\r\n")); err != nil {
			return err
		}
	}
}

// A request allocates less than its body takes: its memory is reused, and net/http copies it through 32 KiB.
func TestRequestAllocatesLittle(t *testing.T) {
	c := newClient(t, fmt.Sprintf("{url: %q}", answeringFast(t)), "", Options{})
	defer c.Close() // before the server waits for the end of its connections
	body := make([]byte, 60<<10)
	most := int64(48 << 10)
	if underRace {
		most = 64 << 10
	}
	got := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if a := c.Send(b.Context(), Request{Body: body}); a.Status != 204 {
				b.Fatal(a)
			}
		}
	})
	if n := got.AllocedBytesPerOp(); n > most {
		t.Errorf("a request with a body of %d bytes allocates %d, more than %d", len(body), n, most)
	}
}

func BenchmarkSend(b *testing.B) {
	c := newClient(b, fmt.Sprintf("{url: %q}", answeringFast(b)), "", Options{})
	defer c.Close()
	body := make([]byte, 60<<10)
	b.ReportAllocs()
	for b.Loop() {
		if a := c.Send(b.Context(), Request{Body: body}); a.Status != 204 {
			b.Fatal(a)
		}
	}
}
