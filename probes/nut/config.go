package nut

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/prometheus/common/config"

	"hwsagent/internal/loopback"
	"hwsagent/probes/devices"
)

// port is the port of upsd (IANA, nut).
const port = "3493"

// Config is the probe's own part of an entry of probes: one upsd.
type Config struct {
	// Target is host or host:port of upsd; default 127.0.0.1:3493
	Target string `yaml:"target,omitempty"`
	// UPS are the devices to read, by their names in ups.conf; default all of them
	UPS []string `yaml:"ups,omitempty"`

	// Username and Password are sent before any request. upsd answers without them; a proxy may not.

	Username     string        `yaml:"username,omitempty"`      // optional: upsd answers reads without it
	Password     config.Secret `yaml:"password,omitempty"`      // leaves this machine only with starttls
	PasswordFile string        `yaml:"password_file,omitempty"` // a file with the password, read before each round

	// StartTLS encrypts the connection before any request or password is sent.
	StartTLS  bool              `yaml:"starttls,omitempty"`
	TLSConfig *config.TLSConfig `yaml:"tls_config,omitempty"` // with starttls; as in Prometheus

	// Raw is whether each variable is sent under its own name, too, beside hw_*; default true
	Raw *bool `yaml:"raw,omitempty"`
}

// FieldError is a mistake in one key of a [Config].
type FieldError struct {
	Key     string // below the probe's entry
	Message string // the mistake, and what to do
}

// Error gives key and message.
func (e *FieldError) Error() string { return e.Key + ": " + e.Message }

// Validate reports every mistake at once, joined, each a [*FieldError].
func (c *Config) Validate() error {
	var errs []error
	add := func(key, format string, args ...any) {
		errs = append(errs, &FieldError{Key: key, Message: fmt.Sprintf(format, args...)})
	}
	address, err := c.address()
	if err != nil {
		add("target", "%v", err)
	}
	seen := make(map[string]bool)
	for i, name := range c.UPS {
		switch key := fmt.Sprintf("ups[%d]", i); {
		case !plain(name):
			add(key, "%q is not a name that upsd can have; it stands in brackets in ups.conf", name)
		case seen[name]:
			add(key, "%q is listed twice", name)
		}
		seen[name] = true
	}
	secret := c.Password != "" || c.PasswordFile != ""
	switch {
	case c.Password != "" && c.PasswordFile != "":
		add("password", "give password or password_file, not both")
	case secret && c.Username == "":
		add("username", "is missing beside the password")
	case c.Username != "" && !plain(c.Username):
		add("username", "has a blank, a quote or a control character, which upsd does not allow in names")
	case secret && !c.StartTLS && err == nil && !loopback.Address(address):
		add("password", "would go over the network in clear: write starttls: true, or leave it out, because upsd answers requests without it")
	}
	if c.TLSConfig != nil {
		if !c.StartTLS {
			add("tls_config", "is not used without starttls: true")
		} else if err := c.TLSConfig.Validate(); err != nil {
			add("tls_config", "%v", err)
		}
	}
	return errors.Join(errs...)
}

// CheckTarget checks the form of a target.
func (c *Config) CheckTarget(target string) error {
	one := Config{Target: target}
	_, err := one.address()
	return err
}

// ForDevice returns the configuration for one device of a list: a *Config with its target, and with the device's words
// in the path of its password.
func (c *Config) ForDevice(d devices.Device) (any, error) {
	one := *c
	one.Target = d.Target
	var err error
	one.PasswordFile, err = d.Fill(one.PasswordFile)
	return &one, err
}

// address returns host:port.
func (c *Config) address() (string, error) {
	s := c.Target
	if s == "" {
		s = "127.0.0.1"
	}
	host, p := strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"), port
	if _, err := netip.ParseAddr(host); err != nil && strings.Contains(s, ":") {
		if host, p, err = net.SplitHostPort(s); err != nil {
			return "", errors.New("is not host or host:port; an IPv6 address with a port stands in brackets")
		}
	}
	if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
		return "", errors.New("what follows the colon is not a port between 1 and 65535")
	}
	if host == "" || strings.ContainsAny(host, "/@ \t\n") {
		return "", errors.New("is not a host name or address; write host or host:port, without a scheme")
	}
	return net.JoinHostPort(host, p), nil
}

// plain reports whether a word needs no quotes in the protocol.
func plain(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '"' || r == '\\' })
}

func (c *Config) raw() bool { return c.Raw == nil || *c.Raw }
