package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTenantConfig(t *testing.T) {
	const url = "url: http://h.example/\n"
	c := mustParse(t, url+"name: m\nhwsagent: {tenant: {label: team, default: anonymous, drop_label: true, credentials_dir: tokens}}")
	if len(c.Validate()) > 0 || c.Target.Tenant.Header != "X-Scope-OrgID" || c.Target.Tenant.MaxTenants != 20 {
		t.Fatalf("%+v: %v", c.Target.Tenant, c.Validate())
	}
	c.SetDirectory("/etc/hwsagent")
	a, rest := c.ForTenant("a"), c.ForRest()
	for _, tc := range []struct {
		what      string
		got, want any
	}{
		{"name", a.TargetName(), "m/a"},
		{"name of the rest", rest.TargetName(), "m"},
		{"tenant", a.Tenant(), "a"},
		{"tenant of the rest", rest.Tenant(), "anonymous"},
		{"token", a.CredentialFiles(), []string{filepath.FromSlash("/etc/hwsagent/tokens/a")}},
		{"token of the rest", rest.CredentialFiles(), []string{filepath.FromSlash("/etc/hwsagent/tokens/anonymous")}},
		{"token of the entry", c.CredentialFiles(), []string{}},
		{"the entry is left alone", c.HTTP.Authorization == nil, true},
	} {
		if d := cmp.Diff(tc.want, tc.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.what, d)
		}
	}
	for _, tc := range []struct{ entry, want string }{
		{"tenant: {}", "label: missing"},
		{"tenant: {label: __name__}", "not the name of a label"},
		{"tenant: {label: a, header: \"\"}", "header: is empty"},
		{"tenant: {label: a, header: 'a b'}", "not a header name"},
		{"tenant: {label: a, header: Authorization}", "cannot be set here"},
		{"tenant: {label: a, header: x-tenant}", "X-Tenant as well"},
		{"tenant: {label: a, default: a/b}", "only letters"},
		{"tenant: {label: a, max_tenants: 0}", "not between 1 and 1000"},
		{"tenant: {label: a, max_tenants: 1001}", "not between 1 and 1000"},
		{"tenant: {label: a, credentials_dir: d}", "at most one is possible"},
	} {
		c, err := parse(url + "headers: {X-Tenant: b}\nbearer_token_file: f\nhwsagent: {" + tc.entry + "}")
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(c.Validate()); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s, want %q", tc.entry, got, tc.want)
		}
	}
}

// The rules of Mimir, "Tenant ID naming restrictions".
func TestCheckTenant(t *testing.T) {
	for _, good := range []string{"a", "Team-1", "a_b.c", "!-_.*'()", "...", strings.Repeat("x", 150)} {
		if err := CheckTenant(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", "a b", "a|b", "ü", "a\r\nX: y", "a\x00", "__mimir_cluster", strings.Repeat("x", 151)} {
		if CheckTenant(bad) == nil {
			t.Errorf("%q is taken for a tenant", bad)
		}
	}
}
