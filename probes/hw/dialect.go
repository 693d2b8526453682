package hw

import (
	"maps"
	"slices"
	"strings"

	"hwsagent/probes"
)

// Dialect translates the names of the vocabulary. It is immutable, so probes may share it.
type Dialect struct {
	families  map[*probes.Family]*probes.Family
	enclosure map[*probes.Family]*probes.Family // names for components of the kind enclosure
	labels    map[string]string
}

// Dialects returns the possible values of hw_labels.
func Dialects() []string { return []string{SemanticConventions, MetricsHub} }

// OwnLabels returns the labels of a stored sample that are the vocabulary's, under its names. A sample with the label id has MetricsHub's
// names; those for which the vocabulary has several get one of them.
func OwnLabels(pairs []string) (own []string) {
	back := map[string]string{"error_type": "error_type", "network_io_direction": "network_io_direction"}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] != hubLabels[LabelID] {
			continue
		}
		for _, ours := range slices.Sorted(maps.Keys(hubLabels)) {
			back[hubLabels[ours]] = ours
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		name := back[pairs[i]]
		if name == "" && strings.HasPrefix(pairs[i], Prefix) {
			name = pairs[i]
		}
		if name != "" {
			own = append(own, name, pairs[i+1])
		}
	}
	return own
}

// NewDialect returns the dialect for a value of hw_labels; nil for the semantic conventions, which need no translation.
func NewDialect(word string) *Dialect {
	if word != MetricsHub {
		return nil
	}
	d := &Dialect{families: make(map[*probes.Family]*probes.Family, len(table)), enclosure: make(map[*probes.Family]*probes.Family), labels: hubLabels}
	for i := range table {
		own, r := &families[i], table[i]
		d.families[own] = own
		if other, ok := hubNames[Metric(i)]; ok {
			r.convention, r.unit = other.name, other.unit
			f := r.family()
			d.families[own] = &f
		}
		if name := hubEnclosure[Metric(i)]; name != "" {
			r.convention = name
			f := r.family()
			d.enclosure[own] = &f
		}
	}
	return d
}

// Translate renames the metric and the labels of a sample of the vocabulary, in the sample's own memory. It leaves any other sample as
// it is; a nil Dialect leaves every sample as it is.
func (d *Dialect) Translate(s *probes.Sample) {
	if d == nil {
		return
	}
	family := d.families[s.Family]
	if family == nil {
		return
	}
	if of := d.enclosure[s.Family]; of != nil {
		if i := slices.Index(s.Labels, LabelType); i >= 0 && s.Labels[i+1] == kinds[Enclosure] {
			family = of
		}
	}
	s.Family = family
	for i := 0; i < len(s.Labels); i += 2 {
		if name := d.labels[s.Labels[i]]; name != "" {
			s.Labels[i] = name
		}
	}
}
