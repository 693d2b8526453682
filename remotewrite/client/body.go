package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// lentBody lends a request's body to net/http, which may continue to read it after the
// response has come. After revoke it is no longer read, so the owner may reuse the
// memory.
type lentBody struct {
	mu   sync.RWMutex
	data []byte // nil once revoked
}

var errRevoked = errors.New("request is over")

func (b *lentBody) revoke() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = nil
}

// sum returns the checksum of the body.
func (b *lentBody) sum() [sha256.Size]byte {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return sha256.Sum256(b.data)
}

// open starts reading from the beginning.
func (b *lentBody) open() (io.Reader, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return &bodyReader{body: b, size: len(b.data)}, nil
}

// bodyReader is one pass over a lentBody. It deliberately has no WriteTo, which would
// expose the memory itself.
type bodyReader struct {
	body *lentBody
	pos  int
	size int
}

// Len returns the number of bytes left; retryablehttp takes the Content-Length from it.
func (r *bodyReader) Len() int { return r.size - r.pos }

func (r *bodyReader) Read(p []byte) (int, error) {
	r.body.mu.RLock()
	defer r.body.mu.RUnlock()
	if r.body.data == nil {
		return 0, errRevoked
	}
	if r.pos == r.size {
		return 0, io.EOF
	}
	n := copy(p, r.body.data[r.pos:])
	r.pos += n
	return n, nil
}

// trace records the connections of a request.
type trace struct {
	dials    atomic.Int32 // connections opened for the request, all attempts together
	reused   atomic.Bool  // the last attempt used a connection that had carried requests before
	answered atomic.Bool  // at least one byte of a response came
	again    atomic.Bool  // the request was sent again, over another connection
}

type traceKey struct{}

// withTrace returns a context whose requests are traced.
func withTrace(ctx context.Context) context.Context {
	t := &trace{}
	ctx = context.WithValue(ctx, traceKey{}, t)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { t.reused.Store(false); t.answered.Store(false) },
		GotConn:              func(i httptrace.GotConnInfo) { t.reused.Store(i.Reused) },
		GotFirstResponseByte: func() { t.answered.Store(true) },
	})
}

func traceOf(ctx context.Context) *trace {
	t, _ := ctx.Value(traceKey{}).(*trace)
	return t
}

// unanswered reports whether a kept connection brought no response: the usual sign that
// the server had closed it.
func (t *trace) unanswered() bool { return t != nil && t.reused.Load() && !t.answered.Load() }
