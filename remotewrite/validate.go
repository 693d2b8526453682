package remotewrite

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"golang.org/x/net/http/httpguts"
)

// Problem is one finding about a remote_write entry.
type Problem struct {
	Path string // dotted, from the entry: "queue_config.max_shards"; "" for the entry as a whole
	Text string // what is wrong and why
	Hint string // what to do; may be ""
}

// Error is path, text and hint in one line.
func (p Problem) Error() string {
	s := p.Text
	if p.Path != "" {
		s = p.Path + ": " + s
	}
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// findings collects problems.
type findings []Problem

func (f *findings) add(path, text string) { *f = append(*f, Problem{Path: path, Text: text}) }

func (f *findings) hint(path, text, hint string) {
	*f = append(*f, Problem{Path: path, Text: text, Hint: hint})
}

// reservedHeaders are those that the protocol or HTTP itself sets. The first block is
// demanded by the specification of remote write, "Protocol".
var reservedHeaders = []string{
	"Content-Encoding", "Content-Type", "X-Prometheus-Remote-Write-Version", "X-Prometheus-Remote-Read-Version", "User-Agent",
	"Retry-Attempt", "Host", "Content-Length", "Connection", "Keep-Alive", "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Expect",
	"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Www-Authenticate", "Accept-Encoding",
	"X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256",
}

// Validate returns everything that is wrong with the entry. It also puts the old
// spellings of authentication (bearer_token, bearer_token_file) where the new ones
// are, and completes the relabelling rules. It does no I/O.
func (c *Config) Validate() []Problem {
	var f findings
	c.validateURL(&f)
	c.validateAuth(&f)
	c.validateHeaders(&f)
	c.validateQueue(&f)
	for i, r := range c.WriteRelabelConfigs {
		path := fmt.Sprintf("write_relabel_configs[%d]", i)
		if r == nil {
			f.add(path, "the rule is empty")
		} else if err := r.Validate(nameValidation); err != nil {
			f.add(path, err.Error())
		}
	}
	switch c.ProtobufMessage {
	case protobufMessageV1:
	case protobufMessageV2:
		f.hint("protobuf_message", "remote write 2.0 is not supported by this build", "remove the key or write "+protobufMessageV1)
	default:
		f.hint("protobuf_message", fmt.Sprintf("unknown message %q", c.ProtobufMessage), "remove the key or write "+protobufMessageV1)
	}
	return f
}

func (c *Config) validateURL(f *findings) {
	u := c.URL.full
	switch {
	case u == nil:
		f.add("url", "missing")
	case u.Scheme != "http" && u.Scheme != "https":
		f.hint("url", fmt.Sprintf("scheme %q is not http or https", u.Scheme), "write it like https://host:port/path")
	case u.Hostname() == "":
		f.hint("url", "has no host", "write it like https://host:port/path")
	case u.Fragment != "":
		f.add("url", "has a fragment (#…), which is never sent")
	}
	if p := c.HTTP.ProxyURL.URL; p != nil && p.String() != "" {
		switch p.Scheme {
		case "http", "https", "socks5", "socks5h":
		default:
			f.add("proxy_url", fmt.Sprintf("scheme %q is not http, https, socks5 or socks5h", p.Scheme))
		}
	}
}

func (c *Config) validateAuth(f *findings) {
	for _, k := range []struct {
		name string
		is   bool
	}{
		{"sigv4", c.SigV4 != nil}, {"azuread", c.AzureAD != nil}, {"google_iam", c.GoogleIAM != nil},
		{"oauth2", c.HTTP.OAuth2 != nil},
	} {
		if k.is {
			f.hint(k.name, "not supported by this build", "use basic_auth, authorization, bearer_token_file or tls_config")
		}
	}
	if c.HTTP.OAuth2 == nil { // else its own demands would be listed too
		if err := c.HTTP.Validate(); err != nil {
			f.add("", err.Error())
		}
	}
	if u := c.URL.full; u != nil && u.User != nil && (c.HTTP.BasicAuth != nil || c.HTTP.Authorization != nil) {
		f.add("url", "has a user in it, and there is another authentication method; at most one is possible")
	}
	if b := c.HTTP.BasicAuth; b != nil {
		refuseRef(f, "basic_auth.username_ref", b.UsernameRef)
		refuseRef(f, "basic_auth.password_ref", b.PasswordRef)
	}
	if a := c.HTTP.Authorization; a != nil {
		refuseRef(f, "authorization.credentials_ref", a.CredentialsRef)
	}
	t := &c.HTTP.TLSConfig
	refuseRef(f, "tls_config.ca_ref", t.CARef)
	refuseRef(f, "tls_config.cert_ref", t.CertRef)
	refuseRef(f, "tls_config.key_ref", t.KeyRef)
	if t.MaxVersion != 0 && t.MaxVersion < t.MinVersion {
		f.add("tls_config.max_version", "is below min_version")
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
		c.validateHeader(f, path, name)
		if canonical := http.CanonicalHeaderKey(name); seen[canonical] {
			f.add(path, "given twice: upper and lower case are the same")
		} else {
			seen[canonical] = true
		}
		if !httpguts.ValidHeaderFieldValue(c.Headers[name]) {
			f.add(path, "the value has a character that HTTP does not allow")
		}
	}
	if c.HTTP.HTTPHeaders != nil {
		for _, name := range slices.Sorted(maps.Keys(c.HTTP.HTTPHeaders.Headers)) {
			c.validateHeader(f, "http_headers."+name, name)
		}
	}
}

func (c *Config) validateHeader(f *findings, path, name string) {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		f.add(path, "not a header name")
	case canonical == "Authorization":
		f.hint(path, "cannot be set here", "use authorization, basic_auth or bearer_token_file")
	case slices.Contains(reservedHeaders, canonical):
		f.add(path, "reserved: the protocol sets it")
	}
}

