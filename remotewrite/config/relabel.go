package config

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// Relabeler derives the labels of a series at one target: external labels merged, then
// write_relabel_configs applied. Not safe for concurrent use.
type Relabeler struct {
	external labels.Labels
	rules    []*relabel.Config
	builder  *labels.Builder
}

// NewRelabeler makes a Relabeler. The rules must be valid (see [Config.Validate]).
func NewRelabeler(external labels.Labels, rules []*relabel.Config) *Relabeler {
	return &Relabeler{external: external, rules: rules, builder: labels.NewBuilder(labels.EmptyLabels())}
}

// Apply returns a builder with the final labels of a series, valid until the next call. It
// returns nil if the rules remove the series. External labels do not override labels of
// the series, and the rules see them, as in Prometheus.
func (r *Relabeler) Apply(ls labels.Labels) *labels.Builder {
	r.builder.Reset(ls)
	r.external.Range(func(l labels.Label) {
		if !ls.Has(l.Name) {
			r.builder.Set(l.Name, l.Value)
		}
	})
	if !relabel.ProcessBuilder(r.builder, r.rules...) {
		return nil
	}
	return r.builder.Del("") // a labelmap can make a label without a name, for which a receiver refuses the series
}
