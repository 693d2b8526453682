package snmp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"hwsagent/internal/redact"
	"hwsagent/probes/devices"
)

// Config describes one device to read. The zero value of every key but Target is usable. It
// is plain data: [New] resolves names and opens files.
type Config struct {
	// Target is host, host:port or tcp:host:port; UDP and port 161 by default.
	Target string `yaml:"target"`
	Auth   Auth   `yaml:"auth,omitempty"` // the login, or the name of one in config_files; default v2c with public
	// ConfigFiles are files of modules and logins in the format of snmp_exporter's snmp.yml, or patterns. Of two modules or
	// logins of one name, the later file's counts; a module of a file hides the built-in one.
	ConfigFiles []string `yaml:"config_files,omitempty"`
	// Modules are the [modules](../probes/snmp.md#modules), read in this order; default `[system, hardware]`
	Modules []string `yaml:"modules,omitempty"`
	// Definitions are directories of your own [definitions](../snmp-library.md#write-a-definition).
	Definitions []string `yaml:"snmp_definitions,omitempty"`
	// MaxRepetitions is how many variables one GETBULK asks for, 1 to 255; more than about 30 need IP fragments; default
	// that of the module's file, else 25
	MaxRepetitions int `yaml:"max_repetitions,omitempty"`
	// Retries is how often a packet is sent again; default that of the module's file, else 3
	Retries *int `yaml:"retries,omitempty"`
	// PacketTimeout is how long one answer may take; default that of the module's file, else 5s
	PacketTimeout model.Duration `yaml:"packet_timeout,omitempty"`
}

// Defaults of [Config].
const (
	DefaultMaxRepetitions = 25
	DefaultRetries        = 3
	DefaultPacketTimeout  = 5 * time.Second
)

// DefaultModules returns the modules read if a configuration names none: the device's identity and its hardware.
func DefaultModules() []string { return []string{"system", hardwareModule} }

// modules returns the modules to read.
func (c *Config) modules() []string {
	if len(c.Modules) == 0 {
		return DefaultModules()
	}
	return c.Modules
}

// maxRepetitions is the most variables that one GETBULK asks for.
const maxRepetitions = 255

// Auth is a login, spelled as in the auths section of an snmp.yml. A secret is given inline or
// in a file, which is read again before each round.
type Auth struct {
	// Name refers to a login of ConfigFiles; all other fields are then empty. It is written in
	// place of the mapping: auth: NAME.
	Name string `yaml:"-"`
	// Version is 1, 2 (v2c) or 3; default 2
	Version       int           `yaml:"version,omitempty"`
	Community     config.Secret `yaml:"community,omitempty"`      // v1 and v2c; default public
	CommunityFile string        `yaml:"community_file,omitempty"` // a file with the community, read before each round

	Username string `yaml:"username,omitempty"` // v3, as all that follows
	// SecurityLevel is `noAuthNoPriv`, `authNoPriv` or `authPriv`; default by the passwords given
	SecurityLevel string `yaml:"security_level,omitempty"`
	// AuthProtocol is `MD5`, `SHA`, `SHA224`, `SHA256`, `SHA384` or `SHA512`; default MD5
	AuthProtocol     string        `yaml:"auth_protocol,omitempty"`
	AuthPassword     config.Secret `yaml:"password,omitempty"`      // at least 8 characters
	AuthPasswordFile string        `yaml:"password_file,omitempty"` // a file with it, read before each round
	// PrivProtocol is `DES`, `AES`, `AES192`, `AES256`, or with Cisco's key extension `AES192C` or `AES256C`; default DES
	PrivProtocol     string        `yaml:"priv_protocol,omitempty"`
	PrivPassword     config.Secret `yaml:"priv_password,omitempty"`      // at least 8 characters
	PrivPasswordFile string        `yaml:"priv_password_file,omitempty"` // a file with it, read before each round
	ContextName      string        `yaml:"context_name,omitempty"`       // as in snmp.yml
}

// CheckTarget checks the form of a target.
func (c *Config) CheckTarget(target string) error {
	_, err := parseTarget(target)
	return err
}