func (c *Config) validateQueue(f *findings) {
	atLeast := func(path string, n, least int) {
		if n < least {
			f.add(path, fmt.Sprintf("%d is below %d", n, least))
		}
	}
	positive := func(path string, d model.Duration) {
		if d <= 0 {
			f.add(path, "must be more than 0s")
		}
	}
	q := &c.Queue
	atLeast("queue_config.capacity", q.Capacity, 1)
	atLeast("queue_config.max_shards", q.MaxShards, 1)
	atLeast("queue_config.min_shards", q.MinShards, 1)
	atLeast("queue_config.max_samples_per_send", q.MaxSamplesPerSend, 1)
	if q.MaxShards >= 1 && q.MinShards > q.MaxShards { // else the one mistake is told already
		f.add("queue_config.min_shards", fmt.Sprintf("%d is above max_shards, %d", q.MinShards, q.MaxShards))
	}
	positive("queue_config.batch_send_deadline", q.BatchSendDeadline)
	positive("queue_config.min_backoff", q.MinBackoff)
	if q.MaxBackoff < q.MinBackoff {
		f.add("queue_config.max_backoff", fmt.Sprintf("%s is below min_backoff, %s", q.MaxBackoff, q.MinBackoff))
	}
	positive("remote_timeout", c.RemoteTimeout)
	if c.Metadata.Send {
		positive("metadata_config.send_interval", c.Metadata.SendInterval)
		atLeast("metadata_config.max_samples_per_send", c.Metadata.MaxSamplesPerSend, 1)
	}
}

// Warnings returns what is legal and has no effect, or is likely not meant. It
// expects an entry that Validate finds nothing wrong with.
func (c *Config) Warnings() []Problem {
	var f findings
	if c.HTTP.FollowRedirects {
		f.hint("follow_redirects", "has no effect: redirects are never followed, because tokens and data leak that way", "write the final URL")
	}
	if c.FailedRequestLogging {
		f.add("failed_request_logging", "has no effect: it concerns remote write 2.0")
	}
	if c.Queue.MaxShards != DefaultConfig().Queue.MaxShards {
		warnShards(&f, "queue_config.max_shards", c.Queue.MaxShards)
	}
	warnShards(&f, "queue_config.min_shards", c.Queue.MinShards)
	u := c.URL.full
	if u == nil {
		return f
	}
	if u.User != nil {
		f.hint("url", "has a user and password in it", "use basic_auth with password_file")
	}
	if u.Scheme == "http" {
		if c.sendsSecret() && !loopback(u) {
			f.hint("url", "credentials go over plain http and can be read on the way", "use https")
		}
		if t := c.HTTP.TLSConfig; t.CA+t.Cert+t.CAFile+t.CertFile+t.ServerName != "" || t.InsecureSkipVerify || t.MinVersion != 0 || t.MaxVersion != 0 {
			f.hint("tls_config", "has no effect: the URL is plain http", "use https")
		}
	} else if c.HTTP.TLSConfig.InsecureSkipVerify {
		f.hint("tls_config.insecure_skip_verify", "anyone on the way can read and change the data, credentials included", "use ca_file")
	}
	return f
}

// warnShards tells where the queue uses fewer shards than are written.
func warnShards(f *findings, path string, n int) {
	if used := powerOfTwo(min(n, maxShards)); used != n {
		f.hint(path, fmt.Sprintf("%d has the effect of %d: shards come in powers of two, at most %d", n, used, maxShards), "4 carry 80,000 samples a second")
	}
}

func (c *Config) sendsSecret() bool {
	h := &c.HTTP
	if h.HTTPHeaders != nil {
		for _, header := range h.HTTPHeaders.Headers {
			if len(header.Secrets)+len(header.Files) > 0 {
				return true
			}
		}
	}
	return h.BasicAuth != nil || h.Authorization != nil || h.BearerToken != "" || h.BearerTokenFile != "" || c.URL.full.User != nil
}

// loopback reports whether the URL surely means this machine. It does not resolve
// names.
func loopback(u *url.URL) bool {
	host := u.Hostname()
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
