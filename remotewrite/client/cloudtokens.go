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

	"hwsagent/httpbound"
	"hwsagent/redact"
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
		c.cloud, err = cloud.SigV4(from.SigV4, env, l)
	case from.AzureAD != nil:
		c.cloud, err = cloud.Azure(from.AzureAD, env, l)
	case from.GoogleIAM != nil:
		c.cloud, err = cloud.Google(from.GoogleIAM, env, l)
	default:
		return
	}
	if err != nil {
		l.errs = append(l.errs, err)
		return
	}
	c.secrets.Add(c.cloud.Secrets()...)
	p := c.cloudProxy()
	c.hideProxy(&p)
}

// cloudProxy returns the proxy for the endpoints: the entry's, or else that of the environment, as in the clouds' own
// programs.
func (c *credentials) cloudProxy() promconfig.ProxyConfig {
	p := c.http.ProxyConfig
	if p.ProxyURL.URL == nil {
		p.ProxyFromEnvironment = true
	}
	return p
}

// cloudTokens gets credentials for the receiver from a cloud. It implements [giver].
type cloudTokens struct {
	source    cloud.Source
	agent     string // the User-Agent header
	secrets   *redact.Secrets
	hide      *redact.Secrets // of addresses' paths; may be nil
	far, near *http.Client    // with the proxy, and without
}

func newCloudTokens(c *credentials, agent string, dial DialFunc) (*cloudTokens, error) {
	t := &cloudTokens{source: c.cloud, agent: agent, secrets: &c.secrets, hide: c.hide}
	var err error
	if t.far, err = oneShot(c.cloudProxy(), dial); err != nil {
		return nil, err
	}
	t.near, err = oneShot(promconfig.ProxyConfig{}, dial)
	return t, err
}

// oneShot returns an HTTP client that keeps no connection: its requests are about an hour apart.
func oneShot(p promconfig.ProxyConfig, dial DialFunc) (*http.Client, error) {
	tr, err := newTransport(&promconfig.TLSConfig{}, p, false, dial)
	if err != nil {
		return nil, err
	}
	tr.DisableKeepAlives = true
	return &http.Client{
		Transport:     httpbound.Transport{Next: tr},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func (t *cloudTokens) what() string { return t.source.What() }

// give makes one attempt. Its errors are *tokenError.
func (t *cloudTokens) give(ctx context.Context) (*token, error) {
	begin := time.Now()
	n := &cloudNet{cloudTokens: t}
	a, err := t.source.Get(ctx, n)
	if err == nil {
		if !sendable(&a) {
			return nil, &tokenError{what: t.source.What(), status: http.StatusOK, text: "what was given cannot be sent: it has line breaks or control characters"}
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

// cloudNet carries the requests of one call of give. It implements [cloud.Network].
type cloudNet struct {
	*cloudTokens
	sent redact.Secrets // assertions and tokens of requests
}

// maxCloudAnswer bounds the answer of an endpoint, in bytes: tokens have a few thousand.
const maxCloudAnswer = 256 << 10

// Do implements [cloud.Network].
func (n *cloudNet) Do(req *http.Request, near bool) (cloud.Response, error) {
	req.Header.Set("User-Agent", n.agent)
	if err := n.noteSent(req); err != nil {
		return cloud.Response{}, err
	}
	client := n.far
	if near {
		client = n.near
	}
	resp, err := client.Do(req) // #nosec G704 -- the address is the configuration's, the environment's or the cloud's
	if err != nil {
		return cloud.Response{}, err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCloudAnswer+1))
	if err == nil && len(body) > maxCloudAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", maxCloudAnswer)
	}
	return cloud.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, err
}

// noteSent records the secrets of a request, because the endpoint's answer may repeat them.
func (n *cloudNet) noteSent(req *http.Request) error {
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
