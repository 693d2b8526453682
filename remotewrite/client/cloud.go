package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	promconfig "github.com/prometheus/common/config"
	"golang.org/x/net/http/httpguts"

	"hwsagent/internal/httpbound"
	"hwsagent/internal/redact"
	"hwsagent/remotewrite/client/cloud"
	"hwsagent/remotewrite/config"
)

// loadCloud makes the source of an entry's cloud, and notes the contents of the files that it reads, so that a change of
// one replaces the credentials. The source reports a file that cannot be used when it is asked.
func (c *credentials) loadCloud(l *fileLoader, from *config.Config) {
	switch {
	case from.SigV4 != nil:
		c.source, c.signs = cloud.SigV4(from.SigV4), true
		c.secrets.Add(string(from.SigV4.SecretKey))
	case from.AzureAD != nil:
		c.source = cloud.Azure(from.AzureAD)
		c.hideAzure(from.AzureAD)
	case from.GoogleIAM != nil:
		c.source = cloud.Google(from.GoogleIAM)
	default:
		return
	}
	for _, name := range c.source.Files() {
		l.note(name)
	}
	_, p := c.wayToTokens()
	c.hideProxy(&p)
}

// hideAzure adds the secrets that the configuration and the environment give to Azure's library.
func (c *credentials) hideAzure(a *config.AzureAD) {
	if a.OAuth != nil {
		c.secrets.Add(string(a.OAuth.ClientSecret))
	}
	if a.Certificate != nil {
		c.secrets.Add(string(a.Certificate.CertificatePassword))
	}
	c.secrets.Add(os.Getenv("AZURE_CLIENT_SECRET"), os.Getenv("AZURE_CLIENT_CERTIFICATE_PASSWORD"), os.Getenv("IDENTITY_HEADER"))
}

// wayToTokens returns how to reach the endpoints that give tokens. Those of a cloud have the entry's proxy, or else
// that of the environment, as in the clouds' own programs, and Amazon's have the authorities of AWS_CA_BUNDLE.
func (c *credentials) wayToTokens() (t promconfig.TLSConfig, p promconfig.ProxyConfig) {
	if o := c.http.OAuth2; o != nil {
		return o.TLSConfig, o.ProxyConfig
	}
	if p = c.http.ProxyConfig; p.ProxyURL.URL == nil {
		p.ProxyFromEnvironment = true
	}
	if c.signs {
		t.CAFile = os.Getenv("AWS_CA_BUNDLE")
	}
	return t, p
}

// tokenGiver gets credentials for the receiver from the endpoint of oauth2 or from a cloud.
type tokenGiver struct {
	source  cloud.Source
	agent   string // the User-Agent header
	secrets *redact.Secrets
	hide    *redact.Secrets // of addresses' paths; may be nil
	far     *http.Transport // with the proxy
	near    *http.Transport // without, for what only this machine sees; nil with oauth2, whose proxy is for all addresses
}

func newTokenGiver(c *credentials, agent string, dial DialFunc) (*tokenGiver, error) {
	g := &tokenGiver{source: c.source, agent: agent, secrets: &c.secrets, hide: c.hide}
	tls, proxy := c.wayToTokens()
	var err error
	if g.far, err = newTransport(&tls, proxy, false, dial); err != nil {
		return nil, err
	}
	g.far.DisableKeepAlives = true // requests are about an hour apart
	if c.http.OAuth2 != nil {
		return g, nil
	}
	if g.near, err = newTransport(&promconfig.TLSConfig{}, promconfig.ProxyConfig{}, false, dial); err != nil {
		return nil, err
	}
	g.near.DisableKeepAlives = true
	return g, nil
}

// followNone makes an [http.Client] return a redirect: following it would leak secrets.
func followNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// give makes one attempt within tokenTimeout, the deadline of ctx. Its errors are *tokenError.
func (t *tokenGiver) give(ctx context.Context) (*token, error) {
	begin := time.Now()
	n := &tokenNet{giver: t, ctx: ctx}
	a, err := t.source.Get(ctx, &http.Client{Transport: n, CheckRedirect: followNone})
	if err == nil {
		if !sendable(&a) {
			failed := &tokenError{what: t.source.What(), status: http.StatusOK, text: "the token cannot be sent: it has line breaks or control characters"}
			if said := n.failure(errNoToken); said != nil {
				failed.place = redact.Cut(said.Place, t.secrets, t.hide)
			}
			return nil, failed
		}
		return &token{header: a.Authorization, keys: a.Keys, secrets: a.Secrets, born: begin, end: a.End}, nil
	}
	cut := func(s string) string { return redact.Cut(s, t.secrets, t.hide, &n.sent) }
	failed := &tokenError{what: t.source.What()}
	said := n.failure(err)
	if said == nil {
		failed.err = askError{fmt.Sprintf("ask for access: %s", cut(err.Error())), err}
		return nil, failed
	}
	failed.place, failed.status = cut(said.Place), said.Status
	if said.Err != nil {
		failed.err = withoutPort(unwrapURL(said.Err))
		if cause := context.Cause(ctx); cause != nil {
			failed.err = cause
		}
		return nil, failed
	}
	date, _ := http.ParseTime(said.Header.Get("Date")) // zero if there is none
	failed.after = retryAfter(said.Header.Get("Retry-After"), date, time.Now())
	failed.text = quoted(said.Status, []byte(said.Text), cut)
	failed.clock = blamesClock(failed.text)
	return nil, failed
}

