package config

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/config"
	"golang.org/x/net/http/httpguts"

	"hwsagent/internal/loopback"
)

func (c *Config) validateAuth(f *findings) {
	c.validateCloud(f)
	before := len(*f)
	c.validateOAuth2(f)
	if len(*f) == before { // else that mistake is reported already
		if err := c.HTTP.Validate(); err != nil {
			f.add("", err.Error())
		}
	}
	if u := c.URL.full; u != nil && u.User != nil && (c.HTTP.BasicAuth != nil || c.HTTP.Authorization != nil || c.HTTP.OAuth2 != nil) {
		f.add("url", "has a user in it, and there is another authentication method; at most one is possible")
	}
	if b := c.HTTP.BasicAuth; b != nil {
		refuseRef(f, "basic_auth.username_ref", b.UsernameRef)
		refuseRef(f, "basic_auth.password_ref", b.PasswordRef)
	}
	if a := c.HTTP.Authorization; a != nil {
		refuseRef(f, "authorization.credentials_ref", a.CredentialsRef)
	}
	validateTLS(f, "tls_config", &c.HTTP.TLSConfig)
	validateProxy(f, "proxy_url", &c.HTTP.ProxyConfig)
}

func (c *Config) validateOAuth2(f *findings) {
	o := c.HTTP.OAuth2
	if o == nil {
		return
	}
	if o.ClientID == "" {
		f.add("oauth2.client_id", "missing")
	}
	switch u, err := url.Parse(o.TokenURL); {
	case o.TokenURL == "":
		f.add("oauth2.token_url", "missing")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "":
		f.hint("oauth2.token_url", "not an address to ask for a token", "write it like https://host:port/path")
	}
	if o.GrantType == GrantJWT {
		if o.ClientCertificateKey == "" && o.ClientCertificateKeyFile == "" {
			f.hint("oauth2.client_certificate_key_file", "missing: this grant_type signs with it", "name a file with an RSA key in PEM")
		}
	} else if _, twice := o.EndpointParams["scope"]; twice && len(o.Scopes) > 0 {
		f.hint("oauth2.endpoint_params.scope", "is already in scopes", "remove one of them")
	}
	refuseRef(f, "oauth2.client_secret_ref", o.ClientSecretRef)
	refuseRef(f, "oauth2.client_certificate_key_ref", o.ClientCertificateKeyRef)
	validateTLS(f, "oauth2.tls_config", &o.TLSConfig)
	validateProxy(f, "oauth2.proxy_url", &o.ProxyConfig)
}

func validateTLS(f *findings, path string, t *config.TLSConfig) {
	refuseRef(f, path+".ca_ref", t.CARef)
	refuseRef(f, path+".cert_ref", t.CertRef)
	refuseRef(f, path+".key_ref", t.KeyRef)
	if t.MaxVersion != 0 && t.MaxVersion < t.MinVersion {
		f.add(path+".max_version", "is below min_version")
	}
}

func validateProxy(f *findings, path string, p *config.ProxyConfig) {
	u := p.ProxyURL.URL
	if u == nil || u.String() == "" {
		return
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		if u.Hostname() == "" {
			f.hint(path, "has no host", "write it like http://host:port")
		}
	default:
		f.add(path, fmt.Sprintf("scheme %q is not http, https, socks5 or socks5h", u.Scheme))
	}
}

func refuseRef(f *findings, path, ref string) {
	if ref != "" {
		f.hint(path, "secret managers are not supported by this build", "use a file")
	}
}

func (c *Config) validateHeaders(f *findings) {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		path := "headers." + name
		validateHeader(f, path, name)
		if canonical := http.CanonicalHeaderKey(name); seen[canonical] {
			f.add(path, "given twice: upper and lower case are the same")
		} else {
			seen[canonical] = true
		}
		validateValue(f, path, c.Headers[name])
	}
	if c.HTTP.HTTPHeaders == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.HTTP.HTTPHeaders.Headers)) {
		path := "http_headers." + name
		validateHeader(f, path, name)
		h := c.HTTP.HTTPHeaders.Headers[name]
		if len(h.Values)+len(h.Secrets)+len(h.Files) == 0 {
			f.hint(path, "has no value", "give it values, secrets or files")
		}
		for i, v := range h.Values {
			validateValue(f, fmt.Sprintf("%s.values[%d]", path, i), v)
		}
		for i, v := range h.Secrets {
			validateValue(f, fmt.Sprintf("%s.secrets[%d]", path, i), string(v))
		}
	}
}

