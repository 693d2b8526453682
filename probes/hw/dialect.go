package hw

import (
	"slices"

	"hwsagent/probes"
)

// Dialect writes the vocabulary in other names. It is only read, so probes may share it.
type Dialect struct {
	families  map[*probes.Family]*probes.Family
	enclosure map[*probes.Family]*probes.Family // of the kind enclosure
	labels    map[string]string
}

// Dialects are the words of hw_labels.
func Dialects() []string { return []string{SemanticConventions, MetricsHub} }

// NewDialect is the dialect of that word; nil for that of the conventions, which needs no translation.
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

// Translate gives a sample of the vocabulary its name and labels in the dialect, in its own memory. Other samples stay as they are, and
// so does each sample with a nil Dialect.
func (d *Dialect) Translate(s *probes.Sample) {
	if d == nil {
		return
	}
	family := d.families[s.Family]
	if family == nil {
		return
	}
	if of := d.enclosure[s.Family]; of != nil {
		if i := slices.Index(s.Labels, "hw_type"); i >= 0 && s.Labels[i+1] == kinds[Enclosure] {
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