// ForDevice returns the configuration of one device of a list: a *Config with the device's target,
// and with the words of the device inserted into the paths of its secrets.
func (c *Config) ForDevice(d devices.Device) (any, error) {
	one := *c
	one.Target = d.Target
	for _, path := range []*string{&one.Auth.CommunityFile, &one.Auth.AuthPasswordFile, &one.Auth.PrivPasswordFile} {
		var err error
		if *path, err = d.Fill(*path); err != nil {
			return nil, err
		}
	}
	return &one, nil
}

// FieldError is an error in one key of a [Config].
type FieldError struct {
	Key     string // dotted, below the probe's entry: auth.username
	Message string // the error, and the remedy
}

// Error returns key and message.
func (e *FieldError) Error() string { return e.Key + ": " + e.Message }

// Validate reports all errors at once, joined, each a [*FieldError].
func (c *Config) Validate() error {
	var v mistakes
	if _, err := parseTarget(c.Target); err != nil {
		v.add("target", err.Error())
	}
	for i, d := range c.Definitions {
		if d == "" {
			v.add(fmt.Sprintf("snmp_definitions[%d]", i), "is empty; name a directory")
		}
	}
	for i, m := range c.Modules {
		key := fmt.Sprintf("modules[%d]", i)
		switch ok := slices.Contains(Modules(), m); {
		case !ok && len(c.ConfigFiles) == 0:
			v.add(key, fmt.Sprintf("there is no module %q; there are %s, and those of an snmp.yml that config_files names", m, strings.Join(Modules(), ", ")))
		case slices.Contains(c.Modules[:i], m):
			v.add(key, fmt.Sprintf("%q is listed twice", m))
		}
	}
	if c.MaxRepetitions < 0 || c.MaxRepetitions > maxRepetitions {
		v.add("max_repetitions", fmt.Sprintf("%d is not between 1 and 255", c.MaxRepetitions))
	}
	if c.Retries != nil && (*c.Retries < 0 || *c.Retries > 100) {
		v.add("retries", fmt.Sprintf("%d is not between 0 and 100", *c.Retries))
	}
	if c.PacketTimeout < 0 {
		v.add("packet_timeout", "must not be negative")
	}
	for i, f := range c.ConfigFiles {
		if _, err := filepath.Match(f, ""); f == "" || err != nil {
			v.add(fmt.Sprintf("config_files[%d]", i), "is not a path or a pattern of paths")
		}
	}
	if c.Auth.Name != "" {
		if len(c.ConfigFiles) == 0 {
			v.add("auth", "is the name of a login, but no config_files are given that could have it; name an snmp.yml there, or write the login, as in auth: {community_file: /etc/hwsagent/community}")
		}
		return errors.Join(v...)
	}
	c.Auth.validate(&v)
	return errors.Join(v...)
}

type mistakes []error

func (v *mistakes) add(key, msg string) { *v = append(*v, &FieldError{Key: key, Message: msg}) }

func (a *Auth) validate(v *mistakes) {
	for _, s := range []struct {
		key    string
		inline config.Secret
		file   string
	}{
		{"community", a.Community, a.CommunityFile},
		{"password", a.AuthPassword, a.AuthPasswordFile},
		{"priv_password", a.PrivPassword, a.PrivPasswordFile},
	} {
		if s.inline != "" && s.file != "" {
			v.add("auth."+s.key, "give "+s.key+" or "+s.key+"_file, not both")
		}
	}
	if len(a.Community) > maxCommunity {
		v.add("auth.community", fmt.Sprintf("is longer than %d bytes", maxCommunity))
	}
	switch a.version() {
	case 1, 2:
		for _, k := range a.v3Keys() {
			v.add("auth."+k, fmt.Sprintf("belongs to version 3, but the version is %d; write version: 3", a.version()))
		}
	case 3:
		a.validateV3(v)
	default:
		v.add("auth.version", fmt.Sprintf("%d is not 1, 2 (for v2c) or 3", a.Version))
	}
}

