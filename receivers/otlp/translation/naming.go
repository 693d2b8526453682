package translation

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The attributes that identify a resource, see
// https://opentelemetry.io/docs/specs/semconv/resource/#service.
const (
	serviceName      = "service.name"
	serviceNamespace = "service.namespace"
	serviceInstance  = "service.instance.id"
)

// naming turns attributes into labels. It keeps the labels that a resource and a scope give to each series until the
// next one is set.
type naming struct {
	settings Settings
	namer    otlptranslator.LabelNamer
	names    map[string]string // label names by attribute
	sorted   labels.ScratchBuilder
	builder  *labels.Builder

	job, instance string
	promoted      labels.Labels
	scope         []labels.Label // in the order in which they are set; an empty value removes
}

func newNaming(s Settings) naming {
	return naming{
		settings: s, names: map[string]string{}, sorted: labels.NewScratchBuilder(0), builder: labels.NewBuilder(labels.EmptyLabels()),
		namer: otlptranslator.LabelNamer{
			UTF8Allowed:                 s.AllowUTF8,
			UnderscoreLabelSanitization: s.SanitizeUnderscores, //nolint:staticcheck // Prometheus' setting of that name needs it
			PreserveMultipleUnderscores: s.KeepUnderscores,
		},
	}
}

// label returns the name of an attribute's label.
func (n *naming) label(attribute string) (string, error) {
	if name, ok := n.names[attribute]; ok {
		return name, nil
	}
	name, err := n.namer.Build(attribute)
	if err != nil {
		return "", err
	}
	n.names[attribute] = name
	return name, nil
}

// setResource sets the resource of the series that follow.
func (n *naming) setResource(attributes pcommon.Map) error {
	n.job, n.instance = "", ""
	if name, ok := attributes.Get(serviceName); ok {
		n.job = name.AsString()
		if namespace, ok := attributes.Get(serviceNamespace); ok {
			n.job = namespace.AsString() + "/" + n.job
		}
	}
	if instance, ok := attributes.Get(serviceInstance); ok {
		n.instance = instance.AsString()
	}
	n.builder.Reset(labels.EmptyLabels())
	for attribute, value := range attributes.All() {
		if !n.promotes(attribute) {
			continue
		}
		name, err := n.label(attribute)
		if err != nil {
			return err
		}
		n.builder.Set(name, value.AsString())
	}
	n.promoted = n.builder.Labels()
	return nil
}

func (n *naming) promotes(attribute string) bool {
	if n.settings.PromoteAll {
		return !slices.Contains(n.settings.Ignore, attribute)
	}
	return slices.Contains(n.settings.Promote, attribute)
}

// setScope sets the scope of the series that follow.
func (n *naming) setScope(of pmetric.ScopeMetrics) error {
	n.scope = n.scope[:0]
	scope := of.Scope()
	if !n.settings.ScopeLabels || scope.Name() == "" {
		return nil
	}
	n.builder.Reset(labels.EmptyLabels())
	for attribute, value := range scope.Attributes().All() {
		name, err := n.label("otel_scope_" + attribute)
		if err != nil {
			return err
		}
		n.builder.Set(name, value.AsString())
	}
	n.builder.Labels().Range(func(l labels.Label) { n.scope = append(n.scope, l) })
	n.scope = append(n.scope,
		labels.Label{Name: "otel_scope_name", Value: scope.Name()},
		labels.Label{Name: "otel_scope_version", Value: scope.Version()},
		labels.Label{Name: "otel_scope_schema_url", Value: of.SchemaUrl()})
	return nil
}

// series returns the labels of a series with these attributes, without a name.
func (n *naming) series(attributes pcommon.Map) (labels.Labels, error) {
	if err := n.attributes(attributes, model.MetricNameLabel); err != nil {
		return labels.EmptyLabels(), err
	}
	n.promoted.Range(func(l labels.Label) {
		if n.builder.Get(l.Name) == "" {
			n.builder.Set(l.Name, l.Value)
		}
	})
	n.identify()
	for _, l := range n.scope {
		n.builder.Set(l.Name, l.Value)
	}
	return n.builder.Labels(), nil
}

// info returns the labels of target_info.
func (n *naming) info(attributes pcommon.Map) (labels.Labels, error) {
	var without []string
	if !n.settings.KeepIdentifying {
		without = []string{serviceName, serviceNamespace, serviceInstance}
	}
	if err := n.attributes(attributes, without...); err != nil {
		return labels.EmptyLabels(), err
	}
	n.identify()
	n.builder.Set(model.MetricNameLabel, TargetInfo)
	return n.builder.Labels(), nil
}

// attributes begins a series with these attributes except some. If the labels of several attributes have the same name,
// their values are joined by semicolons, in the order of the attributes' names.
func (n *naming) attributes(attributes pcommon.Map, without ...string) (err error) {
	n.sorted.Reset()
	for attribute, value := range attributes.All() {
		if !slices.Contains(without, attribute) {
			n.sorted.Add(attribute, value.AsString())
		}
	}
	n.sorted.Sort()
	if n.settings.AllowUTF8 {
		n.builder.Reset(n.sorted.Labels())
		return nil
	}
	n.builder.Reset(labels.EmptyLabels())
	n.sorted.Labels().Range(func(l labels.Label) {
		if err != nil {
			return
		}
		var name string
		if name, err = n.label(l.Name); err != nil {
			return
		}
		if before := n.builder.Get(name); before != "" {
			l.Value = before + ";" + l.Value
		}
		n.builder.Set(name, l.Value)
	})
	return err
}

// identify adds the labels that identify the resource.
func (n *naming) identify() {
	if n.job != "" {
		n.builder.Set(model.JobLabel, n.job)
	}
	if n.instance != "" {
		n.builder.Set(model.InstanceLabel, n.instance)
	}
}

// named returns base with a name, and one more label unless its name is empty.
func (n *naming) named(base labels.Labels, name, label, value string) labels.Labels {
	n.builder.Reset(base)
	if label != "" {
		n.builder.Set(label, value)
	}
	n.builder.Set(model.MetricNameLabel, name)
	return n.builder.Labels()
}
