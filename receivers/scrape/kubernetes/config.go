package kubernetes

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	commonconfig "github.com/prometheus/common/config"
)

// Role is the kind of object that targets are made from.
type Role string

// The roles, as in Prometheus.
const (
	RoleNode          Role = "node"
	RolePod           Role = "pod"
	RoleService       Role = "service"
	RoleEndpoints     Role = "endpoints"
	RoleEndpointSlice Role = "endpointslice"
	RoleIngress       Role = "ingress"
)

// roles returns all roles, each with the roles whose objects its selectors may choose.
func roles() map[Role][]Role {
	return map[Role][]Role{
		RoleNode:          {RoleNode},
		RolePod:           {RolePod, RoleNode},
		RoleService:       {RoleService},
		RoleEndpoints:     {RolePod, RoleService, RoleEndpoints},
		RoleEndpointSlice: {RolePod, RoleService, RoleEndpointSlice},
		RoleIngress:       {RoleIngress},
	}
}

// roleNames lists the roles, for people.
const roleNames = "node, pod, service, endpoints, endpointslice or ingress"

// Config is an entry of kubernetes_sd_configs, with Prometheus' keys, defaults and checks. It must not
// be changed once a [Discovery] has it.
type Config struct {
	// APIServer is where the API is. Without it and KubeConfig, the agent runs in a pod and uses its
	// service account.
	APIServer        commonconfig.URL              `yaml:"api_server,omitempty"`
	Role             Role                          `yaml:"role"`
	KubeConfig       string                        `yaml:"kubeconfig_file"` // a path
	HTTPClientConfig commonconfig.HTTPClientConfig `yaml:",inline"`
	Namespaces       Namespaces                    `yaml:"namespaces,omitempty"`
	Selectors        []Selector                    `yaml:"selectors,omitempty"` // at most one per role
	AttachMetadata   AttachMetadata                `yaml:"attach_metadata,omitempty"`
}

// Namespaces are the namespaces to search; all if none are given.
type Namespaces struct {
	Own   bool     `yaml:"own_namespace"` // the namespace of the agent's own pod
	Names []string `yaml:"names"`
}

// Selector selects objects of a role, in the syntax of the API
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors).
type Selector struct {
	Role  Role   `yaml:"role,omitempty"`
	Label string `yaml:"label,omitempty"`
	Field string `yaml:"field,omitempty"`
}

// AttachMetadata says whose labels a target gets in addition.
type AttachMetadata struct {
	Node       bool `yaml:"node"`
	Namespace  bool `yaml:"namespace"`
	Deployment bool `yaml:"deployment"`
	Job        bool `yaml:"job"`
	CronJob    bool `yaml:"cronjob"`
}

// UnmarshalYAML decodes on top of the defaults. It refuses the same configurations as Prometheus.
func (c *Config) UnmarshalYAML(unmarshal func(any) error) error {
	*c = Config{HTTPClientConfig: commonconfig.DefaultHTTPClientConfig}
	type plain Config
	if err := unmarshal((*plain)(c)); err != nil {
		return err
	}
	if c.Role == "" {
		return errors.New("role is missing: it is one of " + roleNames)
	}
	if roles()[c.Role] == nil {
		return fmt.Errorf("role %q is unknown: it is one of %s", c.Role, roleNames)
	}
	if err := c.HTTPClientConfig.Validate(); err != nil {
		return err
	}
	if err := c.checkServer(); err != nil {
		return err
	}
	return c.checkSelectors()
}

// checkServer refuses more than one way to reach the API.
func (c *Config) checkServer() error {
	custom := !reflect.DeepEqual(c.HTTPClientConfig, commonconfig.DefaultHTTPClientConfig)
	u := c.APIServer.URL
	switch {
	case u != nil && c.KubeConfig != "":
		return errors.New("api_server and kubeconfig_file exclude each other")
	case custom && c.KubeConfig != "":
		return errors.New("kubeconfig_file has the login: authentication, tls_config and similar keys must not stand beside it")
	case custom && u == nil:
		return errors.New("api_server is missing: authentication, tls_config and the like need it")
	case u != nil && c.Namespaces.Own:
		return errors.New("api_server and namespaces.own_namespace exclude each other")
	case c.KubeConfig != "" && c.Namespaces.Own:
		return errors.New("kubeconfig_file and namespaces.own_namespace exclude each other")
	case u != nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
		return errors.New("api_server is not an address such as https://host:6443")
	}
	return nil
}

func (c *Config) checkSelectors() error {
	seen := map[Role]bool{}
	for _, s := range c.Selectors {
		if roles()[s.Role] == nil {
			return fmt.Errorf("selectors: role %q is unknown", s.Role)
		}
		if seen[s.Role] {
			return fmt.Errorf("selectors: there are two for role %s; write one, with a comma between the parts", s.Role)
		}
		seen[s.Role] = true
		if may := roles()[c.Role]; !slices.Contains(may, s.Role) {
			var names []string
			for _, r := range may {
				names = append(names, string(r))
			}
			return fmt.Errorf("selectors: role %s allows selectors of %s only, not of %s", c.Role, strings.Join(names, ", "), s.Role)
		}
		if err := checkFieldSelector(s.Field); err != nil {
			return fmt.Errorf("selectors: field of role %s: %w", s.Role, err)
		}
		if err := checkLabelSelector(s.Label); err != nil {
			return fmt.Errorf("selectors: label of role %s: %w", s.Role, err)
		}
	}
	return nil
}

// SetDirectory makes relative paths relative to dir.
func (c *Config) SetDirectory(dir string) {
	c.HTTPClientConfig.SetDirectory(dir)
	c.KubeConfig = commonconfig.JoinDir(dir, c.KubeConfig)
}

// selector returns the selector for the objects of a resource.
func (c *Config) selector(k kind) Selector {
	for _, s := range c.Selectors {
		if string(s.Role) == k.role() {
			return s
		}
	}
	return Selector{}
}
