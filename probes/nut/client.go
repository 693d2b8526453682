package nut

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"hwsagent/probes/devices"
)

// Bounds of upsd's answers.
const (
	maxLine    = 16 << 10 // bytes; upsd's own lines have at most 1 KiB
	maxDevices = 1000
	maxVars    = 5000 // of one device; the largest known has about 300
)

// refusal is upsd's answer ERR (RFC 9271, section 4.3): upsd works, but refuses the command.
type refusal struct{ code string }

func (e *refusal) Error() string {
	switch e.code {
	case "DATA-STALE":
		return "DATA-STALE: its driver runs, but hears nothing of the device: look at the cable"
	case "DRIVER-NOT-CONNECTED":
		return "DRIVER-NOT-CONNECTED: its driver does not run: start it (systemctl status nut-driver@NAME) and see what it says"
	case "UNKNOWN-UPS":
		return "UNKNOWN-UPS: upsd has no device of this name: look at ups.conf, or list them by upsc -l"
	case "ACCESS-DENIED":
		return "ACCESS-DENIED: upsd refuses this user or this address: look at upsd.users"
	case "FEATURE-NOT-CONFIGURED":
		return "FEATURE-NOT-CONFIGURED: upsd has no certificate for TLS: set CERTFILE in upsd.conf, or CERTPATH and CERTIDENT if upsd uses NSS as Debian's does; or remove starttls"
	case "FEATURE-NOT-SUPPORTED":
		return "FEATURE-NOT-SUPPORTED: this upsd was built without TLS: remove starttls"
	case "USERNAME-REQUIRED", "PASSWORD-REQUIRED":
		return e.code + ": upsd wants username and password"
	}
	return e.code
}

// ofDevice reports whether err concerns one device only and leaves the connection usable.
func ofDevice(err error) bool {
	var r *refusal
	return errors.As(err, &r) && (r.code == "DATA-STALE" || r.code == "DRIVER-NOT-CONNECTED" || r.code == "UNKNOWN-UPS" || r.code == "ACCESS-DENIED")
}

// errSecret means that the password cannot be read.
var errSecret = errors.New("read password_file")

// reasonOf returns why upsd could not be reached.
func reasonOf(err error) devices.Reason {
	var (
		name    *net.DNSError
		no      *refusal
		timeout net.Error
	)
	switch {
	case errors.Is(err, errSecret):
		return devices.Secret
	case errors.Is(err, devices.ErrPace):
		return devices.Limit
	case errors.As(err, &name):
		return devices.Name
	case errors.As(err, &no) && strings.HasPrefix(no.code, "FEATURE-"), errors.Is(err, errTLS):
		return devices.TLS
	case errors.As(err, &no):
		return devices.Login
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return devices.Refused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return devices.NoAnswer
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return devices.NoRoute
	}
	return devices.Protocol
}

// errTLS means that the connection cannot be encrypted.
var errTLS = errors.New("begin TLS")

// device is a UPS as upsd lists it.
type device struct{ name, description string }

// variable is one of a device's variables.
type variable struct{ name, value string }

// client is one connection.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

// dial connects. The connection ends with ctx; the caller must call done in any case.
func dial(ctx context.Context, address string) (c *client, done func(), err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, func() {}, fmt.Errorf("connect to upsd: %w: no upsd listens there; by default it does on 127.0.0.1 only (LISTEN in upsd.conf)", err)
	} else if err != nil {
		return nil, func() {}, fmt.Errorf("connect to upsd: %w", err)
	}
	if d, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(d)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return &client{conn: conn, in: bufio.NewReaderSize(conn, maxLine)}, func() { stop(); _ = conn.Close() }, err
}

// startTLS encrypts the connection.
func (c *client) startTLS(ctx context.Context, conf *tls.Config) error {
	if err := c.command("STARTTLS"); err != nil {
		return fmt.Errorf("begin TLS: %w", err)
	}
	if c.in.Buffered() > 0 {
		return errors.New("begin TLS: upsd sends more than its answer in clear")
	}
	secure := tls.Client(c.conn, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("%w: %w%s", errTLS, err, remedyOf(err))
	}
	c.conn, c.in = secure, bufio.NewReaderSize(secure, maxLine)
	return nil
}

// remedyOf returns what to do about a handshake that failed, to be appended to its error; "" if the error does not show it.
func remedyOf(err error) string {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &unknown):
		return ": write the file of the CA that signed upsd's certificate in tls_config.ca_file"
	case errors.As(err, &name):
		return ": write the name of the certificate in target, or in tls_config.server_name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return ": issue a new certificate for upsd, or correct the clock of this machine"
	case ofPeer(err):
		return ": if upsd demands a certificate of the agent, set tls_config.cert_file and key_file, from a CA that upsd trusts"
	}
	return ""
}

