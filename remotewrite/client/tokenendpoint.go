package client

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	promconfig "github.com/prometheus/common/config"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"hwsagent/httpbound"
	"hwsagent/redact"
	"hwsagent/remotewrite/config"
)

// tokenEndpoint asks for access tokens. It follows no redirects, which would leak the
// client's secret. Safe for concurrent use.
type tokenEndpoint struct {
	place     config.URL // the address to show to people
	proxy     string     // "" if there is none
	agent     string     // the User-Agent header
	secrets   *redact.Secrets
	hide      *redact.Secrets // of addresses' paths; may be nil
	transport *http.Transport
	grant     interface { // *clientcredentials.Config or *config.JwtGrantTypeConfig
		TokenSource(ctx context.Context) oauth2.TokenSource
	}
}

// newTokenEndpoint makes a tokenEndpoint. The contents of files must be in place of their names.
func newTokenEndpoint(o *promconfig.OAuth2, agent string, dial DialFunc) (*tokenEndpoint, error) {
	place, err := config.ParseURL(o.TokenURL)
	if err != nil {
		return nil, err
	}
	e := &tokenEndpoint{place: place, agent: agent}
	if e.transport, err = newTransport(&o.TLSConfig, o.ProxyConfig, false, dial); err != nil {
		return nil, err
	}
	e.transport.DisableKeepAlives = true // requests are about an hour apart
	if e.proxy, err = proxyFor(e.transport, o.TokenURL); err != nil {
		return nil, err
	}
	params := url.Values{}
	for name, value := range o.EndpointParams {
		params.Set(name, value)
	}
	if o.GrantType == config.GrantJWT {
		e.grant = &promconfig.JwtGrantTypeConfig{
			PrivateKey: []byte(o.ClientCertificateKey), PrivateKeyID: o.ClientCertificateKeyID, SigningAlgorithm: signing(o.SignatureAlgorithm),
			Iss: either(o.Iss, o.ClientID), Subject: o.ClientID, Audience: o.Audience, PrivateClaims: o.Claims,
			Scopes: o.Scopes, TokenURL: o.TokenURL, EndpointParams: params,
		}
	} else {
		e.grant = &clientcredentials.Config{
			ClientID: o.ClientID, ClientSecret: string(o.ClientSecret),
			Scopes: o.Scopes, TokenURL: o.TokenURL, EndpointParams: params,
		}
	}
	return e, nil
}

func either(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

func signing(algorithm string) *jwt.SigningMethodRSA {
	switch algorithm {
	case jwt.SigningMethodRS384.Name:
		return jwt.SigningMethodRS384
	case jwt.SigningMethodRS512.Name:
		return jwt.SigningMethodRS512
	}
	return jwt.SigningMethodRS256
}

func (e *tokenEndpoint) what() string { return "OAuth2 token" }

// give implements [giver].
func (e *tokenEndpoint) give(ctx context.Context) (*token, error) {
	begin := time.Now()
	got, err := e.ask(ctx)
	if err != nil {
		return nil, err
	}
	k := &token{header: got.Type() + " " + got.AccessToken, secrets: []string{got.AccessToken}, born: begin, end: got.Expiry}
	if got.Expiry.IsZero() {
		// Only the length of the validity counts, since the issuer's clock may differ from ours.
		if v := jwtValidity(got.AccessToken); !v.From.IsZero() && v.Until.After(v.From) {
			k.end = begin.Add(v.Until.Sub(v.From))
		}
	}
	if got.AccessToken == "" || !httpguts.ValidHeaderFieldValue(k.header) {
		return nil, &tokenError{place: e.place.String(), status: http.StatusOK, text: "the answer has no access_token that can be sent"}
	}
	return k, nil
}

// ask makes one attempt, or two if it is not known yet how the endpoint expects the secret. Its
// errors are *tokenError.
func (e *tokenEndpoint) ask(ctx context.Context) (*oauth2.Token, error) {
	call := &tokenCall{ctx: ctx, agent: e.agent, next: httpbound.Transport{Next: e.transport}}
	client := &http.Client{
		Transport:     call,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	got, err := e.grant.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client)).Token()
	if err == nil {
		return got, nil
	}
	failed := &tokenError{place: e.place.String(), status: call.status, after: call.after}
	cut := func(s string) string { return redact.Cut(s, e.secrets, e.hide, &call.sent) }
	if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		failed.text = whyNoToken(said, cut)
		return nil, failed
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // its text may contain the whole URL
		err = wrapped.Err
	}
	if failed.status != 0 && ctx.Err() == nil {
		failed.text = cut(strings.TrimPrefix(err.Error(), "oauth2: "))
		return nil, failed
	}
	failed.status, failed.err = 0, through(e.proxy, withoutPort(err))
	return nil, failed
}

// whyNoToken returns a token endpoint's error and error_description (RFC 6749, 5.2), or the beginning
// of its answer if it has neither.
func whyNoToken(e *oauth2.RetrieveError, cut func(string) string) string {
	var told struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	told.Error, told.Description = e.ErrorCode, e.ErrorDescription
	if told.Error == "" && json.Unmarshal(e.Body, &told) != nil || told.Error == "" {
		return quoted(e.Response.StatusCode, e.Body, cut)
	}
	text := told.Error
	if told.Description != "" {
		text += ": " + told.Description
	}
	return quoted(e.Response.StatusCode, []byte(text), cut)
}

// tokenCall carries the requests of one call of ask, and binds them to its context, since
// not all grants do.
type tokenCall struct {
	ctx   context.Context
	agent string
	next  http.RoundTripper

	sent redact.Secrets // assertions, which grant access to their holder

	// From the last answer.
	status int
	after  time.Duration
}

func (c *tokenCall) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(c.ctx)
	req.Header.Set("User-Agent", c.agent)
	c.status, c.after = 0, 0
	if err := c.noteAssertion(req); err != nil {
		return nil, err
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	date, _ := http.ParseTime(resp.Header.Get("Date")) // zero if there is none
	c.status, c.after = resp.StatusCode, retryAfter(resp.Header.Get("Retry-After"), date, time.Now())
	return resp, nil
}

// noteAssertion records the assertion in the form that req sends.
func (c *tokenCall) noteAssertion(req *http.Request) error {
	body, err := req.GetBody()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	form, err := url.ParseQuery(string(text))
	if err == nil {
		c.sent.Add(form["assertion"]...)
	}
	return err
}

// checkSigningKey checks that a text is a private key that can sign assertions.
func checkSigningKey(text string) error {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return errors.New("it is not PEM")
	}
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if _, ok := key.(*rsa.PrivateKey); !ok || err != nil {
		return errors.New("it has no RSA key (PKCS #1 or PKCS #8, without a passphrase)")
	}
	return nil
}
