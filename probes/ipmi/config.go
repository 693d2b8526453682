package ipmi

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"hwsagent/probes/devices"
)

// Config is the probe's part of an entry of probes: one BMC.
type Config struct {
	// Target is host or host:port of a BMC, UDP port 623; or /dev/ipmi0, this machine's own, which needs no login; required.
	Target string `yaml:"target"`

	Username     string        `yaml:"username,omitempty"`      // at most 16 bytes
	Password     config.Secret `yaml:"password,omitempty"`      // at most 20 bytes
	PasswordFile string        `yaml:"password_file,omitempty"` // a file with the password, read before each round
	// Privilege is `user`, `operator` or `administrator`; default user
	Privilege string `yaml:"privilege,omitempty"`
	// CipherSuite is `17` (SHA-256) or `3` (SHA-1); default the one that the BMC accepts
	CipherSuite int `yaml:"cipher_suite,omitempty"`

	PacketTimeout model.Duration `yaml:"packet_timeout,omitempty"` // how long the answer to a packet may take; default 1s
	Retries       *int           `yaml:"retries,omitempty"`        // how often a packet is sent again; default 3

	// Native is whether ipmi_* is sent beside hw_*; default true
	Native *bool `yaml:"native,omitempty"`
}

// FieldError is an error in one key of a [Config].
type FieldError struct {
	Key     string // below the probe's entry
	Message string // the error, and the remedy
}

// Error returns key and message.
func (e *FieldError) Error() string { return e.Key + ": " + e.Message }

// Bounds of names and passwords (sections 22.28 and 22.30).
const (
	maxUser     = 16
	maxPassword = 20
)

var privileges = map[string]byte{"": 2, "user": 2, "operator": 3, "administrator": 4}

// Validate reports all errors at once, joined, each a [*FieldError].
func (c *Config) Validate() error {
	var errs []error
	add := func(key, format string, args ...any) {
		errs = append(errs, &FieldError{Key: key, Message: fmt.Sprintf(format, args...)})
	}
	_, local := c.device()
	if !local {
		if _, err := c.address(); err != nil {
			add("target", "%v", err)
		}
	}
	secret := c.Password != "" || c.PasswordFile != ""
	switch {
	case local && (c.Username != "" || secret || c.CipherSuite != 0 || c.Privilege != ""):
		add("username", "a device of this machine has no login: leave out username, password, privilege and cipher_suite")
	case !local && c.Username == "":
		add("username", "is missing; a BMC wants one")
	case len(c.Username) > maxUser:
		add("username", "is longer than %d bytes, which IPMI allows", maxUser)
	}
	switch {
	case c.Password != "" && c.PasswordFile != "":
		add("password", "give password or password_file, not both")
	case !local && !secret:
		add("password", "is missing; give it, or password_file")
	case len(c.Password) > maxPassword:
		add("password", "is longer than %d bytes, which IPMI allows", maxPassword)
	}
	if _, known := privileges[c.Privilege]; !known {
		add("privilege", "%q is not one of user, operator, administrator", c.Privilege)
	}
	if c.CipherSuite != 0 && c.CipherSuite != 3 && c.CipherSuite != 17 {
		add("cipher_suite", "%d is not 17 or 3, which are the ones that encrypt and that BMCs have", c.CipherSuite)
	}
	if c.PacketTimeout < 0 {
		add("packet_timeout", "must not be negative")
	}
	if c.Retries != nil && (*c.Retries < 0 || *c.Retries > 20) {
		add("retries", "%d is not between 0 and 20", *c.Retries)
	}
	return errors.Join(errs...)
}

// CheckTarget checks the form of a target.
func (c *Config) CheckTarget(target string) error {
	one := Config{Target: target}
	if _, local := one.device(); local {
		return nil
	}
	_, err := one.address()
	return err
}

// ForDevice returns the configuration of one device of a list: a *Config with the device's target, and with the words of the
// device inserted into the path of its password.
func (c *Config) ForDevice(d devices.Device) (any, error) {
	one := *c
	one.Target = d.Target
	var err error
	one.PasswordFile, err = d.Fill(one.PasswordFile)
	return &one, err
}

// device returns the number of a device of this machine.
func (c *Config) device() (n int32, ok bool) {
	digits, ok := strings.CutPrefix(c.Target, "/dev/ipmi")
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseUint(digits, 10, 8)
	return int32(v), err == nil
}

// address returns host:port.
func (c *Config) address() (string, error) {
	if c.Target == "" {
		return "", errors.New("is missing; write the BMC's host or address, or /dev/ipmi0 for that of this machine")
	}
	host, port := strings.TrimSuffix(strings.TrimPrefix(c.Target, "["), "]"), "623"
	if _, err := netip.ParseAddr(host); err != nil && strings.Contains(c.Target, ":") {
		if host, port, err = net.SplitHostPort(c.Target); err != nil {
			return "", errors.New("is not host or host:port; an IPv6 address with a port stands in brackets")
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("what follows the colon is not a port between 1 and 65535")
	}
	if host == "" || strings.ContainsAny(host, "/@ \t\n") {
		return "", errors.New("is not a host name or address; write host or host:port, without a scheme, or /dev/ipmi0")
	}
	return net.JoinHostPort(host, port), nil
}

func (c *Config) patience() time.Duration {
	if c.PacketTimeout == 0 {
		return time.Second
	}
	return time.Duration(c.PacketTimeout)
}

func (c *Config) retries() int {
	if c.Retries == nil {
		return 3
	}
	return *c.Retries
}

func (c *Config) native() bool { return c.Native == nil || *c.Native }
