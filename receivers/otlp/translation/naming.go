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

// label returns the name of an attribute's label, "" if there is none for that key: it is empty, or nothing but
// characters to escape. Such an attribute is left out. (Prometheus refuses the whole request.)
func (n *naming) label(attribute string) string {
	name, ok := n.names[attribute]
	if !ok {
		var err error
		if name, err = n.namer.Build(attribute); err != nil {
			name = ""
		}
		n.names[attribute] = name
	}
	return name
}

// setResource sets the resource of the series that follow.
func (n *naming) setResource(attributes pcommon.Map) {
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
		if name := n.label(attribute); name != "" && n.promotes(attribute) {
			n.builder.Set(name, value.AsString())
		}
	}
	n.promoted = n.builder.Labels()
}

func (n *naming) promotes(attribute string) bool {
	if n.settings.PromoteAll {
		return !slices.Contains(n.settings.Ignore, attribute)
	}
	return slices.Contains(n.settings.Promote, attribute)
}

// setScope sets the scope of the series that follow.
func (n *naming) setScope(of pmetric.ScopeMetrics) {
	n.scope = n.scope[:0]
	scope := of.Scope()
	if !n.settings.ScopeLabels || scope.Name() == "" {
		return
	}
	n.builder.Reset(labels.EmptyLabels())
	for attribute, value := range scope.Attributes().All() {
		if name := n.label("otel_scope_" + attribute); name != "" && attribute != "" {
			n.builder.Set(name, value.AsString())
		}
	}
	n.builder.Labels().Range(func(l labels.Label) { n.scope = append(n.scope, l) })
	n.scope = append(n.scope,
		labels.Label{Name: "otel_scope_name", Value: scope.Name()},
		labels.Label{Name: "otel_scope_version", Value: scope.Version()},
		labels.Label{Name: "otel_scope_schema_url", Value: of.SchemaUrl()})
}

// series returns the labels of a series with these attributes, without a name.
func (n *naming) series(attributes pcommon.Map) labels.Labels {
	n.attributes(attributes, model.MetricNameLabel)
	n.promoted.Range(func(l labels.Label) {
		if n.builder.Get(l.Name) == "" {
			n.builder.Set(l.Name, l.Value)
		}
	})
	n.identify()
	for _, l := range n.scope {
		n.builder.Set(l.Name, l.Value)
	}
	return n.builder.Labels()
}

// info returns the labels of target_info.
func (n *naming) info(attributes pcommon.Map) labels.Labels {
	var without []string
	if !n.settings.KeepIdentifying {
		without = []string{serviceName, serviceNamespace, serviceInstance}
	}
	n.attributes(attributes, without...)
	n.identify()
	n.builder.Set(model.MetricNameLabel, TargetInfo)
	return n.builder.Labels()
}

// attributes begins a series with these attributes except some. If the labels of several attributes have the same name,
// their values are joined by semicolons, in the order of the attributes' names.
func (n *naming) attributes(attributes pcommon.Map, without ...string) {
	n.sorted.Reset()
	for attribute, value := range attributes.All() {
		if attribute != "" && !slices.Contains(without, attribute) {
			n.sorted.Add(attribute, value.AsString())
		}
	}
	n.sorted.Sort()
	if n.settings.AllowUTF8 {
		n.builder.Reset(n.sorted.Labels())
		return
	}
	n.builder.Reset(labels.EmptyLabels())
	n.sorted.Labels().Range(func(l labels.Label) {
		name := n.label(l.Name)
		if name == "" {
			return
		}
		if before := n.builder.Get(name); before != "" {
			l.Value = before + ";" + l.Value
		}
		n.builder.Set(name, l.Value)
	})
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
