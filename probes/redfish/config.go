package redfish

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"hwsagent/internal/redact"
	"hwsagent/probes/devices"
)

// Config configures one service. All keys except Target, Username and a password are optional.
type Config struct {
	// Target is host, host:port or https://host. http:// sends the password in clear text; required.
	Target   string        `yaml:"target"`
	Username string        `yaml:"username"`           // a read-only account is enough
	Password config.Secret `yaml:"password,omitempty"` // better in a file
	// PasswordFile is a file with the password, read at each login.
	PasswordFile string `yaml:"password_file,omitempty"`
	// Auth is how to log in: `session`, `basic`, or `auto`: a session, or basic authentication for half an hour if the
	// service has no sessions, or none left; default auto
	Auth string `yaml:"auth,omitempty"`
	// TLSConfig is Prometheus' tls_config; TLS 1.2 at least.
	TLSConfig config.TLSConfig `yaml:"tls_config,omitempty"`
	// Fingerprint is the SHA-256 of the service's certificate in hexadecimal digits: only that certificate is trusted,
	// whatever its issuer and names.
	Fingerprint string `yaml:"fingerprint,omitempty"`
	// OldTLS allows TLS 1.0 and 1.1, and ciphers without forward secrecy, for controllers of about 2012.
	OldTLS bool `yaml:"old_tls,omitempty"`
	// RequestTimeout is how long one answer may take; default 10s
	RequestTimeout model.Duration `yaml:"request_timeout,omitempty"`
	// InventoryInterval is how often parts that seldom change are read without a sign of a change; default 5m
	InventoryInterval model.Duration `yaml:"inventory_interval,omitempty"`
	// MaxRequests is the most requests in a round; default 2000
	MaxRequests int `yaml:"max_requests,omitempty"`
}

// CheckTarget checks the form of a target.
func (c *Config) CheckTarget(target string) error {
	_, err := parseTarget(target)
	return err
}

// ForDevice returns the configuration for one device of a list: a *Config with its target, and with the device's words
// in the paths of its secrets.
func (c *Config) ForDevice(d devices.Device) (any, error) {
	one := *c
	one.Target = d.Target
	for _, path := range []*string{&one.PasswordFile, &one.TLSConfig.CertFile, &one.TLSConfig.KeyFile, &one.TLSConfig.CAFile} {
		var err error
		if *path, err = d.Fill(*path); err != nil {
			return nil, err
		}
	}
	return &one, nil
}

// Ways to log in.
const (
	AuthAuto    = "auto"    // a session; HTTP basic authentication if the service has no sessions, or none left
	AuthSession = "session" // a session only
	AuthBasic   = "basic"   // name and password with each request
)

// Defaults of [Config].
const (
	DefaultRequestTimeout    = 10 * time.Second
	DefaultInventoryInterval = 5 * time.Minute
	DefaultMaxRequests       = 2000
)

// FieldError is a mistake in one key of a [Config].
type FieldError struct {
	Key     string // dotted, below the probe's entry
	Message string // what is wrong and what to do
}

// Error gives key and message.
func (e *FieldError) Error() string { return e.Key + ": " + e.Message }

// Validate reports every mistake at once, joined, each a [*FieldError].
func (c *Config) Validate() error {
	var errs []error
	add := func(key, message string) { errs = append(errs, &FieldError{key, message}) }
	base, err := parseTarget(c.Target)
	if err != nil {
		add("target", err.Error())
	}
	if c.Username == "" {
		add("username", "is missing; a read-only account of the service is enough")
	}
	switch {
	case c.Password != "" && c.PasswordFile != "":
		add("password", "give password or password_file, not both")
	case c.Password == "" && c.PasswordFile == "":
		add("password_file", "is missing; name a file that has the password, or give password")
	}
	switch c.Auth {
	case "", AuthAuto, AuthSession, AuthBasic:
	default:
		add("auth", fmt.Sprintf("%q is not auto, session or basic", c.Auth))
	}
	if err := c.TLSConfig.Validate(); err != nil {
		add("tls_config", err.Error())
	}
	if c.Fingerprint != "" {
		if _, err := c.fingerprint(); err != nil {
			add("fingerprint", err.Error())
		}
		if t := c.TLSConfig; t.InsecureSkipVerify || t.CA != "" || t.CAFile != "" {
			add("fingerprint", "trusts one certificate, so tls_config needs no CA and no insecure_skip_verify beside it")
		}
	}
	if base != nil && base.Scheme == "http" && (c.Fingerprint != "" || c.OldTLS) {
		add("target", "is plain http, so the keys of TLS have no effect; write https")
	}
	for _, d := range []struct {
		key string
		d   model.Duration
	}{{"request_timeout", c.RequestTimeout}, {"inventory_interval", c.InventoryInterval}} {
		if d.d < 0 {
			add(d.key, "must not be negative")
		}
	}
	if c.MaxRequests < 0 {
		add("max_requests", "must not be negative")
	}
	return errors.Join(errs...)
}

// fingerprint returns Fingerprint as bytes.
func (c *Config) fingerprint() ([]byte, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(c.Fingerprint), ":", ""))
	if err != nil || len(b) != 32 {
		return nil, errors.New("is not a SHA-256 in 64 hexadecimal digits; hwsagent check shows that of the service's certificate")
	}
	return b, nil
}

func (c *Config) requestTimeout() time.Duration {
	if c.RequestTimeout == 0 {
		return DefaultRequestTimeout
	}
	return time.Duration(c.RequestTimeout)
}

func (c *Config) inventoryInterval() time.Duration {
	if c.InventoryInterval == 0 {
		return DefaultInventoryInterval
	}
	return time.Duration(c.InventoryInterval)
}

func (c *Config) maxRequests() int {
	if c.MaxRequests == 0 {
		return DefaultMaxRequests
	}
	return c.MaxRequests
}

// parseTarget returns the service's address: scheme and host.
func parseTarget(s string) (*url.URL, error) {
	if s == "" {
		return nil, errors.New("is missing; write host, host:port or https://host, as in 192.0.2.9")
	}
	text := s
	if !strings.Contains(text, "://") {
		if strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "[") { // a bare IPv6 address
			text = "[" + text + "]"
		}
		text = "https://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return nil, fmt.Errorf("%q is not host, host:port or https://host", redact.URL(s))
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q: the scheme is https, or http behind a tunnel", redact.URL(s))
	case u.User != nil:
		return nil, errors.New("has a user in it; write username and password_file")
	case strings.Trim(u.Path, "/") != "" && strings.Trim(u.Path, "/") != "redfish/v1", u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("%q has a path; the probe knows it: write the host alone", redact.URL(s))
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}
