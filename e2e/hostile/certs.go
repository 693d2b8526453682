package hostile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Certs are certificates of an authority that the sender trusts, and of others.
type Certs struct {
	CA []byte // PEM

	good, expired, future, otherHost, selfSigned, otherCA tls.Certificate
}

// NewCerts creates them for 127.0.0.1.
func NewCerts() (*Certs, error) {
	var c Certs
	now := time.Now()
	ca, err := issue("hostile CA", nil, now.Add(-time.Hour), now.Add(24*time.Hour), "")
	if err != nil {
		return nil, err
	}
	stranger, err := issue("a CA that nobody knows", nil, now.Add(-time.Hour), now.Add(24*time.Hour), "")
	if err != nil {
		return nil, err
	}
	c.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate[0]})
	for _, o := range []struct {
		to          *tls.Certificate
		by          *tls.Certificate
		from, until time.Duration
		host        string
	}{
		{&c.good, ca, -time.Hour, 24 * time.Hour, "127.0.0.1"},
		{&c.expired, ca, -48 * time.Hour, -24 * time.Hour, "127.0.0.1"},
		{&c.future, ca, 24 * time.Hour, 48 * time.Hour, "127.0.0.1"},
		{&c.otherHost, ca, -time.Hour, 24 * time.Hour, "192.0.2.1"},
		{&c.otherCA, stranger, -time.Hour, 24 * time.Hour, "127.0.0.1"},
		{&c.selfSigned, nil, -time.Hour, 24 * time.Hour, "127.0.0.1"},
	} {
		made, err := issue("hostile", o.by, now.Add(o.from), now.Add(o.until), o.host)
		if err != nil {
			return nil, err
		}
		*o.to = *made
	}
	return &c, nil
}

// Config returns the configuration of a normal server with HTTP/1.1 or HTTP/2.
func (c *Certs) Config(http2 bool) *tls.Config {
	conf := &tls.Config{Certificates: []tls.Certificate{c.good}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if http2 {
		conf.NextProtos = []string{"h2"}
	}
	return conf
}

// PEM returns the certificate and the key of a normal server.
func (c *Certs) PEM() (cert, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(c.good.PrivateKey)
	if err != nil {
		return nil, nil, fmt.Errorf("write a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.good.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// issue creates a certificate and its key, signed by another or by itself; without a host it is an authority.
func issue(name string, by *tls.Certificate, from, to time.Time, host string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: to,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if host == "" {
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
	} else {
		template.IPAddresses = []net.IP{net.ParseIP(host)}
	}
	parent, signer := template, any(key)
	if by != nil {
		if parent, err = x509.ParseCertificate(by.Certificate[0]); err != nil {
			return nil, fmt.Errorf("read the authority's certificate: %w", err)
		}
		signer = by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
