package kubernetes

import (
	"net"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// Labels of services.
const (
	servicePortName     = prefix + "service_port_name"
	servicePort         = prefix + "service_port_number"
	serviceProtocol     = prefix + "service_port_protocol"
	serviceClusterIP    = prefix + "service_cluster_ip"
	serviceLoadBalancer = prefix + "service_loadbalancer_ip"
	serviceExternalName = prefix + "service_external_name"
	serviceType         = prefix + "service_type"
)

// service makes a target for each port.
func (b *builder) service(g *targetgroup.Group, s *service) {
	g.Labels = serviceLabels(s)
	b.addNamespace(g.Labels, s.Meta.Namespace)
	for _, port := range s.Spec.Ports {
		number := strconv.FormatUint(uint64(port.Port), 10)
		t := model.LabelSet{
			model.AddressLabel: lv(net.JoinHostPort(s.Meta.Name+"."+s.Meta.Namespace+".svc", number)),
			servicePortName:    lv(port.Name), servicePort: lv(number), serviceProtocol: lv(port.Protocol), serviceType: lv(s.Spec.Type),
		}
		switch s.Spec.Type {
		case "ExternalName":
			t[serviceExternalName] = lv(s.Spec.ExternalName)
		case "LoadBalancer":
			t[serviceLoadBalancer] = lv(s.loadBalancers())
			fallthrough
		default:
			t[serviceClusterIP] = lv(s.Spec.ClusterIP)
		}
		g.Targets = append(g.Targets, t)
	}
}

// serviceLabels returns the labels of a service, for every role.
func serviceLabels(s *service) model.LabelSet {
	ls := model.LabelSet{namespaceLabel: lv(s.Meta.Namespace)}
	introduce(ls, &s.Meta, RoleService)
	return ls
}

// loadBalancers returns the load balancer's addresses or, if it has none yet, the requested one, a field that the API
// calls deprecated.
func (s *service) loadBalancers() string {
	var all []string
	for _, at := range s.Status.LoadBalancer.Ingress {
		if at.IP != "" {
			all = append(all, at.IP)
		}
	}
	if len(all) == 0 {
		return s.Spec.LoadBalancerIP
	}
	return strings.Join(all, ",")
}
