package kubernetes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// Labels of ingresses.
const (
	ingressScheme = prefix + "ingress_scheme"
	ingressHost   = prefix + "ingress_host"
	ingressPath   = prefix + "ingress_path"
	ingressClass  = prefix + "ingress_class_name"
)

// ingress makes a target for each path of each rule.
func (b *builder) ingress(g *targetgroup.Group, i *ingress) {
	g.Labels = model.LabelSet{namespaceLabel: lv(i.Meta.Namespace)}
	if i.Spec.Class != nil {
		g.Labels[ingressClass] = lv(*i.Spec.Class)
	}
	introduce(g.Labels, &i.Meta, RoleIngress)
	b.addNamespace(g.Labels, i.Meta.Namespace)
	for _, rule := range i.Spec.Rules {
		scheme := "http"
		for _, t := range i.Spec.TLS {
			if slices.ContainsFunc(t.Hosts, func(pattern string) bool { return covers(pattern, rule.Host) }) {
				scheme = "https"
			}
		}
		paths := []string{""}
		if rule.HTTP != nil {
			paths = nil
			for _, p := range rule.HTTP.Paths {
				paths = append(paths, p.Path)
			}
		}
		for _, path := range paths {
			g.Targets = append(g.Targets, model.LabelSet{
				model.AddressLabel: lv(rule.Host), ingressScheme: lv(scheme), ingressHost: lv(rule.Host), ingressPath: lv(cmp.Or(path, "/")),
			})
		}
	}
}

// covers reports whether the host name in a certificate, whose first part may be an asterisk, matches a host.
func covers(pattern, host string) bool {
	first, parent, _ := strings.Cut(pattern, ".")
	_, above, _ := strings.Cut(host, ".")
	return pattern == host || first == "*" && parent == above && strings.Count(pattern, ".") == strings.Count(host, ".")
}
