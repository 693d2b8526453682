package snmp

import (
	"fmt"

	"github.com/gosnmp/gosnmp"
	"github.com/prometheus/common/config"
	"go.yaml.in/yaml/v4"

	"hwsagent/internal/redact"
)

// The three security levels of RFC 3411 section 3.4.3, as snmp.yml spells them.
const (
	noAuthNoPriv = "noAuthNoPriv"
	authNoPriv   = "authNoPriv"
	authPriv     = "authPriv"
)

// maxCommunity is the most that the length octet of gosnmp's encoder can hold.
const maxCommunity = 127

var securityLevels = map[string]gosnmp.SnmpV3MsgFlags{
	noAuthNoPriv: gosnmp.NoAuthNoPriv,
	authNoPriv:   gosnmp.AuthNoPriv,
	authPriv:     gosnmp.AuthPriv,
}

// authProtocols are the protocols of RFC 3414 (MD5, SHA) and RFC 7860 (SHA-2).
var authProtocols = map[string]gosnmp.SnmpV3AuthProtocol{
	"MD5": gosnmp.MD5, "SHA": gosnmp.SHA, "SHA224": gosnmp.SHA224,
	"SHA256": gosnmp.SHA256, "SHA384": gosnmp.SHA384, "SHA512": gosnmp.SHA512,
}

// privProtocols are the protocols of RFC 3414 (DES) and RFC 3826 (AES), and the two unstandardised
// ways to lengthen a key for AES-192 and -256: Blumenthal's and, ending in C, Cisco's
// (Reeder's). They differ only where the hash is shorter than the key.
var privProtocols = map[string]gosnmp.SnmpV3PrivProtocol{
	"DES": gosnmp.DES, "AES": gosnmp.AES,
	"AES192": gosnmp.AES192, "AES192C": gosnmp.AES192C,
	"AES256": gosnmp.AES256, "AES256C": gosnmp.AES256C,
}

func (a *Auth) authProtocol() string {
	if a.AuthProtocol == "" {
		return "MD5"
	}
	return a.AuthProtocol
}

func (a *Auth) privProtocol() string {
	if a.PrivProtocol == "" {
		return "DES"
	}
	return a.PrivProtocol
}

func (a *Auth) securityLevel() string {
	switch {
	case a.SecurityLevel != "":
		return a.SecurityLevel
	case a.PrivPassword != "" || a.PrivPasswordFile != "":
		return authPriv
	case a.AuthPassword != "" || a.AuthPasswordFile != "":
		return authNoPriv
	}
	return noAuthNoPriv
}

// UnmarshalYAML reads a login, or the name of a login in a file.
func (a *Auth) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" {
		*a = Auth{Name: n.Value}
		return nil
	}
	type plain Auth
	return n.Load((*plain)(a), yaml.WithKnownFields())
}

// MarshalYAML writes the form that UnmarshalYAML reads.
func (a Auth) MarshalYAML() (any, error) {
	if a.Name != "" {
		return a.Name, nil
	}
	type plain Auth
	return plain(a), nil
}

// secrets are the passwords in use. They are compared before each round, so that a
// replaced file takes effect without a reload.
type secrets struct{ community, auth, priv config.Secret }

func (a *Auth) load() (s secrets, err error) {
	for _, x := range []struct {
		to     *config.Secret
		inline config.Secret
		file   string
		what   string
	}{
		{&s.community, a.Community, a.CommunityFile, "community_file"},
		{&s.auth, a.AuthPassword, a.AuthPasswordFile, "password_file"},
		{&s.priv, a.PrivPassword, a.PrivPasswordFile, "priv_password_file"},
	} {
		*x.to = x.inline
		if x.file == "" {
			continue
		}
		text, err := redact.ReadFile(x.file)
		if err != nil {
			return s, fmt.Errorf("read %s: %w", x.what, err)
		}
		*x.to = config.Secret(text)
		if *x.to == "" {
			return s, fmt.Errorf("read %s: %s is empty", x.what, x.file)
		}
	}
	if s.community == "" {
		s.community = "public"
	}
	if len(s.community) > maxCommunity {
		return s, fmt.Errorf("read community_file: %s holds more than %d bytes", a.CommunityFile, maxCommunity)
	}
	return s, nil
}

// apply puts version and credentials into g; usm are those of version 3, nil otherwise.
func (a *Auth) apply(g *gosnmp.GoSNMP, s secrets, usm *gosnmp.UsmSecurityParameters) {
	g.Version, g.Community, g.SecurityParameters = gosnmp.Version2c, string(s.community), nil
	switch a.version() {
	case 1:
		g.Version = gosnmp.Version1
	case 3:
		g.Version, g.Community = gosnmp.Version3, ""
		g.SecurityModel, g.SecurityParameters = gosnmp.UserSecurityModel, usm
		g.MsgFlags = securityLevels[a.securityLevel()] | gosnmp.Reportable
		g.ContextName = a.ContextName
	}
}

// usm returns new security parameters for version 3, which will also hold the engine ID and clock learned from a device; nil for other versions.
func (a *Auth) usm(s secrets) *gosnmp.UsmSecurityParameters {
	if a.version() != 3 {
		return nil
	}
	usm := &gosnmp.UsmSecurityParameters{
		UserName:               a.Username,
		AuthenticationProtocol: gosnmp.NoAuth,
		PrivacyProtocol:        gosnmp.NoPriv,
	}
	level := a.securityLevel()
	if level != noAuthNoPriv {
		usm.AuthenticationProtocol = authProtocols[a.authProtocol()]
		usm.AuthenticationPassphrase = string(s.auth)
	}
	if level == authPriv {
		usm.PrivacyProtocol = privProtocols[a.privProtocol()]
		usm.PrivacyPassphrase = string(s.priv)
	}
	return usm
}
