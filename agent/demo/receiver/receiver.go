package receiver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
)

// Bounds of one request, so that a broken sender cannot exhaust the receiver.
const (
	maxBody    = 16 << 20 // compressed bytes
	maxDecoded = 64 << 20 // bytes
	maxSeen    = 50_000   // requests remembered
)

// Options configure a receiver. The zero value is a plain HTTP receiver without authentication that accepts everything
// and keeps nothing.
type Options struct {
	TLS *tls.Config // nil: plain HTTP

	// Tokens are the accepted bearer tokens; without any, no token is required.
	Tokens []string

	// Sink is called with the stored series, one call at a time. It must not keep the slice.
	Sink func([]prompb.TimeSeries)

	Logger *slog.Logger // nil: silent

	Addr string // to listen on, host:port; "": a free port of 127.0.0.1
}

// Seen is one received request, whatever the answer.
type Seen struct {
	At      time.Time
	Status  int // answered; 0: none
	Series  int
	Samples int
	Bytes   int    // of the body, compressed
	Token   string // as sent, without "Bearer "
	Client  string // common name of the client's certificate
	Agent   string // User-Agent
	Empty   bool
}

// Receiver records the requests that it receives. All methods are safe for concurrent use.
type Receiver struct {
	o   Options
	log *slog.Logger

	sink sync.Mutex // one Sink call at a time

	mu        sync.Mutex
	addr      string       // kept across Stop and Start, once known
	server    *http.Server // nil while stopped
	serving   sync.WaitGroup
	down      chan struct{} // closed by Stop: releases hanging requests
	behaviour Behaviour
	tokens    []string
	seen      []Seen
	samples   uint64 // stored, duplicates included
}

// New returns a receiver that does not listen yet.
func New(o Options) *Receiver {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Receiver{o: o, log: o.Logger, behaviour: Accept, tokens: slices.Clone(o.Tokens), addr: cmp.Or(o.Addr, "127.0.0.1:0")}
}

// Start listens, on the same port each time.
func (r *Receiver) Start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server != nil {
		return nil
	}
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		return fmt.Errorf("start receiver: %w", err)
	}
	r.addr = l.Addr().String()
	if r.o.TLS != nil {
		conf := r.o.TLS.Clone()
		conf.NextProtos = []string{"http/1.1"}
		l = tls.NewListener(l, conf)
	}
	down := make(chan struct{})
	srv := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.handle(w, req, down) }),
		ReadHeaderTimeout: 10 * time.Second,
		// Cut connections and failed handshakes are intended here.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	r.server, r.down = srv, down
	r.serving.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			r.log.Error("The receiver stopped serving", "err", err)
		}
	})
	return nil
}

// Stop closes the listener and cuts every connection, even in the middle of a request: for the sender the host is gone.
func (r *Receiver) Stop() {
	r.mu.Lock()
	srv, down := r.server, r.down
	r.server = nil
	r.mu.Unlock()
	if srv == nil {
		return
	}
	close(down)
	_ = srv.Close() // an error concerns only the listener, which is gone either way
	r.serving.Wait()
}

// URL returns the address for writes. It is valid after the first Start.
func (r *Receiver) URL() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	scheme := "http"
	if r.o.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.addr + "/api/v1/write"
}

// Behave switches the behaviour for requests from now on.
func (r *Receiver) Behave(b Behaviour) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behaviour = b
}

// AllowTokens replaces the accepted bearer tokens.
func (r *Receiver) AllowTokens(tokens ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens = slices.Clone(tokens)
}

// Seen returns the requests so far, oldest first; the newest 50,000 of them at least.
func (r *Receiver) Seen() []Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// Samples returns how many samples were stored, duplicates included.
func (r *Receiver) Samples() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.samples
}

func (r *Receiver) handle(w http.ResponseWriter, req *http.Request, down <-chan struct{}) {
	seen := Seen{At: time.Now(), Agent: req.UserAgent(), Token: bearer(req)}
	if req.TLS != nil && len(req.TLS.PeerCertificates) > 0 {
		seen.Client = req.TLS.PeerCertificates[0].Subject.CommonName
	}
	reply := r.reply(req, &seen)
	r.store(reply.Stored)
	if reply.Delay != 0 {
		if !wait(req.Context(), down, reply.Delay) {
			r.remember(seen)
			panic(http.ErrAbortHandler) // no answer, the connection is cut
		}
	}
	seen.Status = reply.Status
	if seen.Status == 0 {
		seen.Status = http.StatusNoContent
	}
	r.remember(seen)
	for k, v := range reply.Header {
		w.Header()[k] = v
	}
	if reply.Text == "" {
		w.WriteHeader(seen.Status)
		return
	}
	http.Error(w, reply.Text, seen.Status)
}

