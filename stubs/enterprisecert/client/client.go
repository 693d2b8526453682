// Package client stands in for github.com/googleapis/enterprise-certificate-proxy/client,
// which Google's libraries ask for a certificate of the machine. They are linked because
// Prometheus' configuration names them for a remote write to Google, which the agent does not
// have; so nothing here is ever called. That one links net/rpc, and that html/template: see
// docs/adr/0027-what-is-linked.md.
package client

import (
	"crypto"
	"errors"
	"io"
)

// ErrCredUnavailable says that there is no certificate.
var ErrCredUnavailable = errors.New("cred is unavailable")

// Key is a certificate's key. There is none.
type Key struct{}

// Cred is where there would be one: always ErrCredUnavailable.
func Cred(string) (*Key, error) { return nil, ErrCredUnavailable }

// CertificateChain is empty.
func (*Key) CertificateChain() [][]byte { return nil }

// Close does nothing.
func (*Key) Close() error { return nil }

// Public is nil.
func (*Key) Public() crypto.PublicKey { return nil }

// Sign fails.
func (*Key) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, ErrCredUnavailable
}
