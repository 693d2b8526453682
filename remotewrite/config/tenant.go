package config

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

// TenantConfig makes an entry stand for several tenants of one receiver. The value of a label
// is a sample's tenant; a header names the tenant to the receiver. Each tenant gets a target of
// its own, see package tenant.
type TenantConfig struct {
	// Label is the label whose value is the tenant, after external_labels and write_relabel_configs; required.
	Label     string `yaml:"label"`
	Header    string `yaml:"header"`               // carries the tenant in each request; `THANOS-TENANT` for Thanos; default X-Scope-OrgID
	Default   string `yaml:"default,omitempty"`    // the tenant of samples without another one; without it they are dropped as no_tenant
	DropLabel bool   `yaml:"drop_label,omitempty"` // leave the label out of sent samples if the header has the same value

	MaxTenants  int            `yaml:"max_tenants"`  // tenants with a target of their own, besides the default, at most 1000; default 20
	ForgetAfter model.Duration `yaml:"forget_after"` // how long after its last sample a tenant is removed; 0: never; default 24h

	// CredentialsDir has a file with the bearer token for each tenant, named after the tenant.
	CredentialsDir string `yaml:"credentials_dir,omitempty"`
}

// The default and the upper bound of max_tenants. Each tenant reads the log.
const (
	defaultTenants = 20
	mostTenants    = 1000
)

// UnmarshalYAML decodes on top of the defaults.
func (c *TenantConfig) UnmarshalYAML(unmarshal func(any) error) error {
	*c = TenantConfig{Header: "X-Scope-OrgID", MaxTenants: defaultTenants, ForgetAfter: model.Duration(24 * time.Hour)}
	type plain TenantConfig
	return unmarshal((*plain)(c))
}

// maxTenantID bounds a tenant's ID, in bytes.
const maxTenantID = 150

// CheckTenant returns why a receiver would not accept a tenant's ID. The rules are those of Mimir,
// Cortex and Loki: letters, digits and !-_.*'(), at most 150 bytes, neither "." nor
// "..". So an ID is safe in a header and cannot lead out of a directory.
func CheckTenant(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("the tenant is empty")
	case len(id) > maxTenantID:
		return fmt.Errorf("the tenant has %d bytes, more than %d", len(id), maxTenantID)
	case id == "." || id == "..":
		return fmt.Errorf("%q cannot be a tenant", id)
	case id == "__mimir_cluster":
		return fmt.Errorf("%q is the receiver's own", id)
	case !allOf(id, "!-_.*'()"):
		return fmt.Errorf("%q cannot be a tenant: only letters, digits and !-_.*'() are allowed", id)
	}
	return nil
}

// TenantRole is the kind of target in an entry with tenants.
type TenantRole uint8

const (
	RoleNone    TenantRole = iota // the entry as written
	RoleTenant                    // the target of one tenant
	RoleDefault                   // the default target, for samples of no tenant that has a target
)

// ForTenant returns the configuration of one tenant's target. It omits the keys that concern only
// the whole entry, so that changing them does not restart the tenant's target.
func (c *Config) ForTenant(id string) *Config {
	m := c.forTarget(RoleTenant, id)
	m.Name = c.TargetName() + "/" + id
	m.Target.Tenant = &TenantConfig{Label: c.Target.Tenant.Label, Header: c.Target.Tenant.Header, DropLabel: c.Target.Tenant.DropLabel}
	return m
}

// ForRest returns the configuration of the default target: it has the entry's name and the default
// tenant, and gets the samples of all tenants without a target of their own.
func (c *Config) ForRest() *Config { return c.forTarget(RoleDefault, c.Target.Tenant.Default) }

// Routed returns the configuration for samples that have their final labels and belong to the target: without
// write_relabel_configs and tenants.
func (c *Config) Routed() Config {
	m := *c
	m.role, m.tenant, m.Target.Tenant, m.WriteRelabelConfigs = RoleNone, "", nil, nil
	return m
}

func (c *Config) forTarget(role TenantRole, id string) *Config {
	m := *c
	m.role, m.tenant = role, id
	if dir := c.Target.Tenant.CredentialsDir; dir != "" && id != "" {
		m.HTTP.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: filepath.Join(dir, id)}
	}
	return &m
}

// Tenant returns the tenant of the target's requests; "" if there is none.
func (c *Config) Tenant() string { return c.tenant }

// SetTenantHeader adds the header that names the tenant, if there is one.
func (c *Config) SetTenantHeader(h http.Header) {
	if c.tenant != "" {
		h.Set(c.Target.Tenant.Header, c.tenant)
	}
}

func (c *Config) validateTenant(f *findings) {
	t := c.Target.Tenant
	if t == nil {
		return
	}
	const path = "hwsagent.tenant."
	switch {
	case t.Label == "":
		f.hint(path+"label", "missing", "name the label whose value is the tenant, such as tenant")
	case t.Label == model.MetricNameLabel || !model.UTF8Validation.IsValidLabelName(t.Label):
		f.add(path+"label", fmt.Sprintf("%q is not the name of a label", t.Label))
	}
	if t.Header == "" {
		f.hint(path+"header", "is empty", "leave it out for X-Scope-OrgID")
	} else {
		validateHeader(f, path+"header", t.Header)
		c.validateTenantHeader(f, path+"header")
	}
	if t.Default != "" {
		if err := CheckTenant(t.Default); err != nil {
			f.add(path+"default", err.Error())
		}
	}
	if t.MaxTenants < 1 || t.MaxTenants > mostTenants {
		f.add(path+"max_tenants", fmt.Sprintf("%d is not between 1 and %d", t.MaxTenants, mostTenants))
	}
	if t.CredentialsDir != "" && !c.UsesCloud() && len(c.authMethods()) > 1 { // validateCloud reports it for a cloud
		f.hint(path+"credentials_dir", "there is another authentication method; at most one is possible", "remove one of them")
	}
}

// validateTenantHeader refuses a second value for the tenant's header.
func (c *Config) validateTenantHeader(f *findings, path string) {
	names := slices.Collect(maps.Keys(c.Headers))
	if c.HTTP.HTTPHeaders != nil {
		names = slices.AppendSeq(names, maps.Keys(c.HTTP.HTTPHeaders.Headers))
	}
	for _, name := range names {
		if strings.EqualFold(name, c.Target.Tenant.Header) {
			f.hint(path, fmt.Sprintf("the entry's headers have %s as well", name), "remove it there; tenant.default is for samples of no tenant")
			return
		}
	}
}
