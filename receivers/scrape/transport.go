package scrape

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	commonconfig "github.com/prometheus/common/config"

	"hwsagent/internal/httpbound"
	"hwsagent/internal/redact"
)

// Bounds of the connections of a client. In addition, its context bounds each request.
const (
	maxIdleConns        = 1000 // to all hosts
	handshakeTimeout    = 10 * time.Second
	idleConnTimeout     = 5 * time.Minute
	maxAnswerHeadBytes  = 1 << 20
	continueWaitTimeout = time.Second
)

// newTransport makes a connection pool with the TLS settings, the proxy and the credentials of c,
// except OAuth 2.0 and http_headers. It rereads the files of c when they change, as Prometheus
// does. With a socket it connects to that Unix domain socket, regardless of the host in the
// request.
//
// The equivalent function of Prometheus' library is unusable here: it does not allow replacing
// net/http's HTTP/2 implementation, which hangs ([httpbound.SpeakHTTP2]).
func newTransport(c *commonconfig.HTTPClientConfig, socket string) (http.RoundTripper, error) {
	dial := (&net.Dialer{}).DialContext
	if socket != "" {
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	pool := func(t *tls.Config) (http.RoundTripper, error) {
		tr := &http.Transport{
			Proxy:                  c.Proxy(),
			ProxyConnectHeader:     c.GetProxyConnectHeader(),
			DialContext:            dial,
			TLSClientConfig:        t,
			TLSHandshakeTimeout:    handshakeTimeout,
			MaxIdleConns:           maxIdleConns,
			MaxIdleConnsPerHost:    maxIdleConns,
			IdleConnTimeout:        idleConnTimeout,
			ExpectContinueTimeout:  continueWaitTimeout,
			MaxResponseHeaderBytes: maxAnswerHeadBytes,
			DisableCompression:     true, // the request sets the accepted encoding
		}
		if c.EnableHTTP2 {
			if err := httpbound.SpeakHTTP2(tr); err != nil {
				return nil, err
			}
		}
		return withCredentials(tr, c), nil
	}
	t := &c.TLSConfig
	for _, file := range []string{t.CAFile, t.CertFile, t.KeyFile} { // what follows reads them whatever they are
		if file == "" {
			continue
		}
		if _, err := redact.ReadFile(file); err != nil {
			return nil, fmt.Errorf("read the files of tls_config: %w", err)
		}
	}
	tlsConfig, err := commonconfig.NewTLSConfig(t)
	if err != nil {
		return nil, err
	}
	if t.CAFile == "" && t.CertFile == "" && t.KeyFile == "" {
		return pool(tlsConfig)
	}
	files := commonconfig.TLSRoundTripperSettings{CA: secret(t.CA, t.CAFile), Cert: secret(t.Cert, t.CertFile), Key: secret(string(t.Key), t.KeyFile)}
	rt, err := commonconfig.NewTLSRoundTripperWithContext(context.Background(), tlsConfig, files, pool)
	if err != nil {
		return nil, fmt.Errorf("read the files of tls_config: %w", err)
	}
	return rt, nil
}

// withCredentials adds the credentials of c to the requests that next sends.
func withCredentials(next http.RoundTripper, c *commonconfig.HTTPClientConfig) http.RoundTripper {
	if a := c.Authorization; a != nil {
		next = commonconfig.NewAuthorizationCredentialsRoundTripper(a.Type, secret(string(a.Credentials), a.CredentialsFile), next)
	}
	if c.BearerToken != "" || c.BearerTokenFile != "" {
		next = commonconfig.NewAuthorizationCredentialsRoundTripper("Bearer", secret(string(c.BearerToken), c.BearerTokenFile), next)
	}
	if b := c.BasicAuth; b != nil {
		next = commonconfig.NewBasicAuthRoundTripper(secret(b.Username, b.UsernameFile), secret(string(b.Password), b.PasswordFile), next)
	}
	return next
}

// secret returns a reader of a value in the configuration or in a file; nil if it is in neither.
func secret(text, file string) commonconfig.SecretReader {
	switch {
	case text != "":
		return commonconfig.NewInlineSecret(text)
	case file != "":
		return secretFile(file)
	}
	return nil
}

// secretFile is the name of a file with a secret. It implements [commonconfig.SecretReader], and reads no pipes, which could
// block forever.
type secretFile string

func (f secretFile) Fetch(context.Context) (string, error) {
	text, err := redact.ReadFile(string(f))
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	return text, nil
}

func (f secretFile) Description() string { return "file " + string(f) }

func (secretFile) Immutable() bool { return false }
