package remotewrite

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/config"
	"golang.org/x/net/http/httpguts"
)

// credentials are what a target is shown: tokens, passwords, certificates, as the
// files of its entry hold them at one moment. Immutable.
type credentials struct {
	// http is the entry's transport configuration with the files' contents in place of
	// their names. So a connection never meets a file that is being replaced.
	http config.HTTPClientConfig

	// print tells contents apart.
	print [sha256.Size]byte

	// secrets are cut out of whatever text is shown.
	secrets []string

	// clientEnd and caEnd are when the earliest certificate ends; zero without one.
	clientEnd, caEnd time.Time
}

// CredentialFiles lists the files that the entry names: tokens, passwords, header
// values, certificates, keys.
func (c *Config) CredentialFiles() []string { return credentialFiles(&c.HTTP) }

func credentialFiles(c *config.HTTPClientConfig) []string {
	names := []string{c.TLSConfig.CAFile, c.TLSConfig.CertFile, c.TLSConfig.KeyFile, c.BearerTokenFile}
	if a := c.Authorization; a != nil {
		names = append(names, a.CredentialsFile)
	}
	if b := c.BasicAuth; b != nil {
		names = append(names, b.UsernameFile, b.PasswordFile)
	}
	if c.HTTPHeaders != nil {
		for _, name := range slices.Sorted(maps.Keys(c.HTTPHeaders.Headers)) {
			names = append(names, c.HTTPHeaders.Headers[name].Files...)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// loadCredentials reads all files and checks that they can be used: a token is one
// line and not empty, certificates parse, certificate and key belong together. All
// faults are in the error, none with a secret in it.
func loadCredentials(from *config.HTTPClientConfig) (*credentials, error) {
	c := &credentials{http: *from}
	l := &fileLoader{sum: sha256.New().Sum(nil)}
	c.loadAuth(l, from)
	c.loadHeaders(l, from)
	c.loadTLS(l)
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	c.print = sha256.Sum256(l.sum)
	return c, nil
}

// fileLoader reads files, collects the faults, and sums up what was read.
type fileLoader struct {
	sum  []byte
	errs []error
}

// maxCredential bounds a credential file in bytes: a bundle of certificates is much shorter.
const maxCredential = 4 << 20

// readRegular reads a regular file. Anything else (a pipe that nobody writes to) could keep
// the reader for ever, and with it the end of the program.
func readRegular(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > maxCredential:
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that are allowed", name, info.Size(), maxCredential)
	}
	return os.ReadFile(name)
}

// read returns the file's content without surrounding space.
func (l *fileLoader) read(name string) (string, bool) {
	b, err := readRegular(name)
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("read credentials: %w", err)) // has the name
		return "", false
	}
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		l.errs = append(l.errs, fmt.Errorf("read credentials: %s is empty", name))
		return "", false
	}
	part := sha256.Sum256(b)
	l.sum = append(l.sum, part[:]...)
	return string(b), true
}

// line reads a file whose content goes into a header.
func (l *fileLoader) line(name string) string {
	s, _ := l.read(name)
	if !httpguts.ValidHeaderFieldValue(s) {
		l.errs = append(l.errs, fmt.Errorf("read credentials: %s has more than one line, or control characters", name))
	}
	return s
}

func (c *credentials) loadAuth(l *fileLoader, from *config.HTTPClientConfig) {
	if from.Authorization != nil {
		a := *from.Authorization
		if a.CredentialsFile != "" {
			a.Credentials, a.CredentialsFile = config.Secret(l.line(a.CredentialsFile)), ""
		}
		c.secrets = append(c.secrets, string(a.Credentials))
		c.http.Authorization = &a
	}
	if from.BasicAuth != nil {
		b := *from.BasicAuth
		if b.UsernameFile != "" {
			b.Username, b.UsernameFile = l.line(b.UsernameFile), ""
		}
		if b.PasswordFile != "" {
			b.Password, b.PasswordFile = config.Secret(l.line(b.PasswordFile)), ""
		}
		c.secrets = append(c.secrets, string(b.Password))
		c.http.BasicAuth = &b
	}
}

func (c *credentials) loadHeaders(l *fileLoader, from *config.HTTPClientConfig) {
	if from.HTTPHeaders == nil {
		return
	}
	headers := make(map[string]config.Header, len(from.HTTPHeaders.Headers))
	// In the order of names, so that the sum does not change by itself.
	for _, name := range slices.Sorted(maps.Keys(from.HTTPHeaders.Headers)) {
		h := from.HTTPHeaders.Headers[name]
		secrets := slices.Clone(h.Secrets)
		for _, f := range h.Files {
			secrets = append(secrets, config.Secret(l.line(f)))
		}
		for _, s := range secrets {
			c.secrets = append(c.secrets, string(s))
		}
		headers[name] = config.Header{Values: h.Values, Secrets: secrets}
	}
	c.http.HTTPHeaders = &config.Headers{Headers: headers}
}

func (c *credentials) loadTLS(l *fileLoader) {
	t := &c.http.TLSConfig
	ca, cert, key := "ca", "cert", "key" // what an error calls them
	ok := true
	if t.CAFile != "" {
		ca = t.CAFile
		t.CA, ok = l.read(t.CAFile)
		t.CAFile = ""
	}
	if ok && t.CA != "" {
		ends, err := certificateEnds(t.CA)
		if err != nil {
			l.errs = append(l.errs, fmt.Errorf("read certificates of %s: %w", ca, err))
		} else {
			c.caEnd = slices.MinFunc(ends, time.Time.Compare)
		}
	}
	certOK, keyOK := true, true
	if t.CertFile != "" {
		cert = t.CertFile
		t.Cert, certOK = l.read(t.CertFile)
		t.CertFile = ""
	}
	if t.KeyFile != "" {
		var s string
		key = t.KeyFile
		s, keyOK = l.read(t.KeyFile)
		t.Key, t.KeyFile = config.Secret(s), ""
	}
	if t.Cert == "" || !certOK || !keyOK {
		return
	}
	pair, err := tls.X509KeyPair([]byte(t.Cert), []byte(t.Key))
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("use client certificate %s with key %s: %w", cert, key, err))
		return
	}
	c.clientEnd = pair.Leaf.NotAfter
}

// certificateEnds lists when the certificates of a PEM text end. A text that is cut
// off in the middle of a certificate, as a file is while it is being written, is an
// error, and so is one without any.
func certificateEnds(text string) ([]time.Time, error) {
	var ends []time.Time
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
		ends = append(ends, cert.NotAfter)
	}
	switch {
	case bytes.Contains(rest, []byte("-----BEGIN ")):
		return nil, errors.New("the last certificate is incomplete")
	case len(ends) == 0:
		return nil, errors.New("there is none in it")
	}
	return ends, nil
}
