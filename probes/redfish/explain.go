package redfish

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"

	"hwsagent/probes/devices"
)

// hint returns the remedy for a failed exchange, "" if none is known, and the reason in a word.
func hint(scheme string, err error) (string, devices.Reason) {
	var unverified *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var pinned *fingerprintError
	var unknown *net.DNSError
	var timeout interface{ Timeout() bool }
	text := err.Error()
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case errors.As(err, &unknown):
		return ": the name has no address; write another name, or an address", devices.Name
	case errors.As(err, &unverified):
		return ": " + ofCertificate(unverified), devices.TLS
	case errors.As(err, &pinned):
		return ": if the certificate was replaced on purpose, write the new fingerprint", devices.TLS
	case errors.As(err, &plain):
		return ": it does not speak TLS at this port; write another port, or http:// if the way there is safe", devices.TLS
	case has("protocol version", "handshake failure", "unsupported protocol", "no cipher suite", "unsupported curve", "selected unsupported"):
		return ": it does not speak TLS 1.2 with present ciphers, like controllers of about 2012; update its firmware, or write old_tls: true and isolate its network", devices.TLS
	case has("insecure algorithm", "unsupported key size", "negative serial number"):
		return ": its certificate is of a form that is not accepted today; make it issue a new one", devices.TLS
	case has("tls: ", "x509: "):
		return "", devices.TLS
	case has("malformed HTTP"):
		if scheme == "http" {
			return ": it may speak TLS at this port; write https://", devices.Protocol
		}
		return "", devices.Protocol
	case errors.Is(err, syscall.ECONNREFUSED):
		return ": no service listens there; is Redfish switched on?", devices.Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return ": this host has no route to it", devices.NoRoute
	case errors.As(err, &timeout) && timeout.Timeout():
		return ": it is down, or a firewall drops the packets", devices.NoAnswer
	}
	return "", devices.Refused
}

// ofCertificate returns the remedy for a certificate that cannot be verified.
func ofCertificate(err *tls.CertificateVerificationError) string {
	print := ""
	if len(err.UnverifiedCertificates) > 0 {
		leaf := err.UnverifiedCertificates[0]
		print = fmt.Sprintf("; to trust this certificate (of %q, by %q) and no other, write fingerprint: %x", leaf.Subject.CommonName, leaf.Issuer.CommonName, sha256.Sum256(leaf.Raw))
	}
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &name):
		return "use a name that the certificate has, or tls_config.server_name" + print
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the certificate, and look at the clocks" + print
	}
	return "name its CA in tls_config.ca_file" + print
}

// said returns the service's explanation of a refusal: the messages of "@Message.ExtendedInfo" (DSP0266, "Error
// responses").
func said(body []byte) string {
	o, err := parse(body)
	if err != nil {
		return ""
	}
	all := append(o.sub("error").list("@Message.ExtendedInfo"), o.list("@Message.ExtendedInfo")...)
	if len(all) == 0 {
		all = []object{o.sub("error")}
	}
	var words []string
	for _, m := range all[:min(len(all), 2)] {
		if s := m.first("Message", "message", "MessageId", "MessageID", "code"); s != "" {
			words = append(words, s)
		}
		if id := m.first("MessageId", "MessageID"); id != "" && m.text("Message") != "" {
			words[len(words)-1] += " (" + id + ")"
		}
	}
	return label(strings.Join(words, "; "))
}

// refusal returns the error for a login whose name and password the service refuses.
func refusal(user string, r *reply) error {
	words := said(r.body)
	low := strings.ToLower(words + string(r.body[:min(len(r.body), 4096)]))
	advice := "username or password is wrong"
	switch {
	case strings.Contains(low, "locked"), strings.Contains(low, "lockout"):
		advice = "the account is locked: wait until the service unlocks it, or unlock it there, and correct the password first"
	case strings.Contains(low, "passwordchangerequired"), strings.Contains(low, "password expired"):
		advice = "the service wants a new password for the account: log in by hand once and change it"
	case r.status == 403:
		advice = "the account may not log in this way: give it the privilege Login, and switch Redfish on for it"
	}
	if words != "" {
		words = " (" + words + ")"
	}
	return fmt.Errorf("the login of %q is refused with status %d%s: %s", user, r.status, words, advice)
}
