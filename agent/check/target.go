package check

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"

	"hwsagent/agent/status"
	"hwsagent/internal/version"
	"hwsagent/remotewrite/client"
	remoteconfig "hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// Limits of the steps before the write, which is bounded by remote_timeout.
const (
	stepTimeout  = 5 * time.Second
	maxClockSkew = 30 * time.Second // beyond it receivers begin to refuse samples
)

// checkTarget tests the whole route to a receiver, step by step: name, connection, TLS, and a write without samples
// through the agent's own client.
func checkTarget(ctx context.Context, t *remoteconfig.Config) []Step {
	var steps []Step
	if t.Target.Tenant != nil && t.Tenant() == "" {
		t = t.ForRest()
	}
	if t.HTTP.ProxyFromEnvironment || t.HTTP.ProxyURL.URL != nil && t.HTTP.ProxyURL.String() != "" {
		steps = append(steps, Step{Name: "route", Result: Skip, Text: "not checked: the proxy resolves the name, connects and verifies the certificate"})
	} else {
		steps = checkRoute(ctx, t)
		if n := len(steps); n > 0 && steps[n-1].Result == Fail {
			return append(steps, Step{Name: "write", Result: Skip, Text: "not tried"})
		}
	}
	if t.Target.Tenant != nil && t.Tenant() == "" {
		return append(steps, Step{Name: "write", Result: Skip, Text: "not tried: there is no default tenant to write for",
			Try: "hwsagent targets test " + queue.Member(t.TargetName(), "TENANT")})
	}
	return append(steps, checkWrite(ctx, t)...)
}

// checkRoute tests the route up to TLS; it stops after the first failed step.
func checkRoute(ctx context.Context, t *remoteconfig.Config) []Step {
	u := t.URL.Full()
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	var steps []Step
	if net.ParseIP(host) == nil {
		s := checkName(ctx, t, host)
		if steps = append(steps, s); s.Result == Fail {
			return steps
		}
	}
	start := time.Now()
	dialer := net.Dialer{Timeout: stepTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		why := client.Explain(t, err)
		return append(steps, Step{Name: "tcp", Result: Fail, Took: time.Since(start), Text: why.Words, Try: why.Remedy})
	}
	defer conn.Close()
	steps = append(steps, Step{Name: "tcp", Result: OK, Took: time.Since(start), Text: "tcp " + status.Span(time.Since(start))})
	if u.Scheme == "https" {
		steps = append(steps, checkTLS(ctx, t, conn, host))
	}
	return steps
}

func checkName(ctx context.Context, t *remoteconfig.Config, host string) Step {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	start := time.Now()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		why := client.Explain(t, err)
		return Step{Name: "dns", Result: Fail, Took: time.Since(start), Text: why.Words, Try: why.Remedy}
	}
	if len(addrs) > 3 {
		addrs = append(addrs[:3:3], "…")
	}
	return Step{Name: "dns", Result: OK, Took: time.Since(start), Text: "dns " + strings.Join(addrs, ", ")}
}

// checkTLS performs the same handshake as the client. Only the write shows whether the receiver accepts a client
// certificate.
func checkTLS(ctx context.Context, t *remoteconfig.Config, conn net.Conn, host string) Step {
	s := Step{Name: "tls", Result: Fail}
	cfg, err := promconfig.NewTLSConfig(&t.HTTP.TLSConfig)
	if err != nil {
		s.Text, s.Try = plainTLS(err), tryFile(err, "look at the files that tls_config names")
		return s
	}
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	asked := false // for a client certificate that is not configured
	if cfg.GetClientCertificate == nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			return &tls.Certificate{}, nil // none
		}
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	start := time.Now()
	c := tls.Client(conn, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		why := client.Explain(t, err)
		s.Took, s.Text, s.Try = time.Since(start), why.Words, why.Remedy
		return s
	}
	s.Took, s.Result = time.Since(start), OK
	state := c.ConnectionState()
	s.Text = tls.VersionName(state.Version)
	if len(state.PeerCertificates) > 0 {
		leaf := state.PeerCertificates[0]
		left := time.Until(leaf.NotAfter)
		s.Text += fmt.Sprintf(", its certificate is valid for %s", days(left))
		if !time.Now().Before((client.Expiry{From: leaf.NotBefore, Until: leaf.NotAfter}).WarnAt()) {
			s.Result, s.Try = Warn, "the receiver's operator must renew its certificate"
		}
	}
	if asked {
		s.Text += ", asks for a client certificate, and none is configured"
	}
	if t.HTTP.TLSConfig.InsecureSkipVerify {
		s.Text += ", not verified (insecure_skip_verify)"
	}
	return s
}

