package client

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"hwsagent/internal/httpbound"
)

// generation is a pool of connections made with one set of credentials. It is used for
// a limited time.
type generation struct {
	creds *credentials
	proxy string // the proxy in use, to show to people; "" if there is none
	pool  *http.Transport
	born  time.Time

	failed atomic.Int32 // answers with 5xx in a row

	// Guarded by Client.mu.
	users   int // requests that use it
	retired bool
}

func (c *Client) newGeneration(creds *credentials) (*generation, error) {
	pool, err := newTransport(&creds.http.TLSConfig, creds.http.ProxyConfig, creds.http.EnableHTTP2, c.opts.Dial)
	if err != nil {
		return nil, err
	}
	l := &generation{creds: creds, pool: pool, born: time.Now()}
	l.proxy, err = proxyFor(pool, c.url)
	return l, err
}

// A receiver's name may lead elsewhere while a kept connection still leads to a server, or a balancer, that answers 5xx.
// After renewAfter such answers in a row, the next request resolves the name again; at most once per renewWait, because a
// receiver that has too much to do should not be burdened with connections.
const (
	renewAfter = 3
	renewWait  = time.Minute
)

// keepsFailing counts an answer with that status, and reports whether its connections should be left.
func (l *generation) keepsFailing(status int, now time.Time) bool {
	if status/100 != 5 {
		l.failed.Store(0)
		return false
	}
	return l.failed.Add(1) >= renewAfter && now.Sub(l.born) >= renewWait
}

// retire closes the idle connections, and lets those in use close when they become
// idle. Client.mu is held.
func (l *generation) retire() {
	l.retired = true
	l.pool.CloseIdleConnections()
}

// post sends one request; ctx is from withTrace. k is nil if there are no tokens. Redirects are answers like others.
func (l *generation) post(ctx context.Context, to string, header http.Header, k *token, body *lentBody, attempt int) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	addHeader(req.Header, l.creds.header)
	if err := k.authorize(req, body.data); err != nil {
		return nil, err
	}
	if attempt > 0 {
		req.Header.Set("Retry-Attempt", strconv.Itoa(attempt))
	}
	req.ContentLength = int64(len(body.data))
	req.GetBody = func() (io.ReadCloser, error) { return &bodyReader{body: body}, nil }
	return l.roundTrip(ctx, req)
}

// roundTrip sends a request, and sends it again, once, if a kept connection ends without an answer.
func (l *generation) roundTrip(ctx context.Context, req *http.Request) (*http.Response, error) {
	t := traceOf(ctx)
	for {
		req.Body, _ = req.GetBody() // it returns no error
		resp, err := httpbound.Transport{Next: l.pool, Limit: drainLimit}.RoundTrip(req)
		if err == nil || ctx.Err() != nil || t.again.Load() || !t.unanswered() {
			return resp, err
		}
		t.again.Store(true)
		l.pool.CloseIdleConnections() // the others are likely broken too
		req = req.Clone(ctx)
	}
}
