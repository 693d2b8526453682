package snmp

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTarget(t *testing.T) {
	for in, want := range map[string]endpoint{
		"192.0.2.7":            {"udp", "192.0.2.7", 161},
		"192.0.2.7:1161":       {"udp", "192.0.2.7", 1161},
		"switch.example":       {"udp", "switch.example", 161},
		"tcp:switch:1161":      {"tcp", "switch", 1161},
		"tcp:switch":           {"tcp", "switch", 161},
		"udp://switch:161":     {"udp", "switch", 161},
		"2001:db8::7":          {"udp", "2001:db8::7", 161},
		"[2001:db8::7]":        {"udp", "2001:db8::7", 161},
		"udp:[2001:db8::7]:99": {"udp", "2001:db8::7", 99},
	} {
		if got, err := parseTarget(in); err != nil || got != want {
			t.Errorf("parseTarget(%q) = %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "tcp:", "host:", "host:0", "host:65536", "host:snmp", "http://host", "a b", "[::1", ":161"} {
		if got, err := parseTarget(in); err == nil {
			t.Errorf("parseTarget(%q) = %+v", in, got)
		}
	}
}

// keysOf are the keys that Validate complains about, sorted.
func keysOf(t *testing.T, err error) (keys []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		t.Fatalf("%T is not a joined error", err)
	}
	for _, e := range all.Unwrap() {
		var f *FieldError
		if !errors.As(e, &f) || f.Message == "" {
			t.Fatalf("%v is no FieldError", e)
		}
		keys = append(keys, f.Key)
	}
	slices.Sort(keys)
	return keys
}

func TestValidate(t *testing.T) {
	minus, many := -1, 101
	base := func(a Auth) Config { return Config{Target: "switch", Modules: []string{"system"}, Auth: a} }
	for i, tc := range []struct {
		c    Config
		want []string
	}{
		{base(Auth{}), nil},
		{base(Auth{Version: 1, Community: "x"}), nil},
		{base(plain), nil},
		{base(sealed), nil},
		{base(with(sealed, func(a *Auth) { a.SecurityLevel = "authPriv" })), nil},
		{Config{}, []string{"target"}},
		{Config{Target: "a", Definitions: []string{""}}, []string{"snmp_definitions[0]"}},
		{Config{Target: "a:b:c", Modules: []string{"system", "nope", "system"}, MaxRepetitions: 256, Retries: &many, PacketTimeout: -1},
			[]string{"max_repetitions", "modules[1]", "modules[2]", "packet_timeout", "retries", "target"}},
		{Config{Target: "a", Modules: []string{"system"}, MaxRepetitions: -1, Retries: &minus}, []string{"max_repetitions", "retries"}},
		{base(Auth{Version: 4}), []string{"auth.version"}},
		{base(Auth{Community: "x", CommunityFile: "y"}), []string{"auth.community"}},
		{base(Auth{Username: "u", PrivPassword: "12345678", ContextName: "c"}), []string{"auth.context_name", "auth.priv_password", "auth.username"}},
		{base(Auth{Version: 3}), []string{"auth.username"}},
		{base(Auth{Version: 3, Username: "u", Community: "x", SecurityLevel: "high"}), []string{"auth.community", "auth.security_level"}},
		{base(Auth{Version: 3, Username: "u", SecurityLevel: "authPriv"}), []string{"auth.password", "auth.priv_password"}},
		{base(Auth{Version: 3, Username: "u", PrivPassword: "12345678"}), []string{"auth.password"}},
		{base(with(sealed, func(a *Auth) { a.SecurityLevel = "authNoPriv" })), []string{"auth.priv_password"}},
		{base(with(sealed, func(a *Auth) { a.SecurityLevel = "noAuthNoPriv" })), []string{"auth.password", "auth.priv_password"}},
		{base(with(sealed, func(a *Auth) { a.AuthProtocol, a.PrivProtocol = "SHA3", "ROT13" })), []string{"auth.auth_protocol", "auth.priv_protocol"}},
		{base(with(sealed, func(a *Auth) { a.AuthPassword, a.PrivPassword = "short", "7777777" })), []string{"auth.password", "auth.priv_password"}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			err := tc.c.Validate()
			if diff := cmp.Diff(tc.want, keysOf(t, err)); diff != "" {
				t.Errorf("%s\n%v", diff, err)
			}
			if p, nerr := New(tc.c, nil, nil); (nerr == nil) != (err == nil) || (p == nil) != (err != nil) {
				t.Errorf("New gives %v, %v", p, nerr)
			}
		})
	}
}
