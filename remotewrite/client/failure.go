package client

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"

	"hwsagent/remotewrite/config"
)

// Failure is the part of the route to a receiver that an answer blames. It guides people;
// [Classify] decides the outcome of the samples.
type Failure uint8

// The failures. Their names are part of the status JSON.
const (
	NoFailure         Failure = iota
	FileMissing               // a credential file does not exist
	FileForbidden             // the agent may not read a credential file
	FileUnusable              // a credential file has contents that cannot be used, or is no file
	Token                     // the endpoint of oauth2 or of a cloud gave no token
	Proxy                     // the proxy refused, or could not be used
	Handshake                 // TLS: the handshake failed
	ServerCertificate         // TLS: the receiver's certificate could not be verified
	ClientCertificate         // the receiver refuses the client certificate, or requires one
	Credentials               // 401, 403, 407
	ReceiverOff               // 404 of a Prometheus whose receiver is disabled
	Path                      // the URL's path is not a write path: 404, 405, 101
	Scheme                    // http:// to a TLS port, or https:// to a port without TLS
	Page                      // a web page: a portal or a login
	Redirect                  // 3xx
	Refused                   // 400, 409, 422
	Message                   // 415: not this version of remote write
	Busy                      // 429, 5xx
	Network                   // no answer
	ClockSkew                 // this host's clock is wrong, so the receiver refuses the time of a signature
	OtherStatus               // any other unsuccessful status
	numFailures
)

// String returns the failure's name, "" for NoFailure.
func (f Failure) String() string {
	return [numFailures]string{"", "file_missing", "file_forbidden", "file_unusable", "token", "proxy", "handshake", "server_certificate", "client_certificate", "credentials", "receiver_off", "path", "scheme",
		"page", "redirect", "refused", "message", "busy", "network", "clock_skew", "other_status"}[f]
}

// failureOf returns the failure of a request that got no answer, NoFailure for a nil err. It needs the original err:
// redaction turns an error into a text.
func failureOf(err error) Failure {
	var (
		token     *tokenError
		proxy     *proxyError
		through   *throughError
		operation *net.OpError
		verify    *tls.CertificateVerificationError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	case err == nil:
		return NoFailure
	case errors.Is(err, fs.ErrNotExist):
		return FileMissing
	case errors.Is(err, fs.ErrPermission):
		return FileForbidden
	case errors.As(err, &token):
		if token.clock {
			return ClockSkew
		}
		return Token
	case errors.As(err, &proxy), errors.As(err, &through):
		return Proxy
	case errors.Is(err, http.ErrSchemeMismatch):
		return Scheme
	case errors.As(err, &verify):
		return ServerCertificate
	case errors.As(err, &operation) && operation.Op == "remote error" && strings.Contains(operation.Err.Error(), "certificate"):
		return ClientCertificate // the receiver's alert; RFC 8446, section 6.2
	case errors.As(err, &operation) && (operation.Op == "remote error" || operation.Op == "local error"), // an alert, see crypto/tls
		errors.As(err, &invalid), errors.As(err, &record),
		strings.Contains(err.Error(), "tls: "), strings.Contains(err.Error(), "x509: "): // most errors of crypto/tls have no type
		return Handshake
	}
	return Network
}

// failureOfFiles returns the failure of a request that was not sent, because the credentials cannot be used.
func failureOfFiles(err error) Failure {
	if f := failureOf(err); f == FileMissing || f == FileForbidden {
		return f
	}
	return FileUnusable
}

// failureOfStatus returns the failure of an answer with a status; plain is set if it came over http://.
func failureOfStatus(a Answer, plain bool) Failure {
	switch code := a.Status; {
	case a.Page:
		return Page
	case code/100 == 2:
		return NoFailure
	case a.blamesCertificate():
		return ClientCertificate
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired:
		return Credentials
	case code == http.StatusNotFound && strings.Contains(a.Text, receiverWords):
		return ReceiverOff
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code == http.StatusSwitchingProtocols:
		return Path
	case code == http.StatusBadRequest && plain && strings.Contains(strings.ToUpper(a.Text), "HTTPS"): // the words of nginx and Go
		return Scheme
	case code == http.StatusBadRequest, code == http.StatusConflict, code == http.StatusUnprocessableEntity:
		return Refused
	case code/100 == 3:
		return Redirect
	case code == http.StatusUnsupportedMediaType:
		return Message
	case code == http.StatusTooManyRequests, code/100 == 5:
		return Busy
	}
	return OtherStatus
}

