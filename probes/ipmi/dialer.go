package ipmi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	"hwsagent/internal/redact"
	"hwsagent/probes/devices"
)

// dialer opens links to the BMC, and remembers the outcome of logins.
type dialer struct {
	config  *Config
	address string
	pace    *devices.Pace

	taken    *suite    // the cipher suite that the BMC accepted last
	refused  error     // the login was refused; the next attempt is at next, or with another password
	next     time.Time //
	password string    // of the refused login
}

// afterRefusal is the wait after a refused login: BMCs lock accounts after a few.
const afterRefusal = 5 * time.Minute

// errWaits means that a refused login is not due to be tried again.
var errWaits = errors.New("not tried again yet, so that the BMC does not lock the account")

// errSecret means that the password cannot be read.
var errSecret = errors.New("read password_file")

// open returns a link. If impatient, it sends each packet only once.
func (d *dialer) open(ctx context.Context, impatient bool) (link, error) {
	if n, local := d.config.device(); local {
		l, err := openDevice(ctx, n)
		return l, explainDevice(d.config.Target, err)
	}
	password := string(d.config.Password)
	if d.config.PasswordFile != "" {
		var err error
		if password, err = redact.ReadFile(d.config.PasswordFile); err != nil {
			return nil, fmt.Errorf("%w: %w", errSecret, err)
		}
		if len(password) > maxPassword {
			return nil, fmt.Errorf("%w: the password is longer than %d bytes, which IPMI allows", errSecret, maxPassword)
		}
	}
	if d.refused != nil && password == d.password && time.Now().Before(d.next) {
		return nil, fmt.Errorf("%w, but at %s: %w", errWaits, d.next.UTC().Format(time.TimeOnly), d.refused)
	}
	l := &login{address: d.address, user: d.config.Username, password: password, privilege: privileges[d.config.Privilege], patience: d.config.patience(), retries: d.config.retries(), pace: d.pace}
	if impatient {
		l.retries = 0
	}
	session, err := d.try(ctx, l)
	if d.refused = nil; refusedLogin(err) {
		d.refused, d.password, d.next = d.explain(err), password, time.Now().Add(afterRefusal)
	}
	if err != nil {
		return nil, d.explain(err)
	}
	return session, nil
}

// try logs in with the last accepted cipher suite, or with 17, then 3. It tries the second suite only if the BMC rejects
// the first, so that a wrong password counts once.
func (d *dialer) try(ctx context.Context, l *login) (*lan, error) {
	suites := []*suite{suite17, suite3}
	switch {
	case d.config.CipherSuite == 3 || d.config.CipherSuite == 0 && d.taken == suite3:
		suites = []*suite{suite3}
	case d.config.CipherSuite == 17 || d.taken == suite17:
		suites = []*suite{suite17}
	}
	var err error
	for i, s := range suites {
		var session *lan
		if session, err = l.open(ctx, s); err == nil {
			d.taken = s
			return session, nil
		}
		if last := i == len(suites)-1; last || !unwanted(err) {
			break
		}
	}
	if unwanted(err) {
		d.taken = nil // new firmware may accept only another
	}
	return nil, err
}

// unwanted reports whether the BMC rejects the cipher suite: by a status, or, as some do, by ignoring the offer.
func unwanted(err error) bool {
	var at *stage
	if !errors.As(err, &at) || at.step != "open a session" {
		return false
	}
	switch at.status {
	case 0x03, 0x04, 0x05, 0x10, 0x11, 0x12: // table 13-15: payload types and algorithms, no matching suite, illegal parameter
		return true
	case 0:
		return errors.Is(at.err, errSilent)
	}
	return false
}

// refusedLogin reports whether the BMC refused the login itself: repeating it at once would not help.
func refusedLogin(err error) bool {
	var at *stage
	return errors.As(err, &at) && (errors.Is(err, errPassword) || at.status == 0x0d || at.status == 0x0f || at.status == 0x09)
}

// explain adds to a failed login its meaning and remedy.
func (d *dialer) explain(err error) error {
	var at *stage
	if !errors.As(err, &at) {
		return fmt.Errorf("%s: %w", d.address, err)
	}
	name := d.config.Privilege
	if name == "" {
		name = "user"
	}
	hint := ""
	switch {
	case at.status == 0x01:
		hint = "it has no session left: others hold them, or sessions that were not closed, which end after a minute"
	case at.status == 0x0d && at.step == "say who asks", at.status == 0x0c, at.status == 0x0b:
		hint = fmt.Sprintf("it does not know the user %q, or the account is disabled, locked, or not allowed on this channel", d.config.Username)
	case at.status == 0x09, at.status == 0x0a:
		hint = fmt.Sprintf("the user %q may not have the privilege %s on this channel", d.config.Username, name)
	case at.status == 0x0f || errors.Is(err, errPassword):
		hint = fmt.Sprintf("the password of the user %q is wrong, or the account is locked; passwords longer than 16 bytes must be set as such in the BMC", d.config.Username)
	case unwanted(err) && at.status != 0:
		hint = "it does not take the cipher suite: set cipher_suite, or allow 17 or 3 in the BMC"
	case errors.Is(err, privilegeOverMax) || errors.Is(err, completion(0x80)):
		hint = fmt.Sprintf("the user %q may not have the privilege %s", d.config.Username, name)
	case errors.Is(err, errSilent):
		hint = "the BMC is down, UDP to its port is dropped on the way, or IPMI over LAN is switched off in it"
		if at.step != "open a session" {
			hint = "it answered before: it may lock out this address, or drop what is signed with a wrong password"
		}
	}
	if hint != "" {
		return fmt.Errorf("%s: %w; %s", d.address, err, hint)
	}
	return fmt.Errorf("%s: %w", d.address, err)
}

// reasonOf returns why a BMC was not reached.
func reasonOf(err error) devices.Reason {
	var name *net.DNSError
	switch {
	case errors.Is(err, errSecret):
		return devices.Secret
	case errors.Is(err, devices.ErrPace):
		return devices.Limit
	case errors.As(err, &name):
		return devices.Name
	case refusedLogin(err), errors.Is(err, errWaits):
		return devices.Login
	case errors.Is(err, syscall.ECONNREFUSED):
		return devices.Refused
	case errors.Is(err, errSilent), errors.Is(err, context.DeadlineExceeded):
		return devices.NoAnswer
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return devices.NoRoute
	}
	return devices.Protocol
}

// explainDevice adds its meaning to a failure to open a device.
func explainDevice(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "no such file"):
		return fmt.Errorf("open %s: %w; the machine has no BMC, or its driver is not loaded: modprobe ipmi_devintf ipmi_si", name, err)
	case errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission denied"):
		return fmt.Errorf("open %s: %w; docs/probes/ipmi.md has the udev rule and the drop-in that give it to the agent", name, err)
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("open %s: %w; another program holds it", name, err)
	}
	return fmt.Errorf("open %s: %w", name, err)
}
