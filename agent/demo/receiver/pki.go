package receiver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is how long the certificates are valid.
const validity = 24 * time.Hour

// PKI is a throw-away certificate authority with the files that a remote_write entry names. Everything is in one
// directory, mode 0600.
type PKI struct {
	// The files: the authority's certificate, the client's certificate and key, and the
	// bearer token.
	CAFile, CertFile, KeyFile, TokenFile string
	// The server's own certificate and key, for a server that reads files.
	ServerCertFile, ServerKeyFile string

	caCert *x509.Certificate
	caKey  *ecdsa.PrivateKey
	server tls.Certificate
}

// NewPKI returns an authority, a server certificate for 127.0.0.1 and localhost, a
// client certificate and a token, and writes them below dir.
func NewPKI(dir string) (*PKI, error) {
	p := &PKI{
		CAFile:   filepath.Join(dir, "ca.pem"),
		CertFile: filepath.Join(dir, "client.pem"), KeyFile: filepath.Join(dir, "client.key"),
		ServerCertFile: filepath.Join(dir, "server.pem"), ServerKeyFile: filepath.Join(dir, "server.key"),
		TokenFile: filepath.Join(dir, "token"),
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make CA key: %w", err)
	}
	template, err := newTemplate("hwsagent demo CA")
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make CA certificate: %w", err)
	}
	if p.caCert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("make CA certificate: %w", err)
	}
	p.caKey = key
	if err := writeSecret(p.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})); err != nil {
		return nil, err
	}
	if err := p.issue("localhost", x509.ExtKeyUsageServerAuth, p.ServerCertFile, p.ServerKeyFile); err != nil {
		return nil, err
	}
	if p.server, err = tls.LoadX509KeyPair(p.ServerCertFile, p.ServerKeyFile); err != nil {
		return nil, fmt.Errorf("load server certificate: %w", err)
	}
	if err := p.RotateClient("hwsagent-1"); err != nil {
		return nil, err
	}
	if _, err := p.RotateToken(); err != nil {
		return nil, err
	}
	return p, nil
}

// RotateClient replaces the client's certificate and key by new ones for the given common name: the certificate first,
// then the key, each by a rename, as tools do. Between the two, the files do not match.
func (p *PKI) RotateClient(commonName string) error {
	return p.issue(commonName, x509.ExtKeyUsageClientAuth, p.CertFile, p.KeyFile)
}

// RotateToken replaces the token file's content and returns the new token.
func (p *PKI) RotateToken() (string, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	token := hex.EncodeToString(b)
	return token, writeSecret(p.TokenFile, []byte(token+"\n"))
}

// ServerTLS returns a server's configuration that demands a client certificate of this
// authority.
func (p *PKI) ServerTLS() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(p.caCert)
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{p.server},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
	}
}

// ClientTLS returns a client's configuration for that server.
func (p *PKI) ClientTLS() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load client certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(p.caCert)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, RootCAs: pool}, nil
}

func (p *PKI) issue(name string, usage x509.ExtKeyUsage, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make key of %s: %w", name, err)
	}
	template, err := newTemplate(name)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	if usage == x509.ExtKeyUsageServerAuth {
		template.DNSNames = []string{"localhost"}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, p.caCert, key.Public(), p.caKey)
	if err != nil {
		return fmt.Errorf("make certificate of %s: %w", name, err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode key of %s: %w", name, err)
	}
	if err := writeSecret(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})); err != nil {
		return err
	}
	return writeSecret(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

func newTemplate(commonName string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(validity),
	}, nil
}

// writeSecret replaces a file by rename, so that no reader sees half of it.
func writeSecret(file string, content []byte) error {
	next := file + ".new"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return fmt.Errorf("write secret: %w", err)
	}
	if err := os.Rename(next, file); err != nil {
		return fmt.Errorf("write secret: %w", err)
	}
	return nil
}
