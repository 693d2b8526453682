package remotewrite

import (
	"errors"
	"net/url"
	"strings"
)

// URL is the address of a target. However it is printed, user, password and the
// values of the query are left out; only [URL.Full] has them.
type URL struct{ full *url.URL }

// ParseURL reads an address. Its errors do not repeat the input, which may hold a
// password.
func ParseURL(s string) (URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return URL{}, errors.New("not a URL (write it like https://host:port/path)")
	}
	return URL{u}, nil
}

// Full is a copy of the whole URL, secrets included. It is nil for the zero URL.
func (u URL) Full() *url.URL {
	if u.full == nil {
		return nil
	}
	c := *u.full
	return &c
}

// Place is host and path: what a target is called that has no name.
func (u URL) Place() string {
	if u.full == nil {
		return ""
	}
	return u.full.Host + strings.TrimRight(u.full.Path, "/")
}

// String is the URL without user, password and query.
func (u URL) String() string {
	if u.full == nil {
		return ""
	}
	// Without // it is no host that follows the scheme, and may be user:password@host.
	return (&url.URL{Scheme: u.full.Scheme, Host: u.full.Host, Path: u.full.Path}).String()
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

// MarshalYAML prints what String prints.
func (u URL) MarshalYAML() (any, error) { return u.String(), nil }

// MarshalText prints what String prints.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }
