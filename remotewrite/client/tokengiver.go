package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	promconfig "github.com/prometheus/common/config"
	"golang.org/x/net/http/httpguts"

	"hwsagent/internal/httpbound"
	"hwsagent/internal/redact"
	"hwsagent/remotewrite/client/cloud"
	"hwsagent/remotewrite/config"
)

// environment returns the environment for the clouds' variables: get, or that of the process if get is nil.
func environment(get func(string) string) cloud.Environment {
	if get == nil {
		get = os.Getenv
	}
	return cloud.Environment{Get: get, Home: get("HOME")}
}

// loadCloud reads the credentials for requests to a cloud's endpoints.
func (c *credentials) loadCloud(l *fileLoader, from *config.Config, env cloud.Environment) {
	var err error
	switch {
	case from.SigV4 != nil:
		c.source, err = cloud.SigV4(from.SigV4, env, l)
	case from.AzureAD != nil:
		c.source, err = cloud.Azure(from.AzureAD, env, l)
	case from.GoogleIAM != nil:
		c.source, err = cloud.Google(from.GoogleIAM, env, l)
	default:
		return
	}
	if err != nil {
		l.errs = append(l.errs, err)
		return
	}
	c.secrets.Add(c.source.Secrets()...)
	_, p := c.wayToTokens()
	c.hideProxy(&p)
}

// wayToTokens returns how to reach the endpoints that give tokens. Those of a cloud have the entry's proxy, or else
// that of the environment, as in the clouds' own programs.
func (c *credentials) wayToTokens() (promconfig.TLSConfig, promconfig.ProxyConfig) {
	if o := c.http.OAuth2; o != nil {
		return o.TLSConfig, o.ProxyConfig
	}
	p := c.http.ProxyConfig
	if p.ProxyURL.URL == nil {
		p.ProxyFromEnvironment = true
	}
	return promconfig.TLSConfig{}, p
}

// tokenGiver gets credentials for the receiver from the endpoint of oauth2 or from a cloud.
type tokenGiver struct {
	source    cloud.Source
	agent     string // the User-Agent header
	secrets   *redact.Secrets
	hide      *redact.Secrets // of addresses' paths; may be nil
	far, near *http.Transport // with the proxy, and without
}

func newTokenGiver(c *credentials, agent string, dial DialFunc) (*tokenGiver, error) {
	g := &tokenGiver{source: c.source, agent: agent, secrets: &c.secrets, hide: c.hide}
	tls, proxy := c.wayToTokens()
	var err error
	if g.far, err = newTransport(&tls, proxy, false, dial); err != nil {
		return nil, err
	}
	if g.near, err = newTransport(&promconfig.TLSConfig{}, promconfig.ProxyConfig{}, false, dial); err != nil {
		return nil, err
	}
	g.far.DisableKeepAlives, g.near.DisableKeepAlives = true, true // requests are about an hour apart
	return g, nil
}

// followNone makes an [http.Client] return a redirect: following it would leak secrets.
func followNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// give makes one attempt within tokenTimeout, the deadline of ctx. Its errors are *tokenError.
func (t *tokenGiver) give(ctx context.Context) (*token, error) {
	begin := time.Now()
	n := &tokenNet{giver: t}
	a, err := t.source.Get(ctx, n)
	if err == nil {
		if !sendable(&a) {
			return nil, &tokenError{what: t.source.What(), status: http.StatusOK, text: "the token cannot be sent: it has line breaks or control characters"}
		}
		return &token{header: a.Authorization, keys: a.Keys, secrets: a.Secrets, born: begin, end: a.End}, nil
	}
	cut := func(s string) string { return redact.Cut(s, t.secrets, t.hide, &n.sent) }
	failed := &tokenError{what: t.source.What()}
	said, ok := errors.AsType[*cloud.Error](err)
	if !ok {
		failed.err = fmt.Errorf("ask for access: %w", err)
		return nil, failed
	}
	failed.place, failed.status = cut(said.Place), said.Status
	if said.Err != nil {
		failed.err = withoutPort(withChain(unwrapURL(said.Err)))
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

// tokenNet carries the requests of one call of give. It implements [cloud.Network].
type tokenNet struct {
	giver *tokenGiver
	sent  redact.Secrets // assertions and tokens of requests
}

// maxTokenAnswer bounds the answer of an endpoint, in bytes: tokens have a few thousand.
const maxTokenAnswer = 256 << 10

// Do implements [cloud.Network].
func (n *tokenNet) Do(req *http.Request, near bool) (cloud.Response, error) {
	req.Header.Set("User-Agent", n.giver.agent)
	if err := n.noteSent(req); err != nil {
		return cloud.Response{}, err
	}
	tr := n.giver.far
	if near {
		tr = n.giver.near
	}
	client := http.Client{Transport: httpbound.Transport{Next: tr}, CheckRedirect: followNone}
	resp, err := client.Do(req) // #nosec G704 -- the address is the configuration's, the environment's or the cloud's
	if err != nil {
		proxy, _ := proxyFor(tr, req.URL.String()) // without one the error stays as it is
		return cloud.Response{}, through(proxy, unwrapURL(err))
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer+1))
	if err == nil && len(body) > maxTokenAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", maxTokenAnswer)
	}
	return cloud.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, err
}

// noteSent records the secrets of a request, because the endpoint's answer may repeat them.
func (n *tokenNet) noteSent(req *http.Request) error {
	addAuthorization(&n.sent, req)
	for _, name := range []string{"X-Aws-Ec2-Metadata-Token", "X-Amz-Security-Token", "X-Identity-Header"} {
		n.sent.Add(req.Header.Get(name))
	}
	if req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it is in memory
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	values, err := url.ParseQuery(string(text))
	for _, name := range []string{"assertion", "client_assertion", "client_secret", "refresh_token", "WebIdentityToken"} {
		n.sent.Add(values[name]...)
	}
	return err
}