// reply checks the credentials, decodes the body and asks the behaviour.
func (r *Receiver) reply(req *http.Request, seen *Seen) Reply {
	r.mu.Lock()
	tokens, behaviour := r.tokens, r.behaviour
	r.mu.Unlock()
	// Read the body first in any case, so that a refusal is an answer and not a connection cut while the sender still
	// writes.
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	seen.Bytes = len(body)
	if err != nil {
		return Reply{Status: http.StatusBadRequest, Text: "the body ended early"}
	}
	if len(tokens) > 0 && !slices.ContainsFunc(tokens, func(t string) bool { return same(t, seen.Token) }) {
		return Reply{Status: http.StatusUnauthorized, Text: "the bearer token is not valid"}
	}
	wr, status, err := decode(req, body)
	if err != nil {
		return Reply{Status: status, Text: err.Error()}
	}
	seen.Series = len(wr.Timeseries)
	for _, ts := range wr.Timeseries {
		seen.Samples += len(ts.Samples) + len(ts.Histograms)
	}
	seen.Empty = len(wr.Timeseries) == 0 && len(wr.Metadata) == 0
	return behaviour(Request{Series: wr.Timeseries, Empty: seen.Empty})
}

// decode checks the requirements of the Remote-Write 1.0 specification and decodes a request. If there is an error,
// status is the answer.
func decode(req *http.Request, body []byte) (wr prompb.WriteRequest, status int, err error) {
	switch {
	case req.Method != http.MethodPost:
		return wr, http.StatusMethodNotAllowed, fmt.Errorf("method %s, want POST", req.Method)
	case len(body) > maxBody:
		return wr, http.StatusRequestEntityTooLarge, fmt.Errorf("more than %d bytes", maxBody)
	case req.Header.Get("Content-Encoding") != "snappy":
		return wr, http.StatusUnsupportedMediaType, fmt.Errorf("content encoding %q, want snappy", req.Header.Get("Content-Encoding"))
	case req.Header.Get("Content-Type") != "application/x-protobuf":
		return wr, http.StatusUnsupportedMediaType, fmt.Errorf("content type %q, want application/x-protobuf", req.Header.Get("Content-Type"))
	case req.Header.Get("X-Prometheus-Remote-Write-Version") == "":
		return wr, http.StatusBadRequest, errors.New("no X-Prometheus-Remote-Write-Version")
	}
	// The length is only claimed by the body: check it before allocating.
	n, err := snappy.DecodedLen(body)
	if err != nil {
		return wr, http.StatusBadRequest, fmt.Errorf("snappy: %w", err)
	}
	if n > maxDecoded {
		return wr, http.StatusBadRequest, fmt.Errorf("snappy: %d bytes claimed, at most %d allowed", n, maxDecoded)
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		return wr, http.StatusBadRequest, fmt.Errorf("snappy: %w", err)
	}
	if err := wr.Unmarshal(raw); err != nil {
		return wr, http.StatusBadRequest, fmt.Errorf("protobuf: %w", err)
	}
	for _, ts := range wr.Timeseries {
		if Label(ts, "__name__") == "" {
			return wr, http.StatusBadRequest, fmt.Errorf("series %v has no name", ts.Labels)
		}
		if !ascending(ts.Labels) {
			return wr, http.StatusBadRequest, fmt.Errorf("labels %v are not sorted, or one comes twice", ts.Labels)
		}
	}
	return wr, 0, nil
}

// ascending reports whether labels are sorted by name and unique.
func ascending(labels []prompb.Label) bool {
	for i := 1; i < len(labels); i++ {
		if labels[i-1].Name >= labels[i].Name {
			return false
		}
	}
	return true
}

func (r *Receiver) store(series []prompb.TimeSeries) {
	if len(series) == 0 {
		return
	}
	n := 0
	for _, ts := range series {
		n += len(ts.Samples) + len(ts.Histograms)
	}
	r.mu.Lock()
	r.samples += uint64(n)
	r.mu.Unlock()
	if r.o.Sink != nil {
		r.sink.Lock()
		defer r.sink.Unlock()
		r.o.Sink(series)
	}
}

func (r *Receiver) remember(s Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) >= 2*maxSeen {
		r.seen = slices.Clone(r.seen[maxSeen:])
	}
	r.seen = append(r.seen, s)
}

// wait waits for d, or for ever if d is negative. It returns false if the sender or the receiver went away meanwhile.
func wait(ctx context.Context, down <-chan struct{}, d time.Duration) bool {
	var passed <-chan time.Time
	if d >= 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		passed = t.C
	}
	select {
	case <-passed:
		return true
	case <-ctx.Done():
	case <-down:
	}
	return false
}

func bearer(req *http.Request) string {
	const scheme = "Bearer "
	h := req.Header.Get("Authorization")
	if len(h) < len(scheme) || h[:len(scheme)] != scheme {
		return ""
	}
	return h[len(scheme):]
}

// same compares secrets in constant time, whatever their lengths.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
