package scrape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.yaml.in/yaml/v4"
)

// fileSettings is an entry of file_sd_configs.
type fileSettings struct {
	Files           []string       `yaml:"files"`
	RefreshInterval model.Duration `yaml:"refresh_interval,omitempty"`
}

// listFileName matches the allowed names of target files.
var listFileName = regexp.MustCompile(`^[^*]*(\*[^/]*)?\.(json|yml|yaml|JSON|YML|YAML)$`)

// UnmarshalYAML implements [yaml.Unmarshaler].
func (c *fileSettings) UnmarshalYAML(unmarshal func(any) error) error {
	c.RefreshInterval = model.Duration(5 * time.Minute)
	type plain fileSettings
	if err := unmarshal((*plain)(c)); err != nil {
		return err
	}
	if len(c.Files) == 0 {
		return errors.New("file service discovery config must contain at least one path name")
	}
	for _, name := range c.Files {
		if !listFileName.MatchString(name) {
			return fmt.Errorf("path name %q is not valid for file discovery", name)
		}
	}
	return nil
}

// httpSettings is an entry of http_sd_configs.
type httpSettings struct {
	HTTPClientConfig commonconfig.HTTPClientConfig `yaml:",inline"`
	RefreshInterval  model.Duration                `yaml:"refresh_interval,omitempty"`
	URL              string                        `yaml:"url"`
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (c *httpSettings) UnmarshalYAML(unmarshal func(any) error) error {
	c.HTTPClientConfig, c.RefreshInterval = commonconfig.DefaultHTTPClientConfig, model.Duration(time.Minute)
	type plain httpSettings
	if err := unmarshal((*plain)(c)); err != nil {
		return err
	}
	if c.URL == "" {
		return errors.New("URL is missing")
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil: // whose text repeats parts of the URL
		return errors.New("url is not a URL such as https://host:port/path")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("URL scheme must be 'http' or 'https'")
	case u.Host == "":
		return errors.New("host is missing in URL")
	}
	return c.HTTPClientConfig.Validate()
}

// dnsSettings is an entry of dns_sd_configs.
type dnsSettings struct {
	Names           []string       `yaml:"names"`
	RefreshInterval model.Duration `yaml:"refresh_interval,omitempty"`
	Type            string         `yaml:"type"`
	Port            int            `yaml:"port"` // for records without a port: all types but SRV
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (c *dnsSettings) UnmarshalYAML(unmarshal func(any) error) error {
	c.RefreshInterval, c.Type = model.Duration(30*time.Second), "SRV"
	type plain dnsSettings
	if err := unmarshal((*plain)(c)); err != nil {
		return err
	}
	if len(c.Names) == 0 {
		return errors.New("DNS-SD config must contain at least one SRV record name")
	}
	switch strings.ToUpper(c.Type) {
	case "SRV":
		return nil
	case "A", "AAAA", "MX", "NS":
		if c.Port == 0 {
			return errors.New("a port is required in DNS-SD configs for all record types except SRV")
		}
		return nil
	}
	return fmt.Errorf("invalid DNS-SD records type %s", c.Type)
}

// maxListBytes bounds a list of targets, uncompressed.
const maxListBytes = 15 << 20

// listed is a group of targets as written in the configuration, files and answers.
type listed struct {
	Targets []string       `json:"targets" yaml:"targets"`
	Labels  model.LabelSet `json:"labels"  yaml:"labels,omitempty"`
}

// readJSON reads a list of groups, one group at a time, since a JSON decoder copies each value that it
// decodes. It refuses a list with more targets than a job may have before it builds anything.
func readJSON(text []byte) ([]listed, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var all []*listed
	switch begin, err := d.Token(); {
	case err != nil:
		return nil, err
	case begin == json.Delim('['):
		for d.More() {
			var g *listed
			if err := d.Decode(&g); err != nil {
				return nil, err
			}
			all = append(all, g)
		}
		if _, err := d.Token(); err != nil { // the end of the list
			return nil, err
		}
	case begin != nil: // null is a list without groups
		return nil, fmt.Errorf("it is not a list of groups: it begins with %.20q", fmt.Sprint(begin))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the list")
	}
	return checkList(all)
}

// readYAML does the same for YAML.
func readYAML(text []byte) ([]listed, error) {
	var all []*listed
	in, err := yaml.NewLoader(bytes.NewReader(text), yaml.WithKnownFields())
	if err != nil {
		return nil, err
	}
	if err := in.Load(&all); err != nil && !errors.Is(err, io.EOF) { // an empty file has no groups
		return nil, err
	}
	return checkList(all)
}

func checkList(all []*listed) ([]listed, error) {
	list := make([]listed, 0, len(all))
	n := 0
	for _, g := range all {
		if g == nil {
			return nil, errors.New("a group of the list is null")
		}
		n += len(g.Targets)
		list = append(list, *g)
	}
	if n > maxTargets {
		return nil, fmt.Errorf("it lists %d targets, more than the %d that a job may have", n, maxTargets)
	}
	return list, nil
}

// groups returns the groups of a list from source, with one more label. before is the number of
// groups that the source had last time; groups that it no longer has come back empty.
func groups(list []listed, source string, label, value string, before int) []*targetgroup.Group {
	all := make([]*targetgroup.Group, 0, max(len(list), before))
	alone := model.LabelSet{model.LabelName(label): model.LabelValue(value)} // shared by all groups without labels
	for i, g := range list {
		group := g.group(fmt.Sprintf("%s:%d", source, i))
		if len(g.Labels) == 0 {
			group.Labels = alone
		}
		group.Labels[model.LabelName(label)] = model.LabelValue(value)
		all = append(all, group)
	}
	for i := len(list); i < before; i++ {
		all = append(all, &targetgroup.Group{Source: fmt.Sprintf("%s:%d", source, i)})
	}
	return all
}

// group returns the group under that source.
func (g *listed) group(source string) *targetgroup.Group {
	group := &targetgroup.Group{Source: source, Labels: model.LabelSet{}}
	maps.Copy(group.Labels, g.Labels)
	for _, t := range g.Targets {
		group.Targets = append(group.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(t)})
	}
	return group
}

// staticGroups returns the groups of static_configs, with their numbers as sources.
func staticGroups(list []*listed) (all []*targetgroup.Group) {
	for i, g := range list {
		all = append(all, g.group(strconv.Itoa(i)))
	}
	return all
}
