package scrape

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	commonconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v2"
)

// Entry is one scrape configuration.
type Entry struct {
	// Text is the mapping in YAML's flow style. Line breaks may stand between any two
	// tokens, so that errors can be reported by line.
	Text string
	Dir  string // base of relative paths
}

// Source is the input for Jobs.
type Source struct {
	// Global is the mapping of the common settings, in flow style: Prometheus' global, with
	// at least scrape_interval and scrape_timeout.
	Global  string
	Entries []Entry
}

// Mistake is an error in a configuration.
type Mistake struct {
	Entry int    // index into Source.Entries; -1 for Global
	Line  int    // of the text, from 1; 0 if unknown
	Key   string // name of an unknown key
	Text  string
}

// Jobs are checked scrape configurations. They must not be changed.
type Jobs struct {
	all []*settings // in the order of the configuration
}

// Parse checks configurations as Prometheus does, each by itself. Without mistakes it returns the
// jobs. The caller must check that names are unique, since they may come from several files.
func Parse(src Source) (*Jobs, []Mistake) {
	common, err := parseGlobal(src.Global)
	if err != nil {
		return nil, mistakesOf(-1, err)
	}
	jobs := &Jobs{}
	var mistakes []Mistake
	for i, e := range src.Entries {
		s, err := parseEntry(e, common)
		if err != nil {
			mistakes = append(mistakes, mistakesOf(i, err)...)
			continue
		}
		jobs.all = append(jobs.all, s)
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return jobs, nil
}

// parseGlobal reads the settings that jobs share.
func parseGlobal(text string) (*global, error) {
	// UnmarshalYAML is not called for a null, so the caller completes common again.
	var common global
	if err := yaml.UnmarshalStrict([]byte(text), &common); err != nil {
		return nil, err
	}
	return &common, common.complete()
}

// parseEntry reads one configuration.
func parseEntry(e Entry, common *global) (*settings, error) {
	var s *settings
	if err := yaml.UnmarshalStrict([]byte(e.Text), &s); err != nil {
		return nil, err
	}
	if err := s.complete(common); err != nil {
		return nil, err
	}
	s.setDirectory(e.Dir)
	return s, nil
}

// Default limits of jobs, where Prometheus has none.
const (
	// defaultBodySize is below the 16 MiB at which a label makes the labels library panic, so
	// that no page can contain such a label.
	defaultBodySize = 15 << 20
	// defaultSamples bounds the memory that one page can take, at about 2 KB a series.
	defaultSamples = 200_000
)

var (
	atLine     = regexp.MustCompile(`^(?:yaml: )?line (\d+): (?s:(.*))$`)
	unknownKey = regexp.MustCompile(`^field (.+) not found in type \S+$`)
)

// mistakesOf splits an error of the YAML package, or of a configuration's own check.
func mistakesOf(entry int, err error) []Mistake {
	if err == nil {
		return nil
	}
	texts := []string{err.Error()}
	var many *yaml.TypeError
	if errors.As(err, &many) {
		texts = many.Errors
	}
	var all []Mistake
	for _, text := range texts {
		m := Mistake{Entry: entry, Text: strings.TrimPrefix(text, "yaml: ")}
		if found := atLine.FindStringSubmatch(text); found != nil {
			if line, err := strconv.Atoi(found[1]); err == nil {
				m.Line, m.Text = line, found[2]
			}
		}
		if found := unknownKey.FindStringSubmatch(m.Text); found != nil {
			m.Key = found[1]
		}
		all = append(all, m)
	}
	return all
}

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

// YAML returns the configurations as a list, with defaults filled in and secrets hidden.
func (j *Jobs) YAML() ([]byte, error) {
	return yaml.Marshal(j.settings())
}

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

// Kinds returns the keys of a scrape configuration that list its targets.
func Kinds() []string {
	return []string{"static_configs", "file_sd_configs", "http_sd_configs", "dns_sd_configs", "kubernetes_sd_configs"}
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
