package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/reply"
)

// Failure says for people why a request failed and how to repair that. [Judge] decides the fate of the samples. It is a
// value: later readers show it, and parse no text again. The zero Failure means success.
type Failure struct {
	Kind      Kind
	Words     string // what happened, in one line without secrets
	Remedy    string // what to do
	Permanent bool   // waiting cannot help: a person must act
}

// Explain returns the failure of a request to the target with that entry that got no answer, the zero value for a nil
// err. It is pure. The words may contain err's text, so err must have no secrets.
func Explain(c *config.Config, err error) Failure {
	if err == nil {
		return Failure{}
	}
	return explain(c, err, err.Error())
}

// WaitsForClock returns the failure of a target whose samples wait for its clock.
func WaitsForClock(words string) Failure { return siteOf(&config.Config{}).failure(AwaitsClock, words) }

// explain is Explain for an error whose text without secrets is shown: redaction turns an error into a text, and the kind
// needs the error's type.
func explain(c *config.Config, err error, shown string) Failure {
	s := siteOf(c)
	if p, ok := errors.AsType[*proxyError](err); ok {
		f := s.failure(Proxy, shown)
		f.Permanent = lasts(p.status)
		return f
	}
	if t, ok := errors.AsType[*tokenError](err); ok {
		return s.noToken(t, shown)
	}
	k, detail := kindOf(err, shown)
	if p, ok := errors.AsType[*throughError](err); ok {
		scheme, address, _ := strings.Cut(p.proxy, "://")
		if k >= SchemeTLS && k <= Handshake && scheme != "https" {
			return s.failure(k, detail) // TLS is the receiver's: the proxy has none
		}
		s.addr = address // the agent connects to the proxy
		inner := s.failure(k, detail)
		f := s.failure(Proxy, "through the proxy "+p.proxy+": "+inner.Words)
		f.Permanent = inner.Permanent
		return f
	}
	return s.failure(k, detail)
}

// noToken returns the failure of a request that was not sent for want of a token.
func (s site) noToken(t *tokenError, shown string) Failure {
	if t.clock {
		return s.failure(ClockSkew, shown)
	}
	if u, err := url.Parse(t.place); t.err != nil && err == nil && u.Host != "" { // the endpoint did not answer
		s.addr, s.host = u.Host, u.Hostname()
		inner := s.failure(kindOf(t.err, t.err.Error()))
		f := s.failure(Token, "get "+t.what+" from "+t.place+": "+inner.Words)
		f.Permanent = inner.Permanent
		return f
	}
	f := s.failure(Token, shown)
	f.Permanent = blocks(t)
	return f
}

// ofFiles returns the failure of a request that was not sent, because the credentials cannot be used.
func ofFiles(c *config.Config, err error, shown string) Failure {
	k := FileUnusable
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k = FileMissing
	case errors.Is(err, fs.ErrPermission):
		k = FileForbidden
	}
	return siteOf(c).failure(k, shown)
}

// kindOf returns the kind of an error, and its detail.
func kindOf(err error, shown string) (Kind, string) {
	if dns, ok := errors.AsType[*net.DNSError](err); ok { // first: it may wrap the failure of the way to the DNS server
		if dns.IsNotFound {
			return UnknownHost, ""
		}
		return NameServer, dns.Err
	}
	if k, detail := tlsKind(err); k != NoFailure {
		return k, detail
	}
	operation, _ := errors.AsType[*net.OpError](err)
	dialing := operation != nil && operation.Op == "dial"
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !dialing:
		return FileMissing, shown
	case errors.Is(err, fs.ErrPermission) && !dialing:
		return FileForbidden, shown
	case errors.Is(err, http.ErrSchemeMismatch):
		return SchemePlain, ""
	case errors.Is(err, syscall.ECONNREFUSED):
		return ConnectionRefused, ""
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN), errors.Is(err, syscall.ENETDOWN):
		return NoRoute, ""
	case errors.Is(err, errNoAnswer):
		return Timeout, shown
	case dialing && operation.Timeout():
		return ConnectTimeout, ""
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isNet && timeout.Timeout():
		return Timeout, "no answer in time"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNABORTED):
		return Cut, "connection reset"
	case errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return Cut, "while the request was sent"
	case errors.Is(err, errRedirect):
		return Redirect, shown
	case errors.Is(err, errEndsEach):
		return Cut, shown
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Cut, "end of the stream"
	// Two errors of net/http have no type, and no text for people.
	case strings.Contains(err.Error(), "server closed idle connection"):
		return Cut, "before the request was sent"
	case strings.Contains(err.Error(), "readLoopPeekFailLocked"):
		return Network, "malformed HTTP: it sends before it is asked"
	}
	return Network, shown
}

