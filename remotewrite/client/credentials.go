package client

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	promconfig "github.com/prometheus/common/config"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http/httpproxy"

	"hwsagent/internal/redact"
	"hwsagent/remotewrite/client/cloud"
	"hwsagent/remotewrite/config"
)

// credentials are the tokens, passwords and certificates for a target, as the files of its
// entry contained them at one moment. Immutable.
type credentials struct {
	// http is the entry's transport configuration with the files' contents in place of
	// their names, so that a connection never reads a file that is being replaced.
	http promconfig.HTTPClientConfig

	// print is a checksum of the contents.
	print [sha256.Size]byte

	// header is added to each request; an OAuth2 token comes on top.
	header http.Header

	// secrets are removed from each text that is shown.
	secrets redact.Secrets
	hide    *redact.Secrets // of addresses' paths; may be nil

	// ends has, by the metrics' role, the end of the earliest certificate or token; expiries
	// is the same for people.
	ends     map[string]time.Time
	expiries []Expiry

	// source gets tokens or keys; nil without oauth2 or a cloud.
	source cloud.Source
	signs  bool // source gets keys of Amazon Web Services

	// tokens keeps what source gave; nil without one. It is made when the credentials come into use.
	tokens *tokens
}

// loadCredentials reads all files and checks that they can be used: a token is one
// line and not empty, certificates parse, certificate and key match. The error lists all
// faults without any secret.
func loadCredentials(entry *config.Config, httpConfig *promconfig.HTTPClientConfig) (*credentials, error) {
	from := httpConfig
	c := &credentials{http: *from, ends: map[string]time.Time{}}
	l := &fileLoader{sum: sha256.New().Sum(nil)}
	c.loadAuth(l, from)
	c.loadOAuth2(l, from.OAuth2)
	c.loadHeaders(l, from)
	c.loadTLS(l, &c.http.TLSConfig, "")
	c.hideProxy(&from.ProxyConfig)
	c.loadCloud(l, entry)
	c.header = authHeader(&c.http)
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	c.print = sha256.Sum256(l.sum)
	return c, nil
}

// fileLoader reads files, collects the errors, and keeps a checksum of the contents.
type fileLoader struct {
	sum  []byte
	errs []error
}

// read returns the file's content without what editors add around it, and adds an error to l.errs.
func (l *fileLoader) read(name string) (string, bool) {
	text, err := redact.ReadFile(name)
	switch {
	case err != nil:
		l.errs = append(l.errs, err) // contains the name
		return "", false
	case text == "":
		l.errs = append(l.errs, fmt.Errorf("%s is empty", name))
		return "", false
	}
	l.add(text)
	return text, true
}

// note adds a file that something else reads to the checksum: its content, or that it cannot be read.
func (l *fileLoader) note(name string) {
	text, err := redact.ReadFile(name)
	if err != nil {
		text = err.Error()
	}
	l.add(text)
}

func (l *fileLoader) add(text string) {
	part := sha256.Sum256([]byte(text))
	l.sum = append(l.sum, part[:]...)
}

// line reads a file whose content becomes the value of a header.
func (l *fileLoader) line(name string) string {
	s, _ := l.read(name)
	if !httpguts.ValidHeaderFieldValue(s) {
		l.errs = append(l.errs, fmt.Errorf("%s has more than one line, or control characters", name))
	}
	return s
}

// fill replaces the name of a file, if there is one, with the file's content. It returns false if the file cannot be read.
func fill[T ~string](l *fileLoader, content *T, file *string) bool {
	if *file == "" {
		return true
	}
	s, ok := l.read(*file)
	*content, *file = T(s), ""
	return ok
}

// fillLine is fill for the value of a header.
func fillLine[T ~string](l *fileLoader, content *T, file *string) {
	if *file != "" {
		*content, *file = T(l.line(*file)), ""
	}
}

func (c *credentials) loadAuth(l *fileLoader, from *promconfig.HTTPClientConfig) {
	if from.Authorization != nil {
		a := *from.Authorization
		fillLine(l, &a.Credentials, &a.CredentialsFile)
		c.secrets.Add(string(a.Credentials))
		if e := jwtValidity(string(a.Credentials)); !e.Until.IsZero() {
			e.What = "token"
			c.note("bearer", e)
		}
		c.http.Authorization = &a
	}
	if from.BasicAuth != nil {
		b := *from.BasicAuth
		fillLine(l, &b.Username, &b.UsernameFile)
		fillLine(l, &b.Password, &b.PasswordFile)
		c.secrets.AddBasic(b.Username, string(b.Password))
		c.http.BasicAuth = &b
	}
}

