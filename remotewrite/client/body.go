package client

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// lentBody lends the body of a request to net/http, which may go on reading it after the response has come, and does not always
// close it. After revoke it is not read any more, so that its owner may reuse the memory.
type lentBody struct {
	mu   sync.Mutex
	data []byte // nil once revoked
}

var errRevoked = errors.New("request is over")

func (b *lentBody) revoke() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = nil
}

// open starts reading from the beginning.
func (b *lentBody) open() (io.Reader, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &bodyReader{body: b, size: len(b.data)}, nil
}

// bodyReader is one pass over a lentBody. It has no WriteTo, which would give the memory away.
type bodyReader struct {
	body      *lentBody
	pos, size int
}

// Len returns the number of bytes left; retryablehttp takes the Content-Length from it.
func (r *bodyReader) Len() int { return r.size - r.pos }

// Read implements [io.Reader].
func (r *bodyReader) Read(p []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.body.data == nil {
		return 0, errRevoked
	}
	n := copy(p, r.body.data[r.pos:])
	if r.pos += n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// trace records the connections of a request.
type trace struct {
	dials    atomic.Int32 // opened for the request, all attempts together
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

// unanswered reports whether a kept connection brought no response: the usual sign that the server had closed it.
func (t *trace) unanswered() bool { return t.reused.Load() && !t.answered.Load() }
