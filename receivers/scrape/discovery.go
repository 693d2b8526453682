package scrape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/dns"
	"github.com/prometheus/prometheus/discovery/file"
	"github.com/prometheus/prometheus/discovery/http"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.yaml.in/yaml/v2"
)

// maxListBytes bounds a list of targets, uncompressed.
const maxListBytes = 15 << 20

// discoveries say how the targets of each job are found, by the job's name. The manager compares
// them to find what a reload changes, so guards must be the same pointer each time.
func (j *Jobs) discoveries(g *guards) map[string]discovery.Configs {
	all := map[string]discovery.Configs{}
	for _, s := range j.scrapeConfigs() {
		configs := discovery.Configs{}
		for _, c := range s.ServiceDiscoveryConfigs {
			switch c := c.(type) {
			case *http.SDConfig:
				configs = append(configs, &listOverHTTP{*c, g})
			case *file.SDConfig:
				configs = append(configs, &listInFiles{*c, g})
			default:
				configs = append(configs, c)
			}
		}
		all[s.JobName] = configs
	}
	return all
}

// listMetrics are those of the discoverers of this package.
type listMetrics struct {
	refresh discovery.RefreshMetricsInstantiator
	reg     prometheus.Registerer
	failed  prometheus.Counter
}

// Register implements [discovery.DiscovererMetrics].
func (m *listMetrics) Register() error { return m.reg.Register(m.failed) }

// Unregister implements [discovery.DiscovererMetrics].
func (m *listMetrics) Unregister() { m.reg.Unregister(m.failed) }

func newListMetrics(reg prometheus.Registerer, refresh discovery.RefreshMetricsInstantiator, name, help string) *listMetrics {
	return &listMetrics{refresh, reg, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})}
}

// newSDMetrics registers the metrics of all kinds of discovery.
func newSDMetrics(reg prometheus.Registerer) (*discovery.SDMetrics, error) {
	refresh := discovery.NewRefreshMetrics(reg)
	all := &discovery.SDMetrics{RefreshManager: refresh, MechanismMetrics: map[string]discovery.DiscovererMetrics{}}
	errs := []error{refresh.Register()}
	for _, c := range []discovery.Config{&listInFiles{}, &listOverHTTP{}, &dns.SDConfig{}, discovery.StaticConfig{}} {
		m := c.NewDiscovererMetrics(reg, refresh)
		errs = append(errs, m.Register())
		all.MechanismMetrics[c.Name()] = m
	}
	return all, errors.Join(errs...)
}

// listed is a group of targets as files and answers have it.
type listed struct {
	Targets []string       `json:"targets" yaml:"targets"`
	Labels  model.LabelSet `json:"labels"  yaml:"labels"`
}

// readJSON reads a list of groups. It refuses a list of more targets than a job may have before it
// makes anything of them.
func readJSON(text []byte) ([]listed, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var all []*listed
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the list")
	}
	return checkList(all)
}

// readYAML does so with YAML.
func readYAML(text []byte) ([]listed, error) {
	var all []*listed
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
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

// groups are the groups of a list that comes from source, with one more label. before is how many
// groups the source had last time: those that it has no more come empty.
func groups(list []listed, source string, label, value string, before int) []*targetgroup.Group {
	var all []*targetgroup.Group
	for i, g := range list {
		group := &targetgroup.Group{Source: fmt.Sprintf("%s:%d", source, i), Labels: model.LabelSet{}}
		for name, v := range g.Labels {
			group.Labels[name] = v
		}
		group.Labels[model.LabelName(label)] = model.LabelValue(value)
		for _, t := range g.Targets {
			group.Targets = append(group.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(t)})
		}
		all = append(all, group)
	}
	for i := len(list); i < before; i++ {
		all = append(all, &targetgroup.Group{Source: fmt.Sprintf("%s:%d", source, i)})
	}
	return all
}
