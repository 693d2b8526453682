// Package client sends the requests of remote write to one target over HTTP: TLS, proxies,
// credentials from files that change, OAuth2, and connections of limited age.
//
// [Client.Send] sends one request and returns an [Answer]. [Judge] turns an answer into a
// verdict on the request's samples. The client keeps no queue and drops nothing.
package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	promconfig "github.com/prometheus/common/config"

	"hwsagent/internal/redact"
	"hwsagent/remotewrite/client/cloud"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
)

// Bounds on the resources that a receiver can make a client use.
const (
	keptText   = 1 << 10         // of a response body, to show to people
	readBody   = 4 << 10         // of a response body, so that the connection can be reused
	readHead   = 256 << 10       // of a response's header; the default of net/http is 10 MB
	drainLimit = 2 * time.Second // for reading a response body
)

// defaultConnectionAge is how long connections are used. It bounds the time until a name's
// new address, or a server added behind a load balancer, is
// used.
const defaultConnectionAge = 5 * time.Minute

// pollFiles is how often credential files are read. A change counts when two consecutive reads
// agree, so it takes effect after at most twice this time; after an answer that
// blames the credentials one read is enough.
const pollFiles = 2 * time.Second

// Client sends requests to one target over HTTP. It implements remotewrite.Sender.
//
// It sends a request again only if a kept connection turned out to be closed by the server before any byte of an
// answer, and only once. Redirects are never followed. While [Client.Run] runs, changed credential files are read
// again; connections made with the previous contents are closed when they become idle. If a file cannot be used, the
// previous contents stay in use.
//
// All methods are safe for concurrent use.
type Client struct {
	entry   *config.Config
	http    promconfig.HTTPClientConfig // of entry, with the user from its URL
	url     string                      // with the query, without a user
	place   string                      // the URL to show to people
	header  [wire.NumVersions]http.Header
	zstd    http.Header  // of a request with zstd
	version wire.Version // the newest that the entry asks for
	timeout time.Duration
	secrets *redact.Secrets // of headers and query
	hide    *redact.Secrets // of addresses' paths; may be nil
	opts    Options
	files   bool // the entry may name credential files
	changed chan struct{}
	tls     tlsAsked // whether the port of an http:// URL speaks TLS

	mu      sync.Mutex
	current *generation // nil until the credentials could be read
	seen    [32]byte
	err     error     // of the last attempt to read the credentials
	renewed time.Time // when credentials were last replaced

	server atomic.Pointer[x509.Certificate] // the certificate on which trust in the receiver ends first; nil until seen
}

// New makes a client for a valid entry. Missing or faulty credential files
// are not an error of New: requests fail with the reason until the files are right.
func New(c *config.Config, o Options) (*Client, error) {
	u := c.URL.Full()
	if u == nil {
		return nil, errors.New("make remote-write client: no url")
	}
	o = o.withDefaults(c)
	client := &Client{
		entry:   c,
		http:    c.HTTP,
		place:   c.URL.String(),
		timeout: time.Duration(c.RemoteTimeout),
		opts:    o,
		files:   len(c.CredentialFiles()) > 0 || c.UsesCloud(), // a cloud's variables may name files
		changed: make(chan struct{}, 1),
		secrets: redact.New(),
		hide:    c.Hidden(),
	}
	if c.AsksForV2() {
		client.version = wire.V2
	}
	if u.User != nil {
		password, _ := u.User.Password()
		client.http.BasicAuth = &promconfig.BasicAuth{Username: u.User.Username(), Password: promconfig.Secret(password)}
		u.User = nil
	}
	if c.SigV4 != nil {
		cloud.CleanPath(u)
	}
	client.url = u.String()
	client.secrets.AddURL(u)
	header := http.Header{}
	for name, value := range c.Headers {
		header.Set(name, value)
		if !redact.OpenHeader(name) {
			client.secrets.Add(value)
		}
	}
	c.SetTenantHeader(header)
	client.header = requestHeaders(header, o.Version)
	client.zstd = zstdHeaders(client.header[wire.V1])

	if err := client.reload(true); err != nil && !client.files {
		return nil, fmt.Errorf("make remote-write client: %w", err)
	}
	return client, nil
}

// Run rereads credential files periodically, and renews an OAuth2 token before
// it expires, until ctx is done. Requests may outlive it: a stopping queue sends its last samples.
func (c *Client) Run(ctx context.Context) {
	if !c.files && c.http.OAuth2 == nil { // a cloud token needs files, too
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(pollFiles)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.files {
			_ = c.reload(false) // CredentialError has the error, and reload logs a new one
		}
		if t := c.source(); t != nil {
			t.renew(ctx)
		}
	}
}