func (c *credentials) loadOAuth2(l *fileLoader, from *promconfig.OAuth2) {
	if from == nil {
		return
	}
	o := *from
	fillLine(l, &o.ClientSecret, &o.ClientSecretFile)
	if o.GrantType == config.GrantJWT {
		key := cmp.Or(o.ClientCertificateKeyFile, "client_certificate_key")
		ok := fill(l, &o.ClientCertificateKey, &o.ClientCertificateKeyFile)
		if err := checkSigningKey(string(o.ClientCertificateKey)); err != nil && ok {
			l.errs = append(l.errs, fmt.Errorf("use the key %s to sign: %w", key, err))
		}
	}
	c.secrets.Add(string(o.ClientCertificateKey))
	c.secrets.AddBasic(o.ClientID, string(o.ClientSecret))
	c.secrets.AddBasic(url.QueryEscape(o.ClientID), url.QueryEscape(string(o.ClientSecret))) // RFC 6749, 2.3.1
	for name, value := range o.EndpointParams {
		if !redact.OpenParameter(name) {
			c.secrets.Add(value)
		}
	}
	if u, err := url.Parse(o.TokenURL); err == nil {
		c.secrets.AddURL(u)
	}
	c.loadTLS(l, &o.TLSConfig, "oauth2_")
	c.hideProxy(&o.ProxyConfig)
	c.http.OAuth2 = &o
	grant, err := newOAuth2Grant(&o)
	if c.source = grant; err != nil {
		l.errs = append(l.errs, fmt.Errorf("oauth2: %w", err))
	}
}

func (c *credentials) hideProxy(p *promconfig.ProxyConfig) {
	if p.ProxyURL.URL != nil {
		c.secrets.AddURL(p.ProxyURL.URL)
	}
	if p.ProxyFromEnvironment {
		env := httpproxy.FromEnvironment()
		for _, s := range []string{env.HTTPProxy, env.HTTPSProxy} {
			if u, err := url.Parse(s); err == nil {
				c.secrets.AddURL(u)
			}
		}
	}
	for _, values := range p.ProxyConnectHeader {
		for _, v := range values {
			c.secrets.Add(string(v))
		}
	}
}

func (c *credentials) loadHeaders(l *fileLoader, from *promconfig.HTTPClientConfig) {
	if from.HTTPHeaders == nil {
		return
	}
	headers := make(map[string]promconfig.Header, len(from.HTTPHeaders.Headers))
	// Sorted by name, so that the checksum is deterministic.
	for _, name := range slices.Sorted(maps.Keys(from.HTTPHeaders.Headers)) {
		h := from.HTTPHeaders.Headers[name]
		secrets := slices.Clone(h.Secrets)
		for _, f := range h.Files {
			secrets = append(secrets, promconfig.Secret(l.line(f)))
		}
		for _, s := range secrets {
			c.secrets.Add(string(s))
		}
		if !redact.OpenHeader(name) {
			c.secrets.Add(h.Values...)
		}
		headers[name] = promconfig.Header{Values: h.Values, Secrets: secrets}
	}
	c.http.HTTPHeaders = &promconfig.Headers{Headers: headers}
}

// loadTLS replaces the file names of a tls_config with the contents. of is the prefix of
// the expiries' roles: "" or "oauth2_".
func (c *credentials) loadTLS(l *fileLoader, t *promconfig.TLSConfig, of string) {
	ca, cert, key := cmp.Or(t.CAFile, "ca"), cmp.Or(t.CertFile, "cert"), cmp.Or(t.KeyFile, "key") // how an error names them
	if fill(l, &t.CA, &t.CAFile) && t.CA != "" {
		certs, err := certificates(t.CA)
		if err != nil {
			l.errs = append(l.errs, fmt.Errorf("read certificates of %s: %w", ca, err))
		} else {
			c.noteCA(of, certs)
		}
	}
	certOK := fill(l, &t.Cert, &t.CertFile)
	keyOK := fill(l, &t.Key, &t.KeyFile)
	c.secrets.Add(string(t.Key))
	if t.Cert == "" || !certOK || !keyOK {
		return
	}
	pair, err := tls.X509KeyPair([]byte(t.Cert), []byte(t.Key))
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("use client certificate %s with key %s: %w", cert, key, err))
		return
	}
	c.note(of+"client", Expiry{What: named(of, "client certificate"), From: pair.Leaf.NotBefore, Until: pair.Leaf.NotAfter})
}

// noteCA records when the certificates of an authority end. The metric shows the earliest end,
// people see the latest: a system's bundle always has some expired ones.
func (c *credentials) noteCA(of string, certs []*x509.Certificate) {
	first, last := slices.MinFunc(certs, endsFirst), slices.MaxFunc(certs, endsFirst)
	c.note(of+"ca", Expiry{What: named(of, "certificate of the authority"), From: last.NotBefore, Until: last.NotAfter})
	c.ends[of+"ca"] = first.NotAfter
}

func (c *credentials) note(role string, e Expiry) {
	c.expiries = append(c.expiries, e)
	c.ends[role] = e.Until
}

func named(of, what string) string {
	if of == "" {
		return what
	}
	return what + " for the token endpoint"
}
