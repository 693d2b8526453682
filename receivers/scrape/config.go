package scrape

import (
	"errors"
	"fmt"
	"reflect"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"
)

// Mistake is a mistake in a configuration.
type Mistake struct {
	Key  string // its place below the configuration, as in static_configs[0].targets[1]; "" for the whole
	Text string
}

// Jobs are checked scrape configurations. They must not be changed.
type Jobs struct {
	common *global
	all    []*settings // in the order of the configuration
}

// NewJobs returns no jobs, with what those to be added share. The error is a mistake in these settings.
func NewJobs(interval, timeout model.Duration, g Global) (*Jobs, error) {
	common := &global{g, interval, timeout}
	return &Jobs{common: common}, common.complete()
}

// Add decodes one scrape configuration from a mapping and checks it as Prometheus does. Relative paths are relative to dir.
// It returns the error of the YAML package and what else is wrong; without any mistake it adds the job. The caller must
// check that names are unique.
func (j *Jobs) Add(n *yaml.Node, dir string) ([]Mistake, error) {
	var s *settings
	err := n.Load(&s, yaml.WithKnownFields())
	if s == nil {
		s = new(settings)
	}
	mistakes := append(s.check(), s.complete(j.common)...)
	if err == nil && len(mistakes) == 0 {
		s.setDirectory(dir)
		j.all = append(j.all, s)
	}
	return mistakes, err
}

// Default limits of jobs, where Prometheus has none.
const (
	// defaultBodySize is below the 16 MiB at which a label makes the labels library panic, so
	// that no page can contain such a label.
	defaultBodySize = 15 << 20
	// defaultSamples bounds the memory that one page can take, at about 2 KB a series.
	defaultSamples = 200_000
)

// Names returns the names of the jobs, in the order of the configuration; none for nil Jobs.
func (j *Jobs) Names() []string {
	var names []string
	for _, s := range j.settings() {
		names = append(names, s.JobName)
	}
	return names
}

// Same reports whether j and other have the same job of that name, or one of them lacks it.
func (j *Jobs) Same(other *Jobs, name string) bool {
	for _, a := range j.settings() {
		for _, b := range other.settings() {
			if a.JobName == name && b.JobName == name {
				return reflect.DeepEqual(a, b)
			}
		}
	}
	return true
}

func (j *Jobs) settings() []*settings {
	if j == nil {
		return nil
	}
	return j.all
}

// MarshalYAML returns the configurations as a list, with defaults filled in and secrets hidden.
func (j *Jobs) MarshalYAML() (any, error) { return j.settings(), nil }

// File is a file that a configuration names.
type File struct {
	Job, Path string
	Secret    bool // others should not be able to read it
}

// Files returns the files from which jobs read credentials and certificates.
func (j *Jobs) Files() []File {
	var all []File
	for _, s := range j.settings() {
		add := func(secret bool, paths ...string) {
			for _, p := range paths {
				if p != "" {
					all = append(all, File{s.JobName, p, secret})
				}
			}
		}
		clients := []commonconfig.HTTPClientConfig{s.HTTPClientConfig}
		for _, h := range s.HTTP {
			clients = append(clients, h.HTTPClientConfig)
		}
		for _, k := range s.Kubernetes {
			add(true, k.KubeConfig)
			if a, err := k.Access(surroundings()); err == nil {
				clients = append(clients, a.HTTP)
			}
		}
		for _, c := range clients {
			add(false, c.TLSConfig.CAFile, c.TLSConfig.CertFile)
			add(true, c.TLSConfig.KeyFile, c.BearerTokenFile)
			if c.BasicAuth != nil {
				add(true, c.BasicAuth.UsernameFile, c.BasicAuth.PasswordFile)
			}
			if c.Authorization != nil {
				add(true, c.Authorization.CredentialsFile)
			}
			if o := c.OAuth2; o != nil {
				add(true, o.ClientSecretFile, o.ClientCertificateKeyFile, o.TLSConfig.KeyFile)
				add(false, o.TLSConfig.CAFile, o.TLSConfig.CertFile)
			}
			if c.HTTPHeaders != nil {
				for _, h := range c.HTTPHeaders.Headers {
					add(true, h.Files...)
				}
			}
		}
	}
	return all
}

// clientErrors returns, by name, the jobs whose HTTP client cannot be made, for example because a
// certificate is missing.
func (j *Jobs) clientErrors() map[string]error {
	bad := map[string]error{}
	for _, s := range j.settings() {
		c, err := newClient(s.HTTPClientConfig, nil, "")
		if err != nil {
			bad[s.JobName] = err
			continue
		}
		c.close()
		for _, k := range s.Kubernetes {
			if err := checkAccess(k); err != nil {
				bad[s.JobName] = fmt.Errorf("kubernetes_sd_configs: %w", err)
			}
		}
	}
	return bad
}

// Check returns an error for each job that cannot work with the files it names.
func (j *Jobs) Check() error {
	var errs []error
	bad := j.clientErrors()
	for _, name := range j.Names() {
		if err := bad[name]; err != nil {
			errs = append(errs, fmt.Errorf("scrape job %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// schema is the shape of a scrape configuration as YAML, for hints about its keys.
type schema struct {
	Settings settings `yaml:",inline"`

	// Own holds the agent's additions to Prometheus' keys. Parse does not accept them.
	Own struct {
		MaxSeries int `yaml:"max_series"`
	} `yaml:"hwsagent"`
}

// Schema returns a type shaped like a scrape configuration, for hints about its keys.
func Schema() reflect.Type { return reflect.TypeFor[schema]() }