// ofPeer reports whether upsd ended TLS by an alert. crypto/tls keeps the alert's type to itself.
func ofPeer(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// login sends user and password. upsd answers OK to any; it only checks them for changes.
func (c *client) login(user, password string) error {
	if user == "" {
		return nil
	}
	if err := c.command("USERNAME " + user); err != nil {
		return fmt.Errorf("send username: %w", err)
	}
	if password == "" {
		return nil
	}
	if strings.ContainsAny(password, "\r\n\x00") {
		return errors.New("send password: it has more than one line")
	}
	if err := c.command("PASSWORD " + quote(password)); err != nil {
		return fmt.Errorf("send password: %w", err)
	}
	return nil
}

// logout ends the session in order. upsd does not need it, but logs less with it.
func (c *client) logout() { _, _ = io.WriteString(c.conn, "LOGOUT\n") }

// command sends a command whose answer is one line, OK.
func (c *client) command(text string) error {
	if _, err := io.WriteString(c.conn, text+"\n"); err != nil {
		return err
	}
	words, err := c.line()
	if err == nil && words[0] != "OK" {
		err = fmt.Errorf("upsd answers with the word %q, not OK: is it upsd that listens there?", words[0])
	}
	return err
}

// devices returns all devices of upsd.
func (c *client) devices() ([]device, error) {
	var all []device
	err := c.list("UPS", maxDevices, func(args []string) {
		if len(args) > 0 && plain(args[0]) {
			all = append(all, device{name: args[0], description: strings.Join(args[1:], " ")})
		}
	})
	return all, err
}

// variables returns the variables of a device.
func (c *client) variables(name string) ([]variable, error) {
	var all []variable
	err := c.list("VAR "+name, maxVars, func(args []string) {
		if len(args) == 2 {
			all = append(all, variable{name: args[0], value: args[1]})
		}
	})
	return all, err
}

// list requests a list (RFC 9271, section 4.2.4) and calls each with the words of each line that follow what.
func (c *client) list(what string, limit int, each func([]string)) error {
	if _, err := io.WriteString(c.conn, "LIST "+what+"\n"); err != nil {
		return err
	}
	words, err := c.line()
	if err != nil {
		return err
	}
	prefix := strings.Fields(what)
	if got := strings.Join(words, " "); got != "BEGIN LIST "+what {
		return fmt.Errorf("upsd answers with %.40q, not with a list: is it upsd that listens there?", got)
	}
	for n := 0; ; n++ {
		words, err := c.line()
		switch {
		case err != nil:
			return err
		case strings.Join(words, " ") == "END LIST "+what:
			return nil
		case n == limit:
			return fmt.Errorf("the list %s has more than %d lines", what, limit)
		case len(words) < len(prefix) || strings.Join(words[:len(prefix)], " ") != what:
			return fmt.Errorf("the list %s has a line of something else, that begins with %.40q", what, words[0])
		}
		each(words[len(prefix):])
	}
}

// line reads a line of at least one word; ERR becomes an error.
func (c *client) line() ([]string, error) {
	line, err := c.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("upsd sends a line of more than %d bytes: is it upsd that listens there?", maxLine)
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("upsd closed the connection: %w", io.ErrUnexpectedEOF)
	case ofPeer(err): // with TLS 1.3 the server judges the client's certificate after the client's handshake
		return nil, fmt.Errorf("%w: %w%s", errTLS, err, remedyOf(err))
	case err != nil:
		return nil, err
	}
	words, err := split(string(line))
	switch {
	case err != nil:
		return nil, err
	case len(words) == 0:
		return nil, errors.New("upsd sends an empty line")
	case words[0] == "ERR" && len(words) > 1:
		return nil, &refusal{code: strings.ToValidUTF8(words[1], "\uFFFD")}
	}
	return words, nil
}

// split splits a line into words. A word in quotes may have blanks; a backslash escapes the next character (RFC 9271,
// section 4.1).
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quoted, escaped := false, false, false
	for _, b := range []byte(strings.TrimRight(line, "\r\n")) {
		switch {
		case escaped:
			word.WriteByte(b)
			escaped = false
		case b == '\\':
			escaped, inWord = true, true
		case b == '"':
			quoted, inWord = !quoted, true
		case (b == ' ' || b == '\t') && !quoted:
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteByte(b)
			inWord = true
		}
	}
	if quoted || escaped {
		return nil, errors.New("upsd sends a line with an open quote")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// quote quotes a word for the protocol.
func quote(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}
