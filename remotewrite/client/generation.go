package client

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"hwsagent/internal/httpbound"
)

// generation is a pool of connections made with one set of credentials. It is used for
// a limited time.
type generation struct {
	creds *credentials
	proxy string // the proxy in use, to show to people; "" if there is none
	pool  *http.Transport
	http  *retryablehttp.Client // sends by pool, and again, once, after brokenBefore
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
	l.http = &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: httpbound.Transport{Next: pool, Limit: drainLimit}, CheckRedirect: followNone},
		RetryMax:     1,
		CheckRetry:   l.brokenBefore,
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
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

// retire closes the connections once no request uses them. Client.mu is held.
//
// Closing them beside a request may turn its answer into an error: net/http makes a connection idle just before it passes
// the answer on. The samples would then be sent twice.
func (l *generation) retire() {
	if l.retired = true; l.users == 0 {
		l.pool.CloseIdleConnections()
	}
}

// errRedirect is the error of a redirect whose Location net/http cannot read.
var errRedirect = errors.New("to an address that cannot be read")

// post sends one request; ctx is from withTrace. k is nil if there are no tokens. A redirect is an answer like others.
func (l *generation) post(ctx context.Context, to string, header http.Header, k *token, body *lentBody, attempt int) (*http.Response, error) {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, to, retryablehttp.ReaderFunc(body.open))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	addHeader(req.Header, l.creds.header)
	if err := k.authorize(req.Request, body.data); err != nil {
		return nil, err
	}
	if attempt > 0 {
		req.Header.Set("Retry-Attempt", strconv.Itoa(attempt))
	}
	resp, err := l.http.Do(req)
	if err == nil && l.proxy != "" && req.URL.Scheme == "http" && resp.StatusCode == http.StatusProxyAuthRequired { // RFC 9110, 15.5.8: the proxy's own
		defer resp.Body.Close()
		text := make([]byte, keptText)
		n, _ := io.ReadFull(resp.Body, text) // as much as arrives in time
		return nil, &proxyError{status: resp.StatusCode, text: bodyText(resp.StatusCode, text[:n])}
	}
	if err == nil {
		return resp, nil
	}
	if err = unwrapURL(err); strings.HasPrefix(err.Error(), "failed to parse Location header") { // it has no type, and quotes the header
		err = errRedirect
	}
	return nil, err
}

// brokenBefore reports whether to send a request again: it used a kept connection that ended without a byte of an answer.
func (l *generation) brokenBefore(ctx context.Context, _ *http.Response, err error) (bool, error) {
	t := traceOf(ctx)
	if err == nil || ctx.Err() != nil || !t.unanswered() {
		return false, nil
	}
	t.again.Store(true)
	l.pool.CloseIdleConnections() // the others are likely broken too
	return true, nil
}
