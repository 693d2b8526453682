package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"

	"hwsagent/internal/httpbound"
	"hwsagent/remotewrite/config"
)

// newTransport makes a pool of connections with the entry's TLS and proxy settings. The
// contents of files must be in place of their names.
func newTransport(t *promconfig.TLSConfig, p promconfig.ProxyConfig, http2 bool, dial DialFunc) (*http.Transport, error) {
	tlsConfig, err := promconfig.NewTLSConfig(t)
	if err != nil {
		return nil, err
	}
	tr := &http.Transport{
		Proxy:                  p.Proxy(),
		ProxyConnectHeader:     p.GetProxyConnectHeader(),
		OnProxyConnectResponse: tunnelled,
		DialContext:            limitDials(dial),
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    10 * time.Second,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    config.MaxShards + 1, // one more for metadata
		MaxResponseHeaderBytes: readHead,
		IdleConnTimeout:        5 * time.Minute,
	}
	if http2 {
		if err := httpbound.SpeakHTTP2(tr); err != nil {
			return nil, err
		}
	}
	return tr, nil
}

// proxyFor returns the proxy for requests to the address, "" if there is none:
// scheme, host and port, for people.
func proxyFor(t *http.Transport, to string) (string, error) {
	if t.Proxy == nil {
		return "", nil
	}
	u, err := url.Parse(to)
	if err != nil {
		return "", errors.New("find the proxy: not a URL")
	}
	proxy, err := t.Proxy(&http.Request{URL: u})
	if err != nil || proxy == nil {
		return "", err
	}
	return proxy.Scheme + "://" + proxy.Host, nil
}

// through adds the proxy's address to an error of a request through it.
func through(proxy string, err error) error {
	switch p, refused := errors.AsType[*proxyError](err); {
	case proxy == "":
		return err
	case refused:
		named := *p
		named.proxy = proxy
		return &named
	}
	return &throughError{proxy, err}
}

// throughError is an error of a request through a proxy.
type throughError struct {
	proxy string // scheme, host and port
	err   error
}

func (e *throughError) Error() string { return "through the proxy " + e.proxy + ": " + e.err.Error() }
func (e *throughError) Unwrap() error { return e.err }

// proxyError is a refusal by a proxy: the request has not reached the receiver.
type proxyError struct {
	proxy  string // scheme, host and port
	status int
	text   string // its text; may be ""
}

func (e *proxyError) Error() string {
	return fmt.Sprintf("the proxy %s answers %s", e.proxy, statusText(e.status, e.text))
}

// tunnelled evaluates the answer to a CONNECT, which is the proxy's and never the receiver's
// (RFC 9110, 9.3.6).
func tunnelled(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	_, reason, _ := strings.Cut(resp.Status, " ")
	return &proxyError{status: resp.StatusCode, text: bodyText(resp.StatusCode, []byte(reason))}
}

// lasts reports whether a proxy or token endpoint will repeat a status until a person acts.
func lasts(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < 500
}

// blocks reports whether an error is a refusal by a proxy or the token endpoint, or a redirect, that lasts until a person acts.
func blocks(err error) bool {
	if p, ok := errors.AsType[*proxyError](err); ok {
		return lasts(p.status)
	}
	if errors.Is(err, errRedirect) {
		return true
	}
	t, ok := errors.AsType[*tokenError](err)
	return ok && t.status != 0 && (t.status/100 == 2 || lasts(t.status))
}

// withoutPort removes our own port from an error. The port differs each time, so
// equal errors would have different texts.
func withoutPort(err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Source == nil {
		return err
	}
	return &reworded{text: strings.ReplaceAll(err.Error(), op.Source.String()+"->", ""), err: err}
}

// reworded is an error with another text.
type reworded struct {
	text string
	err  error
}

func (e *reworded) Error() string { return e.text }
func (e *reworded) Unwrap() error { return e.err }

// authHeader returns the header that the entry's credentials add to each request.
func authHeader(c *promconfig.HTTPClientConfig) http.Header {
	req := http.Request{Header: http.Header{}}
	if b := c.BasicAuth; b != nil {
		req.SetBasicAuth(b.Username, string(b.Password))
	}
	if a := c.Authorization; a != nil {
		req.Header.Set("Authorization", a.Type+" "+string(a.Credentials))
	}
	if c.HTTPHeaders != nil {
		for name, h := range c.HTTPHeaders.Headers {
			for _, v := range h.Values {
				req.Header.Add(name, v)
			}
			for _, v := range h.Secrets {
				req.Header.Add(name, string(v))
			}
		}
	}
	return req.Header
}

// addHeader appends the values in more to those in h.
func addHeader(h, more http.Header) {
	for name, values := range more {
		h[name] = append(h[name][:len(h[name]):len(h[name])], values...)
	}
}
