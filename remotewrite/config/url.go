package config

import (
	"errors"
	"net/url"
	"strings"

	"hwsagent/internal/redact"
)

// URL is the address of a target. Every printed form omits user, password, query and those parts of the
// path that [Config.Hide] names; only [URL.Full] has them.
type URL struct {
	full *url.URL
	hide *redact.Secrets // parts of the path to omit as well; see Config.Hide
}

// ParseURL reads an address. Its errors do not repeat the input, which may contain a
// password.
func ParseURL(s string) (URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return URL{}, errors.New("not a URL (write it like https://host:port/path)")
	}
	return URL{full: u}, nil
}

// Full returns a copy of the whole URL, secrets included. It is nil for the zero URL.
func (u URL) Full() *url.URL {
	if u.full == nil {
		return nil
	}
	c := *u.full
	return &c
}

// Place returns host and path: the name of a target whose entry gives none.
func (u URL) Place() string {
	if u.full == nil {
		return ""
	}
	return u.full.Host + u.hide.Cut(strings.TrimRight(u.full.Path, "/"))
}

// String returns the URL without user, password and query.
func (u URL) String() string {
	if u.full == nil {
		return ""
	}
	// Without //, the text after the scheme is not a host and may be user:password@host.
	place := (&url.URL{Scheme: u.full.Scheme, Host: u.full.Host}).String()
	whole := (&url.URL{Scheme: u.full.Scheme, Host: u.full.Host, Path: u.full.Path}).String()
	if path, ok := strings.CutPrefix(whole, place); ok {
		return place + u.hide.Cut(path)
	}
	return u.hide.Cut(whole)
}

// GoString keeps %#v from printing secrets.
func (u URL) GoString() string { return u.String() }

// UnmarshalYAML reads an address.
func (u *URL) UnmarshalYAML(unmarshal func(any) error) error {
	var s string
	if err := unmarshal(&s); err != nil {
		return err
	}
	parsed, err := ParseURL(s)
	if err != nil {
		return err
	}
	*u = parsed
	return nil
}

// MarshalText prints the same as String, in YAML too.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }
