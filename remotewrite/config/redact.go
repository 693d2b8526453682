package config

import (
	"net/url"
	"slices"

	"github.com/prometheus/common/config"

	"hwsagent/internal/redact"
)

// MarshalYAML writes the entry for people. Besides the fields that their own types hide, it hides users
// and queries of addresses, parameters for the token endpoint, and values of headers, unless
// these are known to carry no secret.
func (c Config) MarshalYAML() (any, error) {
	type plain Config
	c.HTTP.ProxyURL = openURL(c.HTTP.ProxyURL)
	if c.HTTP.OAuth2 != nil {
		o := *c.HTTP.OAuth2
		o.ProxyURL = openURL(o.ProxyURL)
		if u, err := url.Parse(o.TokenURL); err == nil {
			o.TokenURL = URL{u, c.hide}.String()
		} else {
			o.TokenURL = redact.Mark
		}
		o.EndpointParams = make(map[string]string, len(o.EndpointParams))
		for name, value := range c.HTTP.OAuth2.EndpointParams {
			o.EndpointParams[name] = redact.Mark
			if redact.OpenParameter(name) {
				o.EndpointParams[name] = value
			}
		}
		c.HTTP.OAuth2 = &o
	}
	if c.HTTP.HTTPHeaders != nil {
		masked := &config.Headers{Headers: make(map[string]config.Header)}
		for name, h := range c.HTTP.HTTPHeaders.Headers {
			if !redact.OpenHeader(name) {
				h.Values = slices.Clone(h.Values)
				for i := range h.Values {
					h.Values[i] = redact.Mark
				}
			}
			masked.Headers[name] = h
		}
		c.HTTP.HTTPHeaders = masked
	}
	return plain(c), nil
}

// openURL returns an address without user, password and query.
func openURL(u config.URL) config.URL {
	if u.URL == nil {
		return u
	}
	return config.URL{URL: &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}}
}
