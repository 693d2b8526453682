package redfish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	promconfig "github.com/prometheus/common/config"

	"hwsagent/internal/httpbound"
	"hwsagent/probes/devices"
)

const (
	maxBody = 2 << 20  // bytes of one answer: decoded, JSON may take twenty times that
	maxHead = 64 << 10 // bytes of an answer's head
	buffer  = 1 << 10  // bytes; two of them for each connection, which stays open between rounds. A request or a head has less
)

// reply is an answer of the service.
type reply struct {
	status int
	header http.Header
	body   []byte
}

var errLarge = fmt.Errorf("the answer is larger than %d MiB", maxBody>>20)

// client sends requests to one service.
type client struct {
	base    *url.URL
	http    *http.Client
	timeout time.Duration
	pace    *devices.Pace
}

func newClient(c *Config, pace *devices.Pace) (*client, error) {
	base, err := parseTarget(c.Target)
	if err != nil {
		return nil, err
	}
	t, err := newTLS(c)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: c.requestTimeout()}).DialContext,
		TLSClientConfig:        t,
		TLSHandshakeTimeout:    c.requestTimeout(),
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1, which all services support
		DisableCompression:     true,
		MaxConnsPerHost:        atOnce,
		MaxIdleConnsPerHost:    atOnce,
		MaxResponseHeaderBytes: maxHead,
		ReadBufferSize:         buffer,
		WriteBufferSize:        buffer,
		IdleConnTimeout:        5 * time.Minute,
	}
	return &client{base: base, timeout: c.requestTimeout(), pace: pace, http: &http.Client{
		Transport:     httpbound.Transport{Next: transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// newTLS returns the TLS settings. It reads the files that they name.
func newTLS(c *Config) (*tls.Config, error) {
	t, err := promconfig.NewTLSConfig(&c.TLSConfig)
	if err != nil {
		return nil, fmt.Errorf("tls_config: %w", err)
	}
	if t.MinVersion == 0 {
		t.MinVersion = tls.VersionTLS12
	}
	t.ClientSessionCache = tls.NewLRUClientSessionCache(atOnce)
	if c.OldTLS {
		t.MinVersion = tls.VersionTLS10
		for _, suites := range [][]*tls.CipherSuite{tls.CipherSuites(), tls.InsecureCipherSuites()} {
			for _, s := range suites {
				t.CipherSuites = append(t.CipherSuites, s.ID)
			}
		}
	}
	if c.Fingerprint != "" {
		want, err := c.fingerprint()
		if err != nil {
			return nil, fmt.Errorf("fingerprint %w", err)
		}
		t.InsecureSkipVerify = true
		t.VerifyConnection = func(s tls.ConnectionState) error {
			if got := sha256.Sum256(s.PeerCertificates[0].Raw); subtle.ConstantTimeCompare(got[:], want) != 1 {
				return &fingerprintError{got[:]}
			}
			return nil
		}
	}
	return t, nil
}

// fingerprintError means that the service's certificate is not the configured one.
type fingerprintError struct{ got []byte }

func (e *fingerprintError) Error() string {
	return fmt.Sprintf("its certificate has the fingerprint %x, not the configured one", e.got)
}

// send sends a request and reads the answer, both within the client's timeout. path begins with a slash and is escaped;
// set changes the request's header.
func (c *client) send(ctx context.Context, method, path string, body []byte, set func(http.Header)) (*reply, error) {
	u, err := c.base.Parse(path)
	if err != nil || u.Host != c.base.Host || u.Scheme != c.base.Scheme {
		return nil, fmt.Errorf("%q is not a path of this service", path)
	}
	if err := c.pace.Wait(ctx); err != nil {
		if errors.Is(err, devices.ErrPace) {
			return nil, &fatalError{err, devices.Limit}
		}
		return nil, c.explain(ctx, err)
	}
	asking, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(asking, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("OData-Version", "4.0")
	req.Header.Set("User-Agent", "hwsagent")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if set != nil {
		set(req.Header)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, c.explain(ctx, fmt.Errorf("read the answer: %w", err))
	case len(text) > maxBody:
		return nil, errLarge
	}
	return &reply{resp.StatusCode, resp.Header, text}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// slowError means that no answer came in time.
type slowError struct{ limit time.Duration }

func (e *slowError) Error() string {
	return fmt.Sprintf("no answer within %s; request_timeout allows more", e.limit)
}

// explain turns a failed exchange into an error with a remedy. If the whole service is unreachable it is a
// [*fatalError].
func (c *client) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.Canceled) {
			return &fatalError{cause, ""}
		}
		return &fatalError{errors.New("the time of this round is over before all was read: raise interval and timeout"), devices.NoAnswer}
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var timeout interface{ Timeout() bool }
	var op *net.OpError
	dialing := errors.As(err, &op) && op.Op == "dial"
	if errors.As(err, &timeout) && timeout.Timeout() && !dialing {
		return &slowError{c.timeout}
	}
	words, why := hint(c.base.Scheme, err)
	return &fatalError{fmt.Errorf("ask %s: %w%s", c.base.Host, err, words), why}
}
