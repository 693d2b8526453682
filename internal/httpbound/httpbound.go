// Package httpbound makes sure that HTTP answers end.
//
// An [http.Client] ends a request with its context, with one exception: the body of an answer "101 Switching Protocols"
// (RFC 9110, 15.2.2) is the connection itself, and net/http leaves it to the caller to close it. A reader of such a
// body waits as long as the server likes. A server may also send the body of any other answer one byte at a time, as
// long as the context of the request lasts.
package httpbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// ErrEndless means that the body of an answer did not end within [Transport.Limit].
var ErrEndless = errors.New("the answer did not end")

// Switched explains an answer of 101 to people: the agent never asks for another protocol.
const Switched = "this is a WebSocket or another endpoint"

// Transport sends requests through Next and makes sure that every answer ends:
//
//   - an answer of 101 has no body, and its connection is closed;
//   - every other body ends with the context of its request, and Limit after the answer's
//     head has come. A read that is waiting then returns an error.
//
// It is as safe for concurrent use as Next is.
type Transport struct {
	Next http.RoundTripper
	// Limit is how long the body may take after the head has come. 0: as long as the context
	// of the request lasts.
	Limit time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.Next.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close() // closes the connection, which is useless
		resp.Body = http.NoBody
		return resp, nil
	}
	if resp.Body != http.NoBody {
		resp.Body = t.bound(req.Context(), resp.Body)
	}
	return resp, nil
}

// CloseIdleConnections closes the idle connections of Next. [http.Client.CloseIdleConnections] calls it.
func (t Transport) CloseIdleConnections() {
	if c, ok := t.Next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// bound returns a body that ends in time.
func (t Transport) bound(ctx context.Context, b io.ReadCloser) io.ReadCloser {
	bounded := &body{ReadCloser: b}
	unwatch := context.AfterFunc(ctx, func() { bounded.cut(context.Cause(ctx)) })
	bounded.release = func() { unwatch() }
	if t.Limit > 0 {
		timer := time.AfterFunc(t.Limit, func() { bounded.cut(fmt.Errorf("%w within %s", ErrEndless, t.Limit)) })
		bounded.release = func() { unwatch(); timer.Stop() }
	}
	return bounded
}

// body is a body that another goroutine may end while it is read.
type body struct {
	io.ReadCloser
	release func() // cancels the pending cuts

	mu  sync.Mutex
	why error // why it was cut; nil if it was not
}

// cut ends the body: closing it makes a waiting Read return.
func (b *body) cut(why error) {
	b.mu.Lock()
	if b.why == nil {
		b.why = why
	}
	b.mu.Unlock()
	_ = b.ReadCloser.Close()
}

// Read implements [io.Reader]. After a cut the error says why, instead of only that the body is closed.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why != nil {
		err = b.why
	}
	return n, err
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.release()
	return b.ReadCloser.Close()
}
