package snmp

import (
	"strings"

	"github.com/prometheus/common/config"
	"go.yaml.in/yaml/v4"
)

// ymlAuth is a login in a file, with its place.
type ymlAuth struct {
	Auth
	place   Note
	expands bool // a value looks like ${NAME}, which snmp_exporter may be configured to expand
}

// readAuth reads the login under the key k. version is that of the module in the old format, nil in
// the new one. Messages contain none of its values except names of protocols.
func readAuth(r *ymlReader, k, v, version *yaml.Node) *ymlAuth {
	a := &ymlAuth{place: Note{File: r.file, Line: k.Line, Column: k.Column}}
	secret := func(what string, to *config.Secret) field {
		return field{what, func(n *yaml.Node) {
			s, _ := r.text(n, what)
			*to, a.expands = config.Secret(s), a.expands || strings.Contains(s, "${")
		}}
	}
	word := func(what string, to *string) field {
		return field{what, func(n *yaml.Node) {
			*to, _ = r.text(n, what)
			a.expands = a.expands || strings.Contains(*to, "${")
		}}
	}
	readVersion := func(n *yaml.Node) {
		s, _ := r.text(n, "version")
		switch s {
		case "1", "2", "3":
			a.Version = int(s[0] - '0')
		case "", "2c":
			a.Version = 2
		default:
			r.fail(n, "write 1, 2 (for v2c) or 3", "the version of a login is not a version of SNMP")
		}
	}
	a.Version = 2
	r.mapping(v, aLogin,
		secret("community", &a.Community), word("username", &a.Username), word("security_level", &a.SecurityLevel),
		secret("password", &a.AuthPassword), word("auth_protocol", &a.AuthProtocol),
		secret("priv_password", &a.PrivPassword), word("priv_protocol", &a.PrivProtocol),
		word("context_name", &a.ContextName), field{"version", readVersion},
	)
	if version != nil {
		readVersion(version)
	}
	checkAuth(r, k, &a.Auth)
	return a
}

// checkAuth reports missing values, and clears those that the login's version and level do not
// use: files have every key with its default.
func checkAuth(r *ymlReader, n *yaml.Node, a *Auth) {
	if a.Version != 3 {
		if len(a.Community) > maxCommunity {
			r.fail(n, "use a shorter one", "the community is longer than %d bytes", maxCommunity)
		}
		*a = Auth{Version: a.Version, Community: a.Community}
		return
	}
	a.Community = ""
	if a.SecurityLevel == "" {
		a.SecurityLevel = noAuthNoPriv
	}
	level := a.SecurityLevel
	if _, ok := securityLevels[level]; !ok {
		r.fail(n, "write noAuthNoPriv, authNoPriv or authPriv", "the security_level of the login is none of SNMPv3")
		return
	}
	if a.Username == "" {
		r.fail(n, "write username:", "a login of version 3 needs a username")
	}
	if level == noAuthNoPriv {
		a.AuthPassword, a.AuthProtocol = "", ""
	} else {
		if a.AuthPassword == "" {
			r.fail(n, "write password:, or a lower security_level", "a login at %s needs a password", level)
		}
		if _, ok := authProtocols[a.authProtocol()]; !ok {
			r.fail(n, "write MD5, SHA, SHA224, SHA256, SHA384 or SHA512", "the auth_protocol of the login is not known")
		}
	}
	if level != authPriv {
		a.PrivPassword, a.PrivProtocol = "", ""
		return
	}
	if a.PrivPassword == "" {
		r.fail(n, "write priv_password:, or a lower security_level", "a login at %s needs a priv_password", level)
	}
	if _, ok := privProtocols[a.privProtocol()]; !ok {
		r.fail(n, "write DES, AES, AES192, AES192C, AES256 or AES256C", "the priv_protocol of the login is not known")
	}
}