// plainTLS returns an error of crypto/tls without the prefix that the step's name tls repeats.
func plainTLS(err error) string { return strings.TrimPrefix(err.Error(), "tls: ") }

// tryFile returns what to do about a file that cannot be read, and otherwise for any other error.
func tryFile(err error, otherwise string) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "create the file; no reload is needed"
	case errors.Is(err, fs.ErrPermission):
		return "make the agent's user the owner of the file: chown"
	}
	return otherwise
}

// checkWrite sends a write without samples: it stores nothing, and a receiver that accepts it takes data over this
// route with these credentials.
func checkWrite(ctx context.Context, t *remoteconfig.Config) []Step {
	s := Step{Name: "write", Result: Fail}
	sender, err := client.New(t, client.Options{Version: version.Version})
	if err != nil {
		s.Text = err.Error()
		return []Step{s}
	}
	defer sender.Close()
	answer := emptyWrite(ctx, sender)
	if answer.Version == wire.V2 && !answer.Written.Known && answer.Err == nil {
		if older := sender.Send(ctx, client.EmptyRequest(wire.V1)); older.Status/100 == 2 {
			return []Step{checkVersion(t, answer)}
		}
	}
	s.Took, s.Text, s.Try = answer.Took, answer.Why(), answer.Failure.Remedy
	if answer.Err != nil {
		return []Step{s}
	}
	switch answer.Failure.Kind {
	case client.NoFailure:
		s.Result, s.Text = OK, fmt.Sprintf("an empty write is accepted: %d in %s", answer.Status, status.Span(answer.Took))
		if answer.Text != "" { // a receiver has nothing to say here: let people judge
			s.Text += fmt.Sprintf(", with the words %q", cutText(answer.Text, 200))
		}
	case client.Credentials, client.Forbidden, client.ClientCertificate:
		s.Name = "auth"
	case client.Refused:
		// Some receivers refuse a write without samples but accept others.
		s.Result, s.Text = Warn, "an empty write is refused; writes with samples may be accepted: "+answer.String()
	}
	steps := []Step{s}
	if !answer.Date.IsZero() {
		steps = append(steps, checkClock(time.Now().Add(-answer.Took/2).Sub(answer.Date)))
	}
	return steps
}

// emptyWrite sends a write without samples. If the server speaks before it is asked, or refuses while net/http still
// writes, the error may be only that the connection was closed; a further attempt gets the server's words.
func emptyWrite(ctx context.Context, sender *client.Client) client.Answer {
	a := sender.EmptyWrite(ctx)
	for tries := 0; tries < 9 && a.Failure.Kind == client.Cut; tries++ {
		a = sender.EmptyWrite(ctx)
	}
	return a
}

// checkVersion reports that a receiver accepts remote write 1.0 but not 2.0.
func checkVersion(t *remoteconfig.Config, a client.Answer) Step {
	s := Step{Name: "write", Result: OK, Took: a.Took}
	s.Text = fmt.Sprintf("an empty write is accepted as remote write 1.0, so the agent will send 1.0; the answer to 2.0 was %d, without the number of written samples", a.Status)
	if t.ProtobufMessage != "auto" {
		s.Result, s.Try = Warn, "write protobuf_message: auto if the receiver has only 1.0"
	}
	return s
}

// checkClock judges the offset of this host's clock from the receiver's, whose Date header has no fractions of seconds.
func checkClock(skew time.Duration) Step {
	s := Step{Name: "clock", Result: OK, Text: "clocks agree"}
	by := status.Span(skew.Abs().Round(time.Second))
	switch {
	case skew < -time.Second:
		s.Text = fmt.Sprintf("this host's clock is %s behind the receiver's", by)
	case skew > time.Second:
		s.Text = fmt.Sprintf("this host's clock is %s ahead of the receiver's", by)
	}
	if skew.Abs() > maxClockSkew {
		s.Result, s.Try = Warn, "set the clock that is wrong (chrony, systemd-timesyncd), this host's or the receiver's: receivers refuse samples that are too old or in the future"
	}
	return s
}

// cutText shortens a receiver's answer.
func cutText(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}
