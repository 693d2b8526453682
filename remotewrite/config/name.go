package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// NameApart names the entries without a name that have the same host and path, which would otherwise be their name. Each gets
// what tells it from the others, after a comma: headers that name a tenant, parameters of the query that name a database or a
// tenant, the user, or a checksum of its other credentials and its rules without secrets. If only secrets tell them apart, the second one
// ends in 2, and so on. The name does not depend on the order of other entries, and has no secret. Equal entries get equal names.
// A nil entry has no name.
func NameApart(entries []*Config) {
	alike := map[string][]*Config{}
	for _, c := range entries {
		if c != nil && c.Name == "" && c.URL.Place() != "" {
			alike[c.URL.Place()] = append(alike[c.URL.Place()], c)
		}
	}
	for place, group := range alike {
		if len(group) > 1 {
			nameApart(place, group, (*Config).tenantHeaders, (*Config).openQuery, (*Config).user, (*Config).checksum)
		}
	}
}

// nameApart names a group by the first of differs, and those that it does not tell apart by the next.
func nameApart(name string, group []*Config, differs ...func(*Config) string) {
	switch {
	case len(group) == 1:
		group[0].Name = name
		return
	case len(differs) == 0:
		namePlaces(name, group)
		return
	}
	parts := map[string][]*Config{}
	for _, c := range group {
		value := differs[0](c)
		parts[value] = append(parts[value], c)
	}
	for value, part := range parts {
		own := name
		if len(parts) > 1 && value != "" {
			own += "," + value
		}
		nameApart(own, part, differs[1:]...)
	}
}

// namePlaces names entries of which only secrets differ, by their order.
func namePlaces(name string, group []*Config) {
	var seen []Config
	for _, c := range group {
		i := slices.IndexFunc(seen, func(other Config) bool { return reflect.DeepEqual(other, *c) })
		if i < 0 {
			i = len(seen)
			seen = append(seen, *c)
		}
		if c.Name = name; i > 0 {
			c.Name = name + "," + strconv.Itoa(i+1)
		}
	}
}

// tenantHeaders returns the headers that name a tenant.
func (c *Config) tenantHeaders() string {
	var all []string
	add := func(name, value string) {
		if lower := strings.ToLower(name); lower == "x-scope-orgid" || lower == "thanos-tenant" {
			all = append(all, name+"="+value)
		}
	}
	for name, value := range c.Headers {
		add(name, value)
	}
	if c.HTTP.HTTPHeaders != nil {
		for name, h := range c.HTTP.HTTPHeaders.Headers {
			for _, value := range h.Values {
				add(name, value)
			}
		}
	}
	slices.Sort(all)
	return printable(strings.Join(all, ","))
}

// openQuery returns the parameters of the URL that name a database or a tenant. Others may be secrets.
func (c *Config) openQuery() string {
	var all []string
	for name, values := range c.URL.full.Query() {
		switch name {
		case "db", "bucket", "org", "tenant", "extra_label":
			for _, value := range values {
				all = append(all, name+"="+value)
			}
		}
	}
	slices.Sort(all)
	return printable(strings.Join(all, ","))
}

// user returns the name by which the entry logs in.
func (c *Config) user() string {
	switch {
	case c.HTTP.BasicAuth != nil:
		return printable(c.HTTP.BasicAuth.Username)
	case c.HTTP.OAuth2 != nil:
		return printable(c.HTTP.OAuth2.ClientID)
	}
	return ""
}

// checksum returns a checksum of the entry's credentials without secrets, and of its rules; "" if it has neither.
func (c *Config) checksum() string {
	own := Config{WriteRelabelConfigs: c.WriteRelabelConfigs, HTTP: c.HTTP, SigV4: c.SigV4, AzureAD: c.AzureAD, GoogleIAM: c.GoogleIAM}
	text, err := yaml.Dump(own) // as it is shown, see MarshalYAML
	empty, none := yaml.Dump(Config{})
	if cmp.Or(err, none) != nil || string(text) == string(empty) {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

// printable returns a text that may be part of a name: as it is, or as a checksum if it is long or cannot be printed.
func printable(text string) string {
	if len(text) <= 80 && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) && strings.TrimSpace(text) == text {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}
