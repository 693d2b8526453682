package client

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"time"
)

// Expiry is the validity of a certificate or token on which access to a target depends.
type Expiry struct {
	What    string    // for people: "client certificate"
	From    time.Time // when it began; zero if unknown
	Until   time.Time // when it ends
	Renewed bool      // the agent gets a new one by itself
}

// warnBefore is the longest time between a warning and the end. Certificates and tokens that live
// less than ten times as long are renewed by a program, so the warning waits until a tenth of the life is
// left.
const warnBefore = 14 * 24 * time.Hour

// WarnAt returns when to warn: two weeks before the end, or when a tenth of the life is left if that
// is later. It is zero if the agent renews the certificate or token.
func (e Expiry) WarnAt() time.Time {
	switch life := e.Until.Sub(e.From); {
	case e.Renewed:
		return time.Time{}
	case e.From.IsZero() || life <= 0:
		return e.Until.Add(-warnBefore)
	default:
		return e.Until.Add(-min(warnBefore, life/10))
	}
}

// ExpiryOf returns when the content of a credential file ends: the earliest end of its certificates,
// or the unverified claim of a JSON web token. ok is false if it has no known end.
func ExpiryOf(content []byte) (e Expiry, ok bool) {
	if certs, err := certificates(string(content)); err == nil {
		first := slices.MinFunc(certs, endsFirst)
		return Expiry{What: "certificate", From: first.NotBefore, Until: first.NotAfter}, true
	}
	e = jwtValidity(strings.TrimSpace(string(content)))
	e.What = "token"
	return e, !e.Until.IsZero()
}

// jwtValidity returns the validity that a JSON web token claims (RFC 7519, 4.1.4 to 4.1.6); the zero
// Expiry for any other text. From is zero if the token has only an end.
func jwtValidity(text string) (e Expiry) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return e
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Exp float64 `json:"exp"`
		Iat float64 `json:"iat"`
		Nbf float64 `json:"nbf"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 || claims.Exp > 1e12 {
		return e
	}
	e.Until = time.Unix(int64(claims.Exp), 0)
	if from := max(claims.Iat, claims.Nbf); from > 0 && from < claims.Exp {
		e.From = time.Unix(int64(from), 0)
	}
	return e
}

// certificates parses a PEM text. A text cut off in the middle of a certificate, as in
// a file that is being written, is an error, and so is a text without any certificate.
func certificates(text string) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	rest := []byte(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, cert)
	}
	switch {
	case bytes.Contains(rest, []byte("-----BEGIN ")):
		return nil, errors.New("the last certificate is incomplete")
	case len(certs) == 0:
		return nil, errors.New("there is none in it")
	}
	return certs, nil
}

func endsFirst(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }

// tlsValidity returns the certificate that ends first in the chain that lasts longest, or the
// server's own if none was verified; nil without any. Trust in the server ends with it.
func tlsValidity(shown []*x509.Certificate, chains [][]*x509.Certificate) *x509.Certificate {
	var last *x509.Certificate
	for _, chain := range chains {
		if first := slices.MinFunc(chain, endsFirst); last == nil || first.NotAfter.After(last.NotAfter) {
			last = first
		}
	}
	if last == nil && len(shown) > 0 {
		return shown[0]
	}
	return last
}

// Expiries returns the ends of the certificates and tokens in use, and of the receiver's certificate
// once a connection has shown it.
func (c *Client) Expiries() []Expiry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return nil
	}
	all := slices.Clone(c.current.creds.expiries)
	if t := c.current.creds.tokens; t != nil {
		if e, ok := t.expiry(); ok {
			all = append(all, e)
		}
	}
	if cert := c.server.Load(); cert != nil {
		all = append(all, Expiry{What: "receiver's certificate", From: cert.NotBefore, Until: cert.NotAfter})
	}
	return all
}

// noteServer records the certificate on which trust in the receiver depends.
func (c *Client) noteServer(s *tls.ConnectionState) {
	if s == nil {
		return
	}
	cert := tlsValidity(s.PeerCertificates, s.VerifiedChains)
	if old := c.server.Load(); cert != nil && (old == nil || !cert.Equal(old)) {
		c.server.Store(cert)
		c.opts.Metrics.SetExpiry("server", cert.NotAfter)
	}
}

// CredentialsRenewed returns when the initial credentials were last replaced by new contents of files;
// zero if they were not.
func (c *Client) CredentialsRenewed() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewed
}