// askError is a failure of a source before any endpoint was asked: its text without secrets, and its cause.
type askError struct {
	text  string
	cause error
}

func (e askError) Error() string { return e.text }
func (e askError) Unwrap() error { return e.cause }

// sendable reports whether the values that become parts of headers are valid there.
func sendable(a *cloud.Access) bool {
	values := []string{a.Authorization}
	if k := a.Keys; k != nil {
		values = append(values, k.ID, k.Session, k.Region)
	}
	return !slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) })
}

// unwrapURL returns the cause of an error of http.Client, whose text may contain the whole URL.
func unwrapURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// tokenNet carries the requests of one call of give, and keeps the last answer: the clouds' libraries describe a refusal
// each in their own way. It implements [http.RoundTripper].
type tokenNet struct {
	giver *tokenGiver
	ctx   context.Context // of the call, for requests of libraries that pass none on

	mu   sync.Mutex     // Google's and Microsoft's libraries may start goroutines
	sent redact.Secrets // assertions and tokens of requests
	last *cloud.Error   // describes the last answer, of any status; nil before the first
}

// maxTokenAnswer bounds the answer of an endpoint, and maxTokenRequest the body of a request, in bytes: tokens have a
// few thousand.
const (
	maxTokenAnswer  = 256 << 10
	maxTokenRequest = 1 << 20
)

// RoundTrip sends a request, reads the answer within its bound, and does not follow redirects.
func (n *tokenNet) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Context().Done() == nil {
		req = req.WithContext(n.ctx)
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", n.giver.agent)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.noteSent(req); err != nil {
		return nil, err
	}
	tr := n.giver.far
	if n.giver.near != nil && near(req.URL) {
		tr = n.giver.near
	}
	n.last = &cloud.Error{Place: cloud.Place(req.URL)}
	resp, err := httpbound.Transport{Next: tr}.RoundTrip(req)
	if err != nil {
		proxy, _ := proxyFor(tr, req.URL.String()) // without one the error stays as it is
		n.last.Err = through(proxy, unwrapURL(err))
		return nil, n.last.Err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer+1))
	if err == nil && len(body) > maxTokenAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", maxTokenAnswer)
	}
	if n.last.Err = err; err != nil {
		return nil, err
	}
	n.last.Status, n.last.Header, n.last.Text = resp.StatusCode, resp.Header, string(body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// failure describes why a source gave nothing, by the last answer; nil if no endpoint is to blame.
func (n *tokenNet) failure(err error) *cloud.Error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil || n.last.Err != nil {
		return n.last
	}
	said := *n.last
	said.Text = cmp.Or(cloud.Words([]byte(said.Text)), said.Text)
	if said.Status/100 == 2 {
		said.Text = "the answer gives no access: " + err.Error()
	}
	return &said
}

// near reports whether an address is of this machine or of the network that only it sees, such as a cloud's metadata
// service: requests go there without a proxy.
func near(u *url.URL) bool {
	if u.Hostname() == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && (addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.Is6() && addr.IsPrivate()) // fd00:ec2::254 is Amazon's
}

// noteSent records the secrets of a request, because the endpoint's answer may repeat them.
func (n *tokenNet) noteSent(req *http.Request) error {
	addAuthorization(&n.sent, req)
	for _, name := range []string{"X-Aws-Ec2-Metadata-Token", "X-Amz-Security-Token", "X-Identity-Header"} {
		n.sent.Add(req.Header.Get(name))
	}
	if req.Body == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(req.Body, maxTokenRequest))
	if err := errors.Join(err, req.Body.Close()); err != nil {
		return err
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	values, _ := url.ParseQuery(string(text)) // other bodies have no such secrets
	for _, name := range []string{"assertion", "client_assertion", "client_secret", "refresh_token", "subject_token", "WebIdentityToken"} {
		n.sent.Add(values[name]...)
	}
	return nil
}