// blamesCertificate reports whether the text of a 4xx is about the client certificate, as in nginx's status 400.
func (a Answer) blamesCertificate() bool {
	text := strings.ToLower(a.Text)
	return a.Status/100 == 4 && (strings.Contains(text, "ssl certificate") || strings.Contains(text, "client certificate"))
}

// receiverWords are the words of Prometheus' 404 when its receiver is disabled (web/api/v1, remoteWrite), and
// receiverFlag is the flag that enables it. Prometheus 2.42 names the flag of versions before 2.33 there.
const (
	receiverWords = "remote write receiver needs to be enabled"
	receiverFlag  = "--web.enable-remote-write-receiver"
)

// writePaths lists the write paths of common receivers.
const writePaths = "/api/v1/write (Prometheus, started with --web.enable-remote-write-receiver), " +
	"/api/v1/push (Cortex, Mimir), /api/v1/receive (Thanos)"

// Hint returns a remedy for the failure at the target with that entry; "" if there is none.
func (f Failure) Hint(c *config.Config) string {
	switch f {
	case FileMissing:
		return "create the file; no reload is needed"
	case FileForbidden:
		return "make the agent's user the owner of the file: chown"
	case FileUnusable:
		return "correct the credential files that the error names; no reload is needed"
	case ClockSkew:
		return "set this host's clock, with chrony or systemd-timesyncd: the receiver refuses signatures if the clock is more than 5 minutes wrong"
	case Token:
		if hint := cloudTokenHint(c); hint != "" {
			return hint
		}
		return "look at oauth2: client_id, client_secret_file, scopes, token_url, and its tls_config and proxy_url; changed files need no reload"
	case Proxy:
		return "look at proxy_url, its user, and the rules of the proxy"
	case Handshake:
		return "the receiver may want another version of TLS or another client certificate: look at tls_config (min_version, cert_file, key_file), and at its log"
	case ServerCertificate:
		return serverCertificateHint(c)
	case ReceiverOff:
		return "start that Prometheus with " + receiverFlag
	case ClientCertificate:
		if file := c.HTTP.TLSConfig.CertFile; file != "" {
			return "the receiver refuses " + file + ": it may have expired, or its authority may be unknown to the receiver"
		}
		return "the receiver requires a client certificate: name it in tls_config: cert_file and key_file"
	case Credentials:
		return credentialsHint(c)
	case Path:
		return "change the path of url: to the receiver's write path: " + writePaths
	case Scheme:
		if u := c.URL.Full(); u != nil && u.Scheme == "https" {
			return "the receiver does not speak TLS on this port: use http:// or its TLS port"
		}
		return "use https:// in url:"
	case Page:
		letIn := "give it credentials"
		if files := secretFiles(c); files != "" {
			letIn = "put valid credentials into " + files
		}
		return "a login or a portal answers here: write to the receiver itself, or " + letIn + "; writes go to " + writePaths
	case Redirect:
		return "redirects are not followed, because they leak credentials: write the final URL, if it is your receiver's"
	case Refused:
		return "if the answer is not about samples or about an empty write, change the path of url: to the receiver's write path: " + writePaths
	case Message:
		return "if this receiver accepts only remote write 2.0, write protobuf_message: auto"
	case Busy:
		return "the receiver answers, but accepts no data now; the agent keeps the data and will retry"
	case Network:
		return "look at the receiver's log, and at the proxies and firewalls in front of it"
	}
	return ""
}

// serverCertificateHint returns the remedy for an untrusted certificate of the receiver.
func serverCertificateHint(c *config.Config) string {
	file := cmp.Or(c.HTTP.TLSConfig.CAFile, "tls_config.ca_file")
	return "if the named issuer is the right one, put its certificate into " + file + "; if a name or a date is wrong, change the receiver's certificate, or the name in url:"
}

// credentialsHint returns the remedy if the receiver refuses the credentials, or requires some.
func credentialsHint(c *config.Config) string {
	if hint := cloudRightHint(c); hint != "" {
		return hint
	}
	hint := "the receiver requires credentials: bearer_token_file, basic_auth or tls_config, or a tenant's header (X-Scope-OrgID)"
	if files := secretFiles(c); files != "" {
		hint = "put a valid token, password or certificate into " + files + "; no reload is needed"
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
