package e2e

import (
	varint "encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
)

// counter is a receiver that only counts: decoding the requests properly takes more CPU
// than the agent has spent on them, and here both share a machine.
type counter struct {
	t    *testing.T
	addr string

	server  *http.Server
	serving sync.WaitGroup

	samples, bytes, requests atomic.Int64

	// first is when, in nanoseconds since the epoch, the first sample after up came.
	first atomic.Int64
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{t: t, addr: "127.0.0.1:0"}
	c.up()
	t.Cleanup(c.down)
	return c
}

// up makes the receiver listen, on the same port each time.
func (c *counter) up() {
	c.t.Helper()
	l, err := net.Listen("tcp", c.addr)
	if err != nil {
		c.t.Fatal(err)
	}
	c.addr = l.Addr().String()
	c.first.Store(0)
	srv := &http.Server{Handler: http.HandlerFunc(c.handle), ReadHeaderTimeout: 10 * time.Second}
	c.server = srv
	c.serving.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			c.t.Errorf("the receiver ended: %v", err)
		}
	})
}

// down closes the port and cuts the connections.
func (c *counter) down() {
	_ = c.server.Close()
	c.serving.Wait()
}

func (c *counter) url() string { return "http://" + c.addr + "/api/v1/write" }

// firstAfter returns how long after that moment the first sample came, once one has.
func (c *counter) firstAfter(t time.Time) (time.Duration, bool) {
	ns := c.first.Load()
	return time.Unix(0, ns).Sub(t), ns != 0
}

func (c *counter) handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // cut by down
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		c.t.Errorf("a body is not snappy: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if n := countSamples(raw); n > 0 {
		c.samples.Add(int64(n))
		c.bytes.Add(int64(len(body)))
		c.first.CompareAndSwap(0, time.Now().UnixNano())
	}
	c.requests.Add(1)
	w.WriteHeader(http.StatusNoContent)
}

// countSamples counts the samples and histograms of an encoded prometheus.WriteRequest.
func countSamples(raw []byte) (n int) {
	const (
		timeSeries = 1<<3 | 2 // in WriteRequest
		sample     = 2<<3 | 2 // in TimeSeries
		histogram  = 4<<3 | 2
	)
	fields(raw, func(key uint64, series []byte) {
		if key != timeSeries {
			return
		}
		fields(series, func(key uint64, _ []byte) {
			if key == sample || key == histogram {
				n++
			}
		})
	})
	return n
}

// fields calls f with each field of a message that has only length-delimited ones.
func fields(b []byte, f func(key uint64, value []byte)) {
	for len(b) > 0 {
		key, k := varint.Uvarint(b)
		size, n := varint.Uvarint(b[max(k, 0):])
		if k <= 0 || n <= 0 || size > uint64(len(b)-k-n) {
			return
		}
		f(key, b[k+n:k+n+int(size)])
		b = b[k+n+int(size):]
	}
}
