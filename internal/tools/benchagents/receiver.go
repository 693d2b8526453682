//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
)

// Versions of remote write.
const (
	v1 = "1.0"
	v2 = "2.0"
)

// bounds of a request: far above what an agent sends in one.
const (
	maxBody    = 64 << 20
	maxMessage = 256 << 20
)

// receiver accepts remote write 1.0 and 2.0 and only counts. The required form of requests is part of the measurement:
// it refuses other forms with 415, and the agent then sends the accepted one.
type receiver struct {
	version string // v1 or v2: the only one that is accepted
	// zstd: its answers identify it as VictoriaMetrics, and it accepts zstd, too.
	zstd bool

	addr    string
	server  *http.Server
	serving sync.WaitGroup
	decoder *zstd.Decoder
	buffers sync.Pool // of *[]byte, for bodies and messages

	samples, requests, wire atomic.Int64
	first                   atomic.Int64 // when the first sample after up arrived, in nanoseconds since the epoch; 0: none

	mu        sync.Mutex
	encodings map[string]int // accepted requests by version and compression: "1.0 snappy"
	refused   map[string]int // requests by the reason of the refusal
}

func newReceiver(version string, withZstd bool) (*receiver, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxMessage))
	if err != nil {
		return nil, err
	}
	return &receiver{
		version: version, zstd: withZstd, decoder: decoder, addr: "127.0.0.1:0",
		buffers:   sync.Pool{New: func() any { return new([]byte) }},
		encodings: make(map[string]int), refused: make(map[string]int),
	}, nil
}

// up listens, on the same port each time.
func (r *receiver) up() error {
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		return fmt.Errorf("listen as the receiver: %w", err)
	}
	r.addr = l.Addr().String()
	r.first.Store(0)
	server := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	r.server = server
	r.serving.Go(func() { _ = server.Serve(l) }) // ended by down
	return nil
}

// down closes the port and cuts the connections.
func (r *receiver) down() {
	_ = r.server.Close()
	r.serving.Wait()
}

// close releases the receiver's resources, once it is down.
func (r *receiver) close() { r.decoder.Close() }

func (r *receiver) url() string { return "http://" + r.addr + "/api/v1/write" }

// seen returns copies of the counts of requests by form, and of refusals.
func (r *receiver) seen() (encodings, refused map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	encodings, refused = make(map[string]int), make(map[string]int)
	for k, n := range r.encodings {
		encodings[k] = n
	}
	for k, n := range r.refused {
		refused[k] = n
	}
	return encodings, refused
}

// refusal is an answer other than 2xx.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string { return r.why }

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.zstd {
		w.Header().Set("X-Server-Hostname", "bench") // all programs of VictoriaMetrics send this in each answer
	}
	buffer := r.buffers.Get().(*[]byte)
	defer r.buffers.Put(buffer)
	form := versionOf(req.Header.Get("Content-Type")) + " " + req.Header.Get("Content-Encoding")
	samples, histograms, wire, err := r.read(req, form, buffer)
	var no *refusal
	switch {
	case errors.As(err, &no):
		r.mu.Lock()
		r.refused[no.why]++
		r.mu.Unlock()
		http.Error(w, no.why, no.status)
		return
	case err != nil:
		return // cut by down
	}
	r.mu.Lock()
	r.encodings[form]++
	r.mu.Unlock()
	if r.version == v2 {
		h := w.Header()
		h.Set("X-Prometheus-Remote-Write-Samples-Written", strconv.Itoa(samples))
		h.Set("X-Prometheus-Remote-Write-Histograms-Written", strconv.Itoa(histograms))
		h.Set("X-Prometheus-Remote-Write-Exemplars-Written", "0")
	}
	r.requests.Add(1)
	r.wire.Add(int64(wire))
	if n := samples + histograms; n > 0 {
		r.first.CompareAndSwap(0, time.Now().UnixNano())
		r.samples.Add(int64(n))
	}
	w.WriteHeader(http.StatusNoContent)
}

// read reads a request and counts its samples. buffer is reused memory.
func (r *receiver) read(req *http.Request, form string, buffer *[]byte) (samples, histograms, wire int, err error) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err != nil {
		return 0, 0, 0, err
	}
	if len(body) > maxBody {
		return 0, 0, 0, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("a body of more than %d bytes", maxBody)}
	}
	switch form {
	case r.version + " snappy":
		n, err := snappy.DecodedLen(body)
		if err != nil || n > maxMessage {
			return 0, 0, 0, &refusal{http.StatusBadRequest, "a body that is not snappy"}
		}
		if cap(*buffer) < n {
			*buffer = make([]byte, n)
		}
		if *buffer, err = snappy.Decode((*buffer)[:cap(*buffer)], body); err != nil {
			return 0, 0, 0, &refusal{http.StatusBadRequest, "a body that is not snappy"}
		}
	case v1 + " zstd":
		if !r.zstd || r.version != v1 {
			return 0, 0, 0, &refusal{http.StatusUnsupportedMediaType, form}
		}
		if *buffer, err = r.decoder.DecodeAll(body, (*buffer)[:0]); err != nil {
			return 0, 0, 0, &refusal{http.StatusBadRequest, "a body that is not zstd"}
		}
	default:
		return 0, 0, 0, &refusal{http.StatusUnsupportedMediaType, form}
	}
	samples, histograms, err = countSamples(*buffer, r.version)
	if err != nil {
		return 0, 0, 0, &refusal{http.StatusBadRequest, err.Error()}
	}
	return samples, histograms, len(body), nil
}

// versionOf returns the version of remote write in a Content-Type: without a parameter it is 1.0.
func versionOf(contentType string) string {
	_, parameters, err := mime.ParseMediaType(contentType)
	if err == nil && parameters["proto"] == "io.prometheus.write.v2.Request" {
		return v2
	}
	return v1
}