func validateValue(f *findings, path, value string) {
	if !httpguts.ValidHeaderFieldValue(value) {
		f.add(path, "the value has a character that HTTP does not allow")
	}
}

func validateHeader(f *findings, path, name string) {
	if !httpguts.ValidHeaderFieldName(name) {
		f.add(path, "not a header name")
	} else if why, try := reserved(http.CanonicalHeaderKey(name)); why != "" {
		f.hint(path, why, try)
	}
}

// reserved returns why a header cannot be set, and the alternative; "" if it can.
func reserved(canonical string) (why, try string) {
	switch canonical {
	case "Authorization":
		return "cannot be set here", "use authorization, basic_auth, oauth2 or bearer_token_file"
	case "Content-Encoding", "Content-Type", "X-Prometheus-Remote-Write-Version", "User-Agent", "Retry-Attempt":
		// Remote write 1.0 and 2.0, "Protocol".
		return "reserved: the protocol sets it", ""
	case "X-Prometheus-Remote-Read-Version", "X-Prometheus-Scrape-Timeout-Seconds":
		return "reserved: it belongs to another protocol of Prometheus", ""
	case "Host":
		return "reserved: the protocol sets it", "it is the host of url"
	case "Content-Length", "Connection", "Keep-Alive", "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Expect", "Accept-Encoding", "Www-Authenticate":
		return "reserved: HTTP itself sets it", "" // RFC 9110, 7.6.1
	case "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection":
		return "reserved: it is between agent and proxy", "write the user into proxy_url, or use proxy_connect_header"
	case "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256":
		return "reserved: it is part of a signature", "use sigv4"
	}
	return "", ""
}

// warnAuth warns of secrets that others can read. The URL is not nil.
func (c *Config) warnAuth(f *findings) {
	u := c.URL.full
	if u.User != nil {
		f.hint("url", "has a user and password in it", "use basic_auth with password_file")
	}
	if u.Scheme == "http" {
		if c.sendsSecret() && !loopback.Host(u.Hostname()) {
			f.hint("url", "credentials go over plain http and can be read on the way", "use https")
		}
		if t := c.HTTP.TLSConfig; t.CA+t.Cert+t.CAFile+t.CertFile+t.ServerName != "" || t.InsecureSkipVerify || t.MinVersion != 0 || t.MaxVersion != 0 {
			f.hint("tls_config", "has no effect: the URL is plain http", "use https")
		}
		if p := c.HTTP.ProxyURL.URL; p != nil && strings.HasPrefix(p.Scheme, "http") && c.Target.OnRefusal == RefusalDrop {
			f.hint("proxy_url", "a refusal by the proxy looks like one by the receiver, and on_refusal: drop drops samples for it: the URL is plain http", "use https, or on_refusal: hold")
		}
	} else if c.HTTP.TLSConfig.InsecureSkipVerify {
		f.hint("tls_config.insecure_skip_verify", "anyone on the way can read and change the data, credentials included", "use ca_file")
	}
	o := c.HTTP.OAuth2
	if o == nil {
		return
	}
	if t, err := url.Parse(o.TokenURL); err == nil && t.Scheme == "http" && !loopback.Host(t.Hostname()) {
		f.hint("oauth2.token_url", "secret and token go over plain http and can be read on the way", "use https")
	}
	if o.TLSConfig.InsecureSkipVerify {
		f.hint("oauth2.tls_config.insecure_skip_verify", "anyone on the way can read secret and token", "use ca_file")
	}
	if o.GrantType != "" && o.GrantType != grantClient && o.GrantType != GrantJWT {
		f.hint("oauth2.grant_type", fmt.Sprintf("%q has the effect of %s", o.GrantType, grantClient), "write "+grantClient+" or "+GrantJWT+"; endpoint_params may have another grant_type")
	}
}

// sendsSecret reports whether requests carry a credential: by an authentication method, or in a header.
func (c *Config) sendsSecret() bool {
	if c.HTTP.HTTPHeaders != nil {
		for _, header := range c.HTTP.HTTPHeaders.Headers {
			if len(header.Secrets)+len(header.Files) > 0 {
				return true
			}
		}
	}
	return len(c.authMethods()) > 0
}

// The grants that can be configured: with a secret (RFC 6749, 4.4), or with a signed assertion
// (RFC 7523, 2.1).
const (
	grantClient = "client_credentials"
	GrantJWT    = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)
