package scrape

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	commonconfig "github.com/prometheus/common/config"

	"hwsagent/internal/httpbound"
	"hwsagent/internal/redact"
)

const (
	// maxErrorText bounds the text of an error about a target or a list of targets, in characters.
	maxErrorText = 500
	// maxRawText bounds, in bytes, the part of an error's text that is searched for secrets; the
	// rest is never shown.
	maxRawText = 16 << 10
	// maxDrained is how much of an unwanted body is read so that the connection can be reused.
	maxDrained = 64 << 10
)

// client sends the requests of a job, or of one http_sd_configs entry. Every answer ends with the
// context of its request, and credentials are sent only to the host that the request names. It is
// safe for concurrent use.
type client struct {
	http   *http.Client
	config commonconfig.HTTPClientConfig
	params url.Values // of the job; they may be secret
	tokens *tokens    // nil without OAuth 2.0
}

// newClient makes a client. With a socket it connects to that Unix domain socket, regardless of the
// host in the request.
func newClient(c commonconfig.HTTPClientConfig, params url.Values, socket string) (*client, error) {
	made := &client{config: c, params: params}
	known := c
	known.HTTPHeaders, known.OAuth2 = nil, nil // added by sender and tokens
	own, err := newTransport(&known, socket)
	if err != nil {
		return nil, fmt.Errorf("make the HTTP client: %w", err)
	}
	if c.OAuth2 != nil {
		if made.tokens, err = newTokens(c.OAuth2); err != nil {
			return nil, fmt.Errorf("make the HTTP client: %w", err)
		}
	}
	bare := commonconfig.HTTPClientConfig{TLSConfig: c.TLSConfig, ProxyConfig: c.ProxyConfig, EnableHTTP2: c.EnableHTTP2}
	bare.TLSConfig.Cert, bare.TLSConfig.CertFile, bare.TLSConfig.Key, bare.TLSConfig.KeyFile = "", "", "", ""
	other, err := newTransport(&bare, socket)
	if err != nil {
		return nil, fmt.Errorf("make the HTTP client: %w", err)
	}
	made.http = &http.Client{Transport: httpbound.Transport{Next: &sender{own: own, other: other, headers: c.HTTPHeaders, tokens: made.tokens}}}
	if !c.FollowRedirects {
		made.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return made, nil
}

func (c *client) close() {
	c.http.CloseIdleConnections()
	if c.tokens != nil {
		c.tokens.close()
	}
}

// sender sends a request with the credentials of a client, or without them if a redirect led to
// another host.
type sender struct {
	own     http.RoundTripper // adds the credentials
	other   http.RoundTripper // without credentials
	headers *commonconfig.Headers
	tokens  *tokens
}

// RoundTrip implements [http.RoundTripper].
func (s *sender) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Referer") // which would reveal this query to the next host
	if !atHome(req) {
		return s.other.RoundTrip(req)
	}
	if err := addHeaders(req.Header, s.headers); err != nil {
		return nil, err
	}
	if s.tokens != nil {
		if err := s.tokens.authorize(req); err != nil {
			return nil, err
		}
	}
	return s.own.RoundTrip(req)
}

// CloseIdleConnections closes the idle connections to all hosts.
func (s *sender) CloseIdleConnections() {
	for _, t := range []http.RoundTripper{s.own, s.other} {
		if c, ok := t.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// atHome reports whether every redirect up to req kept the host and port of the first request. A
// change from http to https on the same host is allowed, one from https to http is not.
func atHome(req *http.Request) bool {
	first := req
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	home := first.URL
	for r := req; r != first; r = r.Response.Request {
		upgraded := home.Scheme == "http" && r.URL.Scheme == "https" && strings.EqualFold(r.URL.Hostname(), home.Hostname())
		if !upgraded && (r.URL.Scheme != home.Scheme || !strings.EqualFold(r.URL.Host, home.Host)) {
			return false
		}
	}
	return true
}

// addHeaders adds the headers of http_headers. It reads their files each time.
func addHeaders(to http.Header, headers *commonconfig.Headers) error {
	if headers == nil {
		return nil
	}
	for name, h := range headers.Headers {
		for _, v := range h.Values {
			to.Add(name, v)
		}
		for _, v := range h.Secrets {
			to.Add(name, string(v))
		}
		for _, file := range h.Files {
			text, err := redact.ReadFile(file)
			if err != nil {
				return fmt.Errorf("read the header %s: %w", name, err)
			}
			to.Add(name, text)
		}
	}
	return nil
}

// hidden returns err for people: without the client's secrets and those of the requested address,
// without the queries of other addresses, and at most maxErrorText long. It wraps the original, whose text must not be shown.
func (c *client) hidden(err error, asked string) error {
	text := err.Error()
	if e, ok := errors.AsType[*url.Error](err); ok {
		text = fmt.Sprintf("%s %q: %v", e.Op, redact.URL(e.URL), e.Err)
	}
	if len(text) > maxRawText {
		text = text[:maxRawText]
	}
	known := c.secrets()
	if u, err := url.Parse(asked); err == nil {
		known.AddURL(u)
	}
	return &shownError{brief(redact.Text(known.Cut(text))), err}
}

// shownError is an error with a text for people. Its cause, which errors.Is and errors.As find, may contain secrets.
type shownError struct {
	text  string
	cause error
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.cause }

// brief cuts text to maxErrorText characters, at the end of a word: redaction would not find half a
// secret in it.
func brief(text string) string {
	all := []rune(text)
	if len(all) <= maxErrorText {
		return text
	}
	short := string(all[:maxErrorText])
	if end := strings.LastIndexByte(short, ' '); end > 0 {
		short = short[:end]
	}
	return short + " …"
}

// secrets returns all current secrets of the client, including those in files.
func (c *client) secrets() *redact.Secrets {
	s := redact.New()
	addSecrets(s, reflect.ValueOf(c.config))
	if b := c.config.BasicAuth; b != nil {
		s.AddBasic(b.Username+textOf(b.UsernameFile), string(b.Password)+textOf(b.PasswordFile))
	}
	if a := c.config.Authorization; a != nil {
		s.Add(textOf(a.CredentialsFile))
	}
	s.Add(textOf(c.config.BearerTokenFile))
	if h := c.config.HTTPHeaders; h != nil {
		for name, h := range h.Headers {
			if !redact.OpenHeader(name) {
				s.Add(h.Values...)
			}
			for _, f := range h.Files {
				s.Add(textOf(f))
			}
		}
	}
	s.AddURL(c.config.ProxyURL.URL)
	for _, values := range c.params {
		s.Add(values...)
	}
	if c.tokens != nil {
		c.tokens.addSecrets(s)
	}
	return s
}

// addSecrets adds every value below v whose type marks it as secret.
func addSecrets(s *redact.Secrets, v reflect.Value) {
	if v.Type() == reflect.TypeFor[commonconfig.Secret]() {
		s.Add(v.String())
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*url.URL]() {
			addSecrets(s, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				addSecrets(s, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			addSecrets(s, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			addSecrets(s, v.MapIndex(key))
		}
	}
}

// textOf returns the content of a file with a secret, or "" if there is none: then no request sent it
// either.
func textOf(name string) string {
	if name == "" {
		return ""
	}
	text, err := redact.ReadFile(name)
	if err != nil {
		return ""
	}
	return text
}
