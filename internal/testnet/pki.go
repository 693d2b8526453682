package testnet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority is a certificate authority for tests.
type authority struct {
	t    testing.TB
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
	Pem  string
	next int64
}

// NewAuthority makes a certificate authority with a new key.
func NewAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, next: 1}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.Cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.Pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// Issue makes a certificate for a client or a server on this machine.
func (a *authority) Issue(name string) (cert, key string) {
	a.t.Helper()
	return a.IssueUntil(name, time.Date(2098, 1, 1, 0, 0, 0, 0, time.UTC))
}

// IssueUntil is Issue with the end of the validity.
func (a *authority) IssueUntil(name string, end time.Time) (cert, key string) {
	a.t.Helper()
	a.next++
	k := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(0, 0), NotAfter: end,
		DNSNames: []string{name, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, k.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// Server returns the TLS configuration of a server that requires a certificate of this
// authority.
func (a *authority) Server() *tls.Config {
	a.t.Helper()
	return a.ServerWith(a.Issue("localhost"))
}

// ServerWith is Server with a certificate issued before.
func (a *authority) ServerWith(cert, key string) *tls.Config {
	a.t.Helper()
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		a.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// WriteFile replaces a file atomically, by a rename.
func WriteFile(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// WriteFiles writes files into a new directory and returns it.
func WriteFiles(t testing.TB, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		WriteFile(t, filepath.Join(dir, name), text)
	}
	return dir
}