// Close closes the connections, each after the requests that use its generation.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		c.current.retire()
	}
}

// CredentialsChanged receives a value after the contents of credential files have changed and
// are in use: a held target should be tried again.
func (c *Client) CredentialsChanged() <-chan struct{} { return c.changed }

// CredentialError returns why the present credential files cannot be used; nil
// if they can.
func (c *Client) CredentialError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// EmptyWrite sends a request without samples, in the newest version that the entry asks
// for. A receiver that accepts it accepts requests over this route with these credentials.
func (c *Client) EmptyWrite(ctx context.Context) Answer {
	return c.Send(ctx, EmptyRequest(c.version))
}

// Send implements remotewrite.Sender. The answer's error names the target's URL without its
// query; credentials are removed from error and text.
func (c *Client) Send(ctx context.Context, r Request) Answer {
	start := time.Now()
	l, err := c.take(r.Fresh)
	if err != nil {
		return Answer{Err: err, Failure: ofFiles(c.entry, err, strings.TrimPrefix(err.Error(), "post to "+c.place+": ")), Took: time.Since(start)}
	}
	defer c.release(l)
	source := l.creds.tokens
	if source == nil {
		return c.send(ctx, l, nil, r)
	}
	var a Answer
	var before *token
	for range 2 { // a token that the receiver accepted before and refuses now is replaced once
		k, err := source.get(ctx)
		if err != nil {
			return c.noToken(l, err, time.Since(start))
		}
		if k.same(before) {
			break // keys from a file or from the entry have not changed
		}
		if a = c.send(ctx, l, k, r); !source.note(k, a) {
			break
		}
		before = k
	}
	return a
}

// send sends a request over l; k is nil without tokens.
func (c *Client) send(ctx context.Context, l *generation, k *token, r Request) Answer {
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(withTrace(ctx), c.timeout, errNoAnswer)
	defer cancel()
	body := &lentBody{data: r.Body}
	defer body.revoke()
	header := c.header[r.Version]
	if r.Compression == wire.Zstd {
		header = c.zstd
	}
	resp, err := l.post(ctx, c.url, header, k, body, r.Attempt)
	if err != nil {
		if errors.Is(context.Cause(ctx), errNoAnswer) || errors.Is(err, syscall.ETIMEDOUT) {
			c.leave(l)
		}
		shown := c.shownError(ctx, l, err)
		a := Answer{Err: fmt.Errorf("post to %s: %w", c.place, shown), Blocked: blocks(err), Took: time.Since(start)}
		a.Failure = c.failure(ctx, l, err, shown)
		return a
	}
	c.noteServer(resp.TLS)
	if l.keepsFailing(resp.StatusCode, time.Now()) {
		c.leave(l)
	}
	defer func() { _ = resp.Body.Close() }() // the needed part was read

	// The status is known now; a body that does not end within drainLimit changes nothing. Closing
	// a body that has not ended closes its connection.
	text := readText(resp)

	shown := plain(text)
	page := isPage(shown) || saysPage(resp.Header, shown)
	a := Answer{
		Version: r.Version, Compression: r.Compression, Samples: r.Samples,
		VictoriaMetrics: resp.Header.Get(ServerHeader) != "",
		Status:          resp.StatusCode,
		Page:            page && resp.StatusCode/100 == 2,
		HTML:            page,
		Text:            c.quote(l, resp, text),
		Again:           traceOf(ctx).again.Load(),
		Took:            time.Since(start),
	}
	if to := leadsTo(c.url, resp); to != "" {
		where := []rune(c.redact(l, to))
		a.Text = strings.TrimSuffix("to "+string(where[:min(len(where), keptText)])+": "+a.Text, ": ")
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		a.Date = date
	}
	if r.Version == wire.V2 {
		a.Written = parseWritten(resp.Header)
	}
	a.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), a.Date, time.Now())
	if k.signs() && a.noteSkew(time.Now()) {
		a.Failure = siteOf(c.entry).failure(ClockSkew, a.String())
	} else {
		a.Failure = ofAnswer(c.entry, a)
	}
	switch a.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		c.blamed(l)
	}
	return a
}

var errNoAnswer = errors.New("no answer within remote_timeout")

