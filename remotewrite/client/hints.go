package client

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"

	"hwsagent/remotewrite/config"
)

// site is what the words of a failure name: the entry of the target and where it sends.
type site struct {
	entry              *config.Config
	scheme, addr, host string
}

func siteOf(c *config.Config) site {
	s := site{entry: c, addr: "the receiver", host: "the receiver"}
	if u := c.URL.Full(); u != nil && u.Host != "" {
		port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		s.scheme, s.host, s.addr = u.Scheme, u.Hostname(), net.JoinHostPort(u.Hostname(), port)
	}
	return s
}

// failure fills in the row of a kind.
func (s site) failure(k Kind, detail string) Failure {
	r := k.row()
	_, port, _ := net.SplitHostPort(s.addr) // "" for the zero site
	fill := strings.NewReplacer("{addr}", s.addr, "{host}", s.host, "{port}", port, "{detail}", detail, "{paths}", writePaths)
	words := strings.TrimSuffix(strings.TrimSpace(fill.Replace(r.words)), ":")
	return Failure{Kind: k, Words: words, Remedy: fill.Replace(strings.ReplaceAll(r.remedy, "{try}", s.try(k))), Permanent: r.permanent}
}

// try returns the part of a remedy that depends on the entry.
func (s site) try(k Kind) string {
	c := s.entry
	switch k {
	case Token:
		return cmp.Or(cloudTokenHint(c), "look at oauth2: client_id, client_secret_file, scopes, token_url, and its tls_config and proxy_url; changed files need no reload")
	case Cut:
		const look = "look at the receiver's log, and at the proxies and firewalls in front of it"
		if s.scheme == "https" && !c.HTTP.EnableHTTP2 {
			return look + "; if it speaks HTTP/2 only, write enable_http2: true"
		}
		return look
	case UnknownAuthority:
		file := cmp.Or(c.HTTP.TLSConfig.CAFile, "the file of tls_config.ca_file")
		return "if the named issuer is the right one, put its certificate into " + file
	case WrongName:
		return "write a name of the certificate into url:, or into tls_config.server_name; a certificate without such names needs a subject alternative name (SAN)"
	case ClientCertificate:
		if file := c.HTTP.TLSConfig.CertFile; file != "" {
			return "renew " + file + ": it may have expired, or its authority may be unknown to the receiver; no reload is needed"
		}
		return "the receiver requires a client certificate: name it in tls_config: cert_file and key_file"
	case Credentials:
		return credentialsHint(c)
	case Forbidden:
		return credentialsHint(c) + "; it may also lack the right to write, or be of another tenant"
	case Page:
		letIn := "give it credentials"
		if files := secretFiles(c); files != "" {
			letIn = "put valid credentials into " + files
		}
		return "a login or a portal answers here: write to the receiver itself, or " + letIn + "; writes go to " + writePaths
	}
	return ""
}

// credentialsHint returns the remedy if the receiver refuses the credentials, or requires some.
func credentialsHint(c *config.Config) string {
	if hint := cloudRightHint(c); hint != "" {
		return hint
	}
	hint := "the receiver requires credentials: bearer_token_file, basic_auth or tls_config, or a tenant's header (X-Scope-OrgID)"
	if files := secretFiles(c); files != "" {
		what := "valid credentials"
		if a := c.HTTP.Authorization; a != nil && files == a.CredentialsFile {
			what = "a valid token"
		} else if b := c.HTTP.BasicAuth; b != nil && files == b.PasswordFile {
			what = "a valid password"
		}
		hint = "put " + what + " into " + files + "; no reload is needed"
	}
	if u := c.URL.Full(); u != nil && u.Scheme == "http" && (c.HTTP.ProxyFromEnvironment || c.HTTP.ProxyURL.URL != nil && c.HTTP.ProxyURL.String() != "") {
		hint += "; or the proxy refuses, whose answers to http:// look like the receiver's: look at the rules of the proxy"
	}
	return hint
}

// secretFiles lists the entry's credential files except the CA file.
func secretFiles(c *config.Config) string {
	files := slices.DeleteFunc(c.CredentialFiles(), func(file string) bool { return file == c.HTTP.TLSConfig.CAFile })
	return strings.Join(files, ", ")
}

// maxShownNames bounds how many names of a certificate are shown.
const maxShownNames = 5

// namesOf lists the names of a certificate by which clients may call its owner.
func namesOf(c *x509.Certificate) string {
	if c == nil {
		return "none are known"
	}
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "it has none (a common name does not count)"
	}
	if len(names) > maxShownNames {
		names = append(names[:maxShownNames], fmt.Sprintf("and %d more", len(names)-maxShownNames))
	}
	return plain([]byte(strings.Join(names, ", ")))
}
