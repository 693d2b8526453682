package snmp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes/devices"
)

// usmStats is the encoded parent of the counters in a Report (RFC 3414 section 5): 1.3.6.1.6.3.15.1.1.
var usmStats = []byte{0x2b, 6, 1, 6, 3, 15, 1, 1}

// Last arcs below usmStats.
const (
	unsupportedSecLevels = 1
	notInTimeWindows     = 2
	unknownUserNames     = 3
	unknownEngineIDs     = 4
	wrongDigests         = 5
	decryptionErrors     = 6
)

// report returns the arc of the counter that the latest answer reports, 0 if it is not a
// Report. Reports about credentials are unauthenticated and in clear, so they can be read
// even if gosnmp rejects them.
func (x *buffers) report() byte {
	i := bytes.Index(x.last, usmStats)
	if i < 0 || i+len(usmStats) >= len(x.last) {
		return 0
	}
	return x.last[i+len(usmStats)]
}

// explain turns a fault into a message for the person who has to repair it.
func (s *session) explain(ctx context.Context, err error, packets int, took time.Duration) error {
	if cause := ctx.Err(); errors.Is(cause, context.Canceled) {
		return cause
	}
	if packets == 0 {
		return fmt.Errorf("the time for this round is over: %w", err)
	}
	if isTimeout(err) || ctx.Err() != nil {
		return because(s.silentReason(), fmt.Errorf("no answer from %s to %s in %s: %s", s.endpoint, count(packets, "packet"),
			took.Round(time.Millisecond), s.silence()))
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return because(devices.Refused, fmt.Errorf("%s: %w: no SNMP agent listens there", s.endpoint, syscall.ECONNREFUSED))
	}
	if strings.HasPrefix(err.Error(), "recover: ") { // a panic, with its stack
		s.log.Debug("The SNMP decoder panicked", "device", s.endpoint.String(), "err", err)
		return fmt.Errorf("%s sent a malformed answer that cannot be decoded", s.endpoint)
	}
	if s.auth.version() == 3 {
		if text := s.loginFault(err); text != "" {
			return because(devices.Login, fmt.Errorf("%s refuses the login: %s", s.endpoint, text))
		}
	}
	return fmt.Errorf("ask %s: %w", s.endpoint, err)
}

// silentReason returns why there is no answer: a device that answers without a login rejects the login.
func (s *session) silentReason() devices.Reason {
	if s.auth.version() == 3 && s.met {
		return devices.Login
	}
	return devices.NoAnswer
}

// silence explains the possible causes of a missing answer.
func (s *session) silence() string {
	const down = "the device is down, a firewall drops the packets, or it does not allow this address"
	if s.auth.version() != 3 {
		return down + "; a wrong community is met with silence, too"
	}
	if !s.met {
		return down
	}
	if s.auth.securityLevel() == authPriv {
		return "it did answer the engine discovery, so it is up: most likely priv_password or priv_protocol is wrong, which devices meet with silence"
	}
	return "it did answer the engine discovery, so it is up, but answers no request of this user"
}

func (s *session) loginFault(err error) string {
	a := &s.auth
	switch r := s.buffers.report(); {
	case r == unknownUserNames || errors.Is(err, gosnmp.ErrUnknownUsername):
		return fmt.Sprintf("it does not know the user %q", a.Username)
	case r == wrongDigests || errors.Is(err, gosnmp.ErrWrongDigest):
		return fmt.Sprintf("password or auth_protocol (%s) is wrong for the user %q", a.authProtocol(), a.Username)
	case r == unsupportedSecLevels || errors.Is(err, gosnmp.ErrUnknownSecurityLevel):
		return fmt.Sprintf("the user %q is not set up for security_level %s there", a.Username, a.securityLevel())
	case r == decryptionErrors || errors.Is(err, gosnmp.ErrDecryption):
		return fmt.Sprintf("priv_password or priv_protocol (%s) is wrong for the user %q", a.privProtocol(), a.Username)
	case r == notInTimeWindows || errors.Is(err, gosnmp.ErrNotInTimeWindow):
		return "its clock (engine boots and time) contradicts its earlier answers"
	case r == unknownEngineIDs || errors.Is(err, gosnmp.ErrUnknownEngineID):
		return "its engine ID changed again while logging in"
	case strings.Contains(err.Error(), "not authentic"):
		return "its answer is not signed with this password: username, password or auth_protocol is wrong, or something else answers at this address"
	}
	return ""
}

// statusText explains an error-status (RFC 3416 section 3) of an answer.
func statusText(e gosnmp.SNMPError) string {
	switch e {
	case gosnmp.TooBig:
		return "tooBig: not even one variable fits its answer"
	case gosnmp.GenErr:
		return "genErr: the agent failed inside"
	case gosnmp.NoAccess, gosnmp.AuthorizationError:
		return e.String() + ": the user or community may not read this; look at the agent's views and the security level it asks for"
	}
	return e.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
