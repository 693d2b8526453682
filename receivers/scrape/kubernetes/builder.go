package kubernetes

import (
	"maps"
	"strings"
	"unique"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// prefix is the prefix of all labels of this discovery.
const prefix = model.MetaLabelPrefix + "kubernetes_"

// Labels of all roles.
const namespaceLabel = prefix + "namespace"

// present is the value of labels that only say that another label exists.
const present = model.LabelValue("true")

// builder makes groups of targets. The result depends only on its view.
type builder struct {
	attach AttachMetadata
	role   Role
	view   *view
}

// source returns the name of the group of an object, as in Prometheus.
func (b *builder) source(r ref) string {
	switch r.kind {
	case nodes:
		return "node/" + r.name
	case services:
		return "svc/" + r.namespace + "/" + r.name
	}
	return r.kind.role() + "/" + r.namespace + "/" + r.name
}

// group returns the group of targets of an object; an empty one if it has no targets or no longer exists.
func (b *builder) group(r ref) *targetgroup.Group {
	g := &targetgroup.Group{Source: b.source(r)}
	switch o := b.view.store.objects[r].(type) {
	case *node:
		b.node(g, o)
	case *pod:
		b.pod(g, o)
	case *service:
		b.service(g, o)
	case *endpoints:
		b.endpoints(g, o)
	case *endpointSlice:
		b.endpointSlice(g, o)
	case *ingress:
		b.ingress(g, o)
	}
	return g
}

// lv returns a value of a label.
func lv(text string) model.LabelValue { return model.LabelValue(text) }

// sanitized returns a name with underscores in place of characters that label names must not have.
func sanitized(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, name)
}

// labelOf returns a label name made of parts. Many objects have the same ones, so each is kept once.
func labelOf(start, name string) model.LabelName {
	return model.LabelName(unique.Make(start + sanitized(name)).Value())
}

// describe adds labels and annotations of an object.
func describe(ls model.LabelSet, m *meta, what string) {
	start := prefix + what
	for name, value := range m.Labels {
		ls[labelOf(start+"_label_", name)] = lv(value)
		ls[labelOf(start+"_labelpresent_", name)] = present
	}
	for name, value := range m.Annotations {
		ls[labelOf(start+"_annotation_", name)] = lv(value)
		ls[labelOf(start+"_annotationpresent_", name)] = present
	}
}

// introduce adds the name of an object, its labels and annotations.
func introduce(ls model.LabelSet, m *meta, role Role) {
	ls[labelOf(prefix+string(role)+"_name", "")] = lv(m.Name)
	describe(ls, m, string(role))
}

// addNamespace adds the labels of a namespace, if configured. It replaces existing labels.
func (b *builder) addNamespace(ls model.LabelSet, name string) {
	if !b.attach.Namespace {
		return
	}
	if n, ok := b.view.get(namespaces, "", name).(*namespace); ok {
		describe(ls, &n.Meta, "namespace")
	}
}

// addNode adds the labels of a node, if configured.
func (b *builder) addNode(ls model.LabelSet, name *string) {
	if !b.attach.Node || name == nil {
		return
	}
	if n, ok := b.view.get(nodes, "", *name).(*node); ok {
		introduce(ls, &n.Meta, RoleNode)
	}
}

// merge adds labels, replacing those with the same name.
func merge(to, more model.LabelSet) { maps.Copy(to, more) }