// shownError turns an error of net/http, whose text may contain the whole URL, into an error for
// people. If TLS is the cause, the certificate files are read again.
func (c *Client) shownError(ctx context.Context, l *generation, err error) error {
	err = through(l.proxy, withoutPort(err))
	if v, ok := errors.AsType[*tls.CertificateVerificationError](err); ok && l.proxy == "" { // else it may be the proxy's certificate
		c.noteServer(&tls.ConnectionState{PeerCertificates: v.UnverifiedCertificates})
	}
	if strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: ") {
		c.blamed(l)
	}
	if cause := context.Cause(ctx); errors.Is(cause, errNoAnswer) {
		return through(l.proxy, c.late())
	}
	if cause := context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) && cause != nil {
		err = cause // the caller set the deadline and its cause
	}
	return c.redacted(l, err)
}

// late is the error of a request that took too long.
func (c *Client) late() error { return fmt.Errorf("%w (%s)", errNoAnswer, c.timeout) }

// failure returns the failure of a request without an answer; shown is its error for people.
func (c *Client) failure(ctx context.Context, l *generation, err, shown error) Failure {
	typed := through(l.proxy, err)
	if operation, ok := errors.AsType[*net.OpError](err); errors.Is(context.Cause(ctx), errNoAnswer) && (!ok || operation.Op != "dial") {
		typed = through(l.proxy, c.late())
	}
	f := explain(c.entry, typed, shown.Error())
	if (f.Kind == Cut || f.Kind == Network) && l.proxy == "" && c.speaksTLS(ctx) {
		f = siteOf(c.entry).failure(SchemeTLS, "")
	}
	f.Words = c.redact(l, f.Words)
	return f
}

// take returns the generation of connections to use: a new one if the present one is too old, or if fresh is set.
func (c *Client) take(fresh bool) (*generation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return nil, fmt.Errorf("post to %s: %w", c.place, c.err)
	}
	if fresh || time.Since(c.current.born) >= c.opts.ConnectionAge {
		next, err := c.newGeneration(c.current.creds)
		if err != nil {
			return nil, fmt.Errorf("post to %s: %w", c.place, err)
		}
		c.current.retire()
		c.current = next
	}
	c.current.users++
	return c.current, nil
}

// leave makes all further requests use new connections, because those of l may be dead
// unnoticed. Over HTTP/2, cancelling a request does not close its connection, so the next request
// would wait on it as well.
func (c *Client) leave(l *generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != l {
		return
	}
	if next, err := c.newGeneration(l.creds); err == nil { // the same credentials worked before
		l.retire()
		c.current = next
	}
}

func (c *Client) release(l *generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.users--; l.retired {
		l.retire()
	}
}

// blamed rereads the credential files at once after an answer that blames the credentials, unless
// they were replaced since the request was sent.
func (c *Client) blamed(l *generation) {
	c.mu.Lock()
	same := c.current == l
	c.mu.Unlock()
	if same && c.files {
		_ = c.reload(true) // as in Run
	}
}

// reload reads the credential files. New contents take effect if atOnce is set or if two consecutive
// reads agree.
func (c *Client) reload(atOnce bool) error {
	creds, err := loadCredentials(c.entry, &c.http)
	if err == nil {
		creds.hide = c.hide
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		known := c.current != nil && c.current.creds.print == creds.print
		settled := atOnce || c.current == nil || c.seen == creds.print
		c.seen = creds.print
		if !known && settled {
			err = c.use(creds)
		}
	}
	if err != nil && (c.err == nil || c.err.Error() != err.Error()) {
		c.opts.Logger.Warn("Cannot use the credentials", "former_in_use", c.current != nil, "err", err, "try", ofFiles(c.entry, err, "").Remedy)
		c.opts.Metrics.Reloaded(err)
	}
	c.err = err
	return err
}

// use replaces the credentials in use with creds. c.mu is held.
func (c *Client) use(creds *credentials) error {
	if creds.source != nil {
		var err error
		if creds.tokens, err = newTokens(creds, c.header[wire.V1].Get("User-Agent"), c.opts.Dial, c.opts.Metrics.SetTokenEnd); err != nil {
			return err
		}
	}
	next, err := c.newGeneration(creds)
	if err != nil {
		return err
	}
	c.opts.Metrics.SetExpiries(creds.ends)
	if c.current != nil || c.err != nil { // not the first credentials, or the first were faulty
		c.renewed = time.Now()
		c.opts.Logger.Info("Credentials changed")
		c.opts.Metrics.Reloaded(nil)
		select {
		case c.changed <- struct{}{}:
		default: // a notice is waiting already
		}
	}
	if c.current != nil {
		c.current.retire()
	}
	c.current = next
	return nil
}