func (a *Auth) validateV3(v *mistakes) {
	if a.Community != "" || a.CommunityFile != "" {
		v.add("auth.community", "belongs to versions 1 and 2; version 3 logs in by username")
	}
	if a.Username == "" {
		v.add("auth.username", "version 3 needs a username")
	}
	if _, ok := authProtocols[a.authProtocol()]; !ok {
		v.add("auth.auth_protocol", fmt.Sprintf("%q is not one of MD5, SHA, SHA224, SHA256, SHA384, SHA512", a.AuthProtocol))
	}
	if _, ok := privProtocols[a.privProtocol()]; !ok {
		v.add("auth.priv_protocol", fmt.Sprintf("%q is not one of DES, AES, AES192, AES192C, AES256, AES256C", a.PrivProtocol))
	}
	level := a.securityLevel()
	if _, ok := securityLevels[level]; !ok {
		v.add("auth.security_level", fmt.Sprintf("%q is not one of noAuthNoPriv, authNoPriv, authPriv", a.SecurityLevel))
		return
	}
	hasAuth, hasPriv := a.AuthPassword != "" || a.AuthPasswordFile != "", a.PrivPassword != "" || a.PrivPasswordFile != ""
	needAuth, needPriv := level != noAuthNoPriv, level == authPriv
	switch {
	case needAuth && !hasAuth:
		v.add("auth.password", level+" needs a password or password_file")
	case !needAuth && hasAuth:
		v.add("auth.password", "is not used at security_level "+level)
	}
	switch {
	case needPriv && !hasPriv:
		v.add("auth.priv_password", level+" needs a priv_password or priv_password_file")
	case !needPriv && hasPriv:
		v.add("auth.priv_password", "is not used at security_level "+level+"; write security_level: authPriv")
	}
	// RFC 3414 section 11.2 asks agents to refuse passwords under 8 characters.
	for _, p := range []struct {
		key    string
		secret config.Secret
	}{{"password", a.AuthPassword}, {"priv_password", a.PrivPassword}} {
		if p.secret != "" && len(p.secret) < 8 {
			v.add("auth."+p.key, "has fewer than 8 characters, which SNMPv3 agents refuse")
		}
	}
}

func (a *Auth) v3Keys() (keys []string) {
	for _, k := range []struct {
		key string
		set bool
	}{
		{"username", a.Username != ""},
		{"security_level", a.SecurityLevel != ""},
		{"auth_protocol", a.AuthProtocol != ""},
		{"password", a.AuthPassword != "" || a.AuthPasswordFile != ""},
		{"priv_protocol", a.PrivProtocol != ""},
		{"priv_password", a.PrivPassword != "" || a.PrivPasswordFile != ""},
		{"context_name", a.ContextName != ""},
	} {
		if k.set {
			keys = append(keys, k.key)
		}
	}
	return keys
}

func (a *Auth) version() int {
	if a.Version == 0 {
		return 2
	}
	return a.Version
}

// own reports whether the configuration itself holds the login, rather than a file of modules.
func (a *Auth) own() bool { return a.Name == "" && *a != (Auth{}) }

// endpoint is a parsed target.
type endpoint struct {
	network string // udp or tcp
	host    string
	port    uint16
}

func (e endpoint) String() string {
	return e.network + " " + net.JoinHostPort(e.host, strconv.Itoa(int(e.port)))
}

func parseTarget(s string) (endpoint, error) {
	e := endpoint{network: "udp", port: 161}
	for _, n := range []string{"udp", "tcp"} {
		if rest, ok := strings.CutPrefix(s, n+":"); ok {
			e.network, s = n, strings.TrimPrefix(rest, "//")
			break
		}
	}
	e.host = s
	// A bare IPv6 address has colons but no port.
	if strings.HasPrefix(s, "[") || strings.Count(s, ":") == 1 {
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") {
				host, port = strings.TrimSuffix(inner, "]"), "161"
			} else {
				return e, fmt.Errorf("%q is not host:port", redact.URL(s))
			}
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return e, errors.New("what follows the colon is not a port between 1 and 65535")
		}
		e.host, e.port = host, uint16(n)
	}
	if strings.Count(e.host, ":") > 0 {
		if _, err := netip.ParseAddr(e.host); err != nil {
			return e, fmt.Errorf("%q is not host:port or an IPv6 address", redact.URL(s))
		}
	}
	switch {
	case e.host == "":
		return e, errors.New("is missing; write host or host:port, as in 192.0.2.7:161")
	case strings.ContainsAny(e.host, "/ \t"):
		return e, fmt.Errorf("%q is not a host name or address; write host:port without a scheme", redact.URL(e.host))
	}
	return e, nil
}