// tlsKind returns the kind of an error of TLS, and its detail; NoFailure for another error.
func tlsKind(err error) (Kind, string) {
	certificate := certificateText(err)
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return WrongName, namesOf(wrong.Certificate)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return UnknownAuthority, certificate
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return invalidKind(invalid, certificate)
	}
	if verify, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return ServerCertificate, strings.TrimPrefix(verify.Err.Error(), "x509: ") + "; " + certificate
	}
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return SchemePlain, record.Msg
	}
	operation, _ := errors.AsType[*net.OpError](err)
	if operation == nil || operation.Op != "remote error" && operation.Op != "local error" { // an alert, see crypto/tls
		if strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: ") { // most errors of crypto/tls have no type
			return Handshake, plainTLS(err)
		}
		return NoFailure, ""
	}
	said := strings.TrimPrefix(operation.Err.Error(), "tls: ")
	switch {
	case operation.Op == "remote error" && strings.Contains(said, "certificate"): // RFC 8446, section 6.2
		return ClientCertificate, "TLS alert: " + said
	case strings.Contains(said, "protocol version"):
		return TLSVersion, "TLS alert: " + said
	}
	return Handshake, "TLS alert: " + said
}

// invalidKind returns the kind of a certificate that is invalid by itself.
func invalidKind(invalid x509.CertificateInvalidError, certificate string) (Kind, string) {
	if invalid.Reason != x509.Expired {
		return ServerCertificate, strings.TrimPrefix(invalid.Error(), "x509: ") + "; " + certificate
	}
	if c := invalid.Cert; c != nil && time.Now().Before(c.NotBefore) {
		return NotYetValid, "it begins on " + c.NotBefore.UTC().Format(certificateDate) + "; " + certificate
	}
	if c := invalid.Cert; c != nil {
		return Expired, "it ended on " + c.NotAfter.UTC().Format(certificateDate) + "; " + certificate
	}
	return Expired, certificate
}

// plainTLS returns the text of an error of crypto/tls without its prefix.
func plainTLS(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, "tls: "); at >= 0 {
		text = text[at+len("tls: "):]
	}
	return text
}

const certificateDate = "2006-01-02 15:04:05 UTC"

// ofAnswer returns the failure of an answer with a status, the zero value for a success.
func ofAnswer(c *config.Config, a Answer) Failure {
	k := kindOfStatus(a, siteOf(c).scheme == "http")
	if k == NoFailure {
		return Failure{}
	}
	return siteOf(c).failure(k, a.String())
}

// kindOfStatus returns the kind of an answer with a status; plain is set if it came over http://.
func kindOfStatus(a Answer, plain bool) Kind {
	switch code := a.Status; {
	case a.Page:
		return Page
	case code/100 == 2:
		return NoFailure
	case a.blamesCertificate():
		return ClientCertificate
	case code == http.StatusForbidden:
		return Forbidden
	case code == http.StatusProxyAuthRequired:
		return Proxy
	case code == http.StatusUnauthorized:
		return Credentials
	case code == http.StatusNotFound && strings.Contains(a.Text, receiverWords):
		return ReceiverOff
	case code == http.StatusNotFound:
		return Path
	case code == http.StatusMethodNotAllowed, code == http.StatusSwitchingProtocols:
		return Method
	case code == http.StatusBadRequest && plain && strings.Contains(strings.ToUpper(a.Text), "HTTPS"): // the words of nginx and Go
		return SchemeTLS
	case code == http.StatusBadRequest, code == http.StatusConflict, code == http.StatusUnprocessableEntity:
		return Refused
	case code/100 == 3:
		return Redirect
	case code == http.StatusRequestEntityTooLarge:
		return TooLarge
	case code == http.StatusUnsupportedMediaType:
		return Message
	case code == http.StatusTooManyRequests:
		if a.said() == reply.SeriesLimit {
			return SeriesLimit
		}
		return RateLimit
	case code == http.StatusServiceUnavailable:
		return Unavailable
	case code == http.StatusBadGateway, code == http.StatusGatewayTimeout:
		return Gateway
	case code/100 == 5:
		return ServerError
	}
	return OtherStatus
}

// blamesCertificate reports whether the text of a 4xx is about the client certificate, as in nginx's status 400.
func (a Answer) blamesCertificate() bool {
	text := strings.ToLower(a.Text)
	return a.Status/100 == 4 && (strings.Contains(text, "ssl certificate") || strings.Contains(text, "client certificate"))
}
