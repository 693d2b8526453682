package config

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// validateCloud checks sigv4, azuread and google_iam, and refuses any other authentication method beside them.
func (c *Config) validateCloud(f *findings) {
	c.validateSigV4(f)
	c.validateAzure(f)
	if methods := c.authMethods(); c.UsesCloud() && len(methods) > 1 {
		f.hint("", "has more than one authentication method: "+strings.Join(methods, ", "), "leave one")
	}
}

// authMethods returns the names of the authentication methods that the entry uses. A valid entry has at most one.
func (c *Config) authMethods() (names []string) {
	for _, m := range []struct {
		name string
		used bool
	}{
		{"basic_auth", c.HTTP.BasicAuth != nil},
		{"authorization", c.HTTP.Authorization != nil || c.HTTP.BearerToken != "" || c.HTTP.BearerTokenFile != ""},
		{"oauth2", c.HTTP.OAuth2 != nil},
		{"sigv4", c.SigV4 != nil},
		{"azuread", c.AzureAD != nil},
		{"google_iam", c.GoogleIAM != nil},
		{"hwsagent.tenant.credentials_dir", c.Target.Tenant != nil && c.Target.Tenant.CredentialsDir != ""},
		{"a user in url", c.URL.full != nil && c.URL.full.User != nil},
	} {
		if m.used {
			names = append(names, m.name)
		}
	}
	return names
}

func (c *Config) validateSigV4(f *findings) {
	s := c.SigV4
	if s == nil {
		return
	}
	switch {
	case s.AccessKey != "" && s.SecretKey == "":
		f.hint("sigv4.secret_key", "missing beside access_key", "write both, or neither")
	case s.AccessKey == "" && s.SecretKey != "":
		f.hint("sigv4.access_key", "missing beside secret_key", "write both, or neither")
	}
	if s.RoleARN == "" {
		for _, k := range []struct {
			name string
			is   bool
		}{{"external_id", s.ExternalID != ""}, {"session_name", s.SessionName != ""}, {"tags", len(s.Tags) > 0}} {
			if k.is {
				f.hint("sigv4."+k.name, "has no effect without role_arn", "write role_arn: the role to assume")
			}
		}
	}
	if s.SessionName != "" && !sessionName(s.SessionName) {
		f.hint("sigv4.session_name", "not a name of a session", "write 2 to 64 letters, digits and _+=,.@-")
	}
	if s.Region != "" && !allOf(s.Region, "-") {
		f.hint("sigv4.region", "not a region", "write it like eu-central-1") // it becomes part of a host name
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tags)) {
		// Bounds of sts:AssumeRole.
		if name == "" || len(name) > 128 || len(s.Tags[name]) > 256 {
			f.hint("sigv4.tags."+name, "not a tag", "a name has 1 to 128 bytes, a value at most 256")
		}
	}
}

// sessionName checks the bounds of RoleSessionName of sts:AssumeRole.
func sessionName(s string) bool { return len(s) >= 2 && len(s) <= 64 && allOf(s, "_+=,.@-") }

// allOf reports whether a text consists of ASCII letters and digits, and the given signs.
func allOf(s, signs string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(signs, r)
	})
}

func (c *Config) validateAzure(f *findings) {
	a := c.AzureAD
	if a == nil {
		return
	}
	switch a.Cloud {
	case "", AzurePublic, AzureGovernment, AzureChina:
	default:
		f.hint("azuread.cloud", "not a cloud of Azure", "write "+AzurePublic+", "+AzureGovernment+" or "+AzureChina)
	}
	if !allOf(a.Scope, "_ :/.-") {
		f.hint("azuread.scope", "has characters that no scope has", "write it like https://monitor.azure.com/.default")
	}
	ways := 0
	if m := a.ManagedIdentity; m != nil {
		ways++
		azureID(f, "azuread.managed_identity.client_id", m.ClientID, true)
	}
	if w := a.WorkloadIdentity; w != nil {
		ways++
		azureID(f, "azuread.workload_identity.client_id", w.ClientID, false)
		azureID(f, "azuread.workload_identity.tenant_id", w.TenantID, false)
	}
	if o := a.OAuth; o != nil {
		ways++
		azureID(f, "azuread.oauth.client_id", o.ClientID, false)
		azureTenant(f, "azuread.oauth.tenant_id", o.TenantID, false)
		if o.ClientSecret == "" {
			f.add("azuread.oauth.client_secret", "missing")
		}
	}
	if s := a.SDK; s != nil {
		ways++
		azureTenant(f, "azuread.sdk.tenant_id", s.TenantID, true)
	}
	if p := a.Certificate; p != nil {
		ways++
		p.validate(f)
	}
	if ways != 1 {
		f.hint("azuread", "must have exactly one way to log in", "write managed_identity: {}, workload_identity, oauth, certificate or sdk: {}")
	}
}

func (p *AzureCertificate) validate(f *findings) {
	azureID(f, "azuread.certificate.client_id", p.ClientID, false)
	azureTenant(f, "azuread.certificate.tenant_id", p.TenantID, false)
	if p.CertificatePath == "" {
		f.add("azuread.certificate.certificate_path", "missing")
	}
}

// azureID checks an Azure identifier: 32 hexadecimal digits in groups.
func azureID(f *findings, path, id string, optional bool) {
	switch {
	case id == "" && optional:
	case id == "":
		f.add(path, "missing")
	default:
		if b, err := hex.DecodeString(strings.ReplaceAll(id, "-", "")); err != nil || len(b) != 16 {
			f.hint(path, "not an identifier of Azure", "write it like 00000000-0000-0000-0000-000000000000")
		}
	}
}

// azureTenant checks a tenant, which may also be a domain. It becomes part of a URL.
func azureTenant(f *findings, path, id string, optional bool) {
	switch {
	case id == "" && !optional:
		f.add(path, "missing")
	case !allOf(id, ".-"):
		f.hint(path, "not a tenant of Azure", "write its identifier, or its domain")
	}
}
