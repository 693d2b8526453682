package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Each error becomes words, a remedy and a severity; no Go error text stands alone, and only a refusal of access is called
// one.
func TestExplain(t *testing.T) {
	c := newClient(t, "url: https://r.example:8443/api/v1/push", "", Options{}).entry
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	read := func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} }
	past := &x509.Certificate{NotBefore: time.Unix(0, 0), NotAfter: time.Unix(86400, 0)}
	future := &x509.Certificate{NotBefore: time.Now().Add(time.Hour), NotAfter: time.Now().Add(2 * time.Hour)}
	invalid := func(cert *x509.Certificate) error {
		return &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Cert: cert, Reason: x509.Expired}}
	}
	for _, tc := range []struct {
		err       error
		want      Kind
		permanent bool
		words     string // the beginning
	}{
		{dial(syscall.ECONNREFUSED), ConnectionRefused, false, "connection refused by r.example:8443"},
		{dial(syscall.EHOSTUNREACH), NoRoute, false, "no route to r.example:8443"},
		{dial(syscall.ENETUNREACH), NoRoute, false, "no route to r.example:8443"},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, ConnectTimeout, false, "r.example:8443 does not answer the connection"},
		{fmt.Errorf("%w (30s)", errNoAnswer), Timeout, false, "r.example:8443 gives no answer within remote_timeout (30s)"},
		{context.DeadlineExceeded, Timeout, false, "r.example:8443 gives no answer in time"},
		{&net.DNSError{Err: "no such host", Name: "r.example", IsNotFound: true}, UnknownHost, true, "no such host: DNS has no name r.example"},
		{&net.DNSError{Err: "server misbehaving", Name: "r.example"}, NameServer, false, "DNS gives no answer for r.example: server misbehaving"},
		{read(syscall.ECONNRESET), Cut, false, "r.example:8443 closed the connection without an answer (connection reset)"},
		{io.EOF, Cut, false, "r.example:8443 closed the connection without an answer (end of the stream)"},
		{read(net.ErrClosed), Cut, false, "r.example:8443 closed the connection without an answer (while the request was sent)"},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, SchemePlain, true, "r.example:8443 does not speak TLS"},
		{invalid(past), Expired, true, "the certificate of r.example:8443 has expired: it ended on 1970-01-02 00:00:00 UTC"},
		{invalid(future), NotYetValid, true, "the certificate of r.example:8443 is not valid yet"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, UnknownAuthority, true, "the certificate of r.example:8443 is not trusted"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"a", "b"}}}}, WrongName, true, "the certificate of r.example:8443 is for other names: a, b"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, ClientCertificate, true, "the receiver refuses access: TLS alert: bad certificate"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: protocol version not supported")}, TLSVersion, true, "r.example:8443 speaks only other versions of TLS"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}, Handshake, true, "the TLS handshake with r.example:8443 failed"},
		{&throughError{"http://p:3128", dial(syscall.ECONNREFUSED)}, Proxy, false, "through the proxy http://p:3128: connection refused by p:3128"},
		{&throughError{"http://p:3128", invalid(past)}, Expired, true, "the certificate of r.example:8443 has expired"},
		{&proxyError{proxy: "http://p:3128", status: 407}, Proxy, true, "the proxy http://p:3128 answers 407"},
		{&tokenError{what: "OAuth2 token", place: "https://t.example/token", err: dial(syscall.ECONNREFUSED)}, Token, false, "no access token: get OAuth2 token from https://t.example/token: connection refused by t.example"},
		{&tokenError{what: "OAuth2 token", place: "https://t.example/token", status: 401}, Token, true, "no access token: get OAuth2 token from https://t.example/token: 401 Unauthorized"},
		{errors.New("something new"), Network, false, "no HTTP answer from r.example:8443: something new"},
	} {
		f := Explain(c, tc.err)
		if f.Kind != tc.want || f.Permanent != tc.permanent || !strings.HasPrefix(f.Words, tc.words) || f.Remedy == "" || f.Words == tc.err.Error() && tc.want != Proxy {
			t.Errorf("%v: %+v, want %v, %q", tc.err, f, tc.want, tc.words)
		}
		if refuses := strings.Contains(f.Words, "refuses access"); refuses != (tc.want == ClientCertificate) {
			t.Errorf("%v: words %q", tc.err, f.Words)
		}
	}
}
