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

// Expiry is when something ends that a target lets the agent in by.
type Expiry struct {
	What    string    // for people: "client certificate"
	From    time.Time // when it began; zero if that is not known
	Until   time.Time // when it ends
	Renewed bool      // the agent gets a new one by itself
}

// The longest time before its end that somebody is told. What lives shorter than ten times
// that is replaced by a program, which has until a tenth of its life is left.
const warnBefore = 14 * 24 * time.Hour

// WarnAt is when somebody should be told: two weeks before the end, or when a tenth of its
// life is left if that is later. Zero for what the agent renews.
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

// ExpiryOf is when the content of a credential file ends: the earliest of its certificates,
// or a JSON web token by its own word, which is not verified. False if it has no end.
func ExpiryOf(content []byte) (Expiry, bool) {
	if certs, err := certificates(string(content)); err == nil {
		first := slices.MinFunc(certs, endsFirst)
		return Expiry{What: "certificate", From: first.NotBefore, Until: first.NotAfter}, true
	}
	e := jwtValidity(strings.TrimSpace(string(content)))
	e.What = "token"
	return e, !e.Until.IsZero()
}

// jwtValidity is what a JSON web token says of its time (RFC 7519, 4.1.4 to 4.1.6). Zero
// for anything else; From is zero if it says the end alone.
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

// certificates parses a PEM text. A text that is cut off in the middle of a certificate, as
// a file is while it is being written, is an error, and so is one without any.
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

// tlsValidity is when the earliest certificate ends that a server is believed by: of the
// chain that lasts longest, or its own where nothing was verified. Nil without any.
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

// Expiries tells what ends, and when: certificates and tokens that are in use, and the
// receiver's certificate once it was seen.
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

// noteServer notes the certificate by which the receiver is believed.
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
