package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/golang-jwt/jwt/v5"
	commonconfig "github.com/prometheus/common/config"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"hwsagent/internal/httpbound"
	"hwsagent/internal/redact"
)

// grantJWT is the grant by a signed assertion (RFC 7523, 2.1). The alternative is a client secret
// (RFC 6749, 4.4).
const grantJWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// tokens gets access tokens (OAuth 2.0) for the requests of a client. A request waits for a token
// within its own context. It is safe for concurrent use.
type tokens struct {
	config    *commonconfig.OAuth2
	transport http.RoundTripper
	turn      chan struct{} // holds one value while a request asks the endpoint

	mu     sync.Mutex
	key    string // secret or signing key that obtained token
	token  *oauth2.Token
	signed []string // assertions sent for the newest token
}

func newTokens(c *commonconfig.OAuth2) (*tokens, error) {
	transport, err := newTransport(&commonconfig.HTTPClientConfig{TLSConfig: c.TLSConfig, ProxyConfig: c.ProxyConfig}, "")
	if err != nil {
		return nil, err
	}
	return &tokens{config: c, transport: httpbound.Transport{Next: transport}, turn: make(chan struct{}, 1)}, nil
}

func (t *tokens) close() {
	(&http.Client{Transport: t.transport}).CloseIdleConnections()
}

// authorize adds a token to a request.
func (t *tokens) authorize(req *http.Request) error {
	ctx := req.Context()
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return fmt.Errorf("wait for an access token: %w", ctx.Err())
	}
	key, err := t.readKey()
	if err != nil {
		return err
	}
	t.mu.Lock()
	got := t.token
	if t.key != key {
		got = nil
	}
	t.mu.Unlock()
	if !got.Valid() {
		if got, err = t.ask(ctx, key); err != nil {
			return fmt.Errorf("get an access token: %w", err)
		}
		t.mu.Lock()
		t.key, t.token = key, got
		t.mu.Unlock()
	}
	got.SetAuthHeader(req)
	return nil
}

// readKey returns the secret, or the key that signs assertions.
func (t *tokens) readKey() (string, error) {
	key, file := string(t.config.ClientSecret), t.config.ClientSecretFile
	if t.config.GrantType == grantJWT {
		key, file = string(t.config.ClientCertificateKey), t.config.ClientCertificateKeyFile
	}
	if file == "" {
		return key, nil
	}
	text, err := redact.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the OAuth 2.0 secret: %w", err)
	}
	return text, nil
}

// ask requests a token from the endpoint. It follows no redirect, which would receive the secret.
func (t *tokens) ask(ctx context.Context, key string) (*oauth2.Token, error) {
	c, params := t.config, url.Values{}
	for name, value := range c.EndpointParams {
		params.Set(name, value)
	}
	var grant interface {
		TokenSource(ctx context.Context) oauth2.TokenSource
	} = &clientcredentials.Config{ClientID: c.ClientID, ClientSecret: key, Scopes: c.Scopes, TokenURL: c.TokenURL, EndpointParams: params}
	if c.GrantType == grantJWT {
		issuer := c.Iss
		if issuer == "" {
			issuer = c.ClientID
		}
		grant = &commonconfig.JwtGrantTypeConfig{
			PrivateKey: []byte(key), PrivateKeyID: c.ClientCertificateKeyID, SigningAlgorithm: signing(c.SignatureAlgorithm),
			Iss: issuer, Subject: c.ClientID, Audience: c.Audience, PrivateClaims: c.Claims,
			Scopes: c.Scopes, TokenURL: c.TokenURL, EndpointParams: params,
		}
	}
	call := &http.Client{
		Transport:     tokenCall{t, ctx},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	got, err := grant.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, call)).Token()
	if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok && said.Response != nil {
		text := said.ErrorCode + " " + said.ErrorDescription
		if said.ErrorCode == "" {
			text = string(said.Body)
		}
		return nil, fmt.Errorf("%s answered %s: %s", redact.URL(c.TokenURL), said.Response.Status, strings.TrimSpace(text))
	}
	return got, err
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

// tokenCall binds requests for tokens to ctx; not every grant does so itself.
type tokenCall struct {
	of  *tokens
	ctx context.Context
}

// RoundTrip implements [http.RoundTripper].
func (c tokenCall) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(c.ctx)
	req.Header.Set("User-Agent", userAgent)
	if req.GetBody != nil {
		if body, err := req.GetBody(); err == nil {
			c.of.noteAssertion(body)
		}
	}
	return c.of.transport.RoundTrip(req)
}

// noteAssertion remembers the assertion of a request as a secret: anyone who has it could log in.
func (t *tokens) noteAssertion(body io.ReadCloser) {
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxRawText))
	if err != nil {
		return
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signed = form["assertion"]
}

// addSecrets adds the secrets that the types of the configuration do not mark.
func (t *tokens) addSecrets(s *redact.Secrets) {
	c := t.config
	secret := string(c.ClientSecret) + textOf(c.ClientSecretFile)
	s.Add(secret, textOf(c.ClientCertificateKeyFile))
	s.AddBasic(c.ClientID, secret)
	s.AddBasic(url.QueryEscape(c.ClientID), url.QueryEscape(secret)) // as RFC 6749, 2.3.1 requires
	for name, value := range c.EndpointParams {
		if !redact.OpenParameter(name) {
			s.Add(value)
		}
	}
	if u, err := url.Parse(c.TokenURL); err == nil {
		s.AddURL(u)
	}
	s.AddURL(c.ProxyURL.URL)
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Add(t.signed...)
	s.Add(t.key)
	if t.token != nil {
		s.Add(t.token.AccessToken)
	}
}
