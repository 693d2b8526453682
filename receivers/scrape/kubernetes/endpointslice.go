package kubernetes

import (
	"net"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// Labels of endpoint slices.
const (
	sliceAddressType     = prefix + "endpointslice_address_type"
	slicePortName        = prefix + "endpointslice_port_name"
	sliceProtocol        = prefix + "endpointslice_port_protocol"
	slicePortNumber      = prefix + "endpointslice_port"
	sliceAppProtocol     = prefix + "endpointslice_port_app_protocol"
	sliceReady           = prefix + "endpointslice_endpoint_conditions_ready"
	sliceServing         = prefix + "endpointslice_endpoint_conditions_serving"
	sliceTerminating     = prefix + "endpointslice_endpoint_conditions_terminating"
	sliceZone            = prefix + "endpointslice_endpoint_zone"
	sliceHostname        = prefix + "endpointslice_endpoint_hostname"
	sliceNodeName        = prefix + "endpointslice_endpoint_node_name"
	sliceTargetKind      = prefix + "endpointslice_address_target_kind"
	sliceTargetName      = prefix + "endpointslice_address_target_name"
	sliceTopology        = prefix + "endpointslice_endpoint_topology_"
	sliceTopologyPresent = prefix + "endpointslice_endpoint_topology_present_"
)

// serviceOfSlice is the label of an endpoint slice that names its service
// (https://kubernetes.io/docs/reference/labels-annotations-taints/#kubernetesioservice-name).
const serviceOfSlice = "kubernetes.io/service-name"

// endpointSlice makes a target for each address with each port, and for each further port of the pods behind the
// addresses. The second address family of a dual-stack service gets no such further targets: they would be the same.
func (b *builder) endpointSlice(g *targetgroup.Group, e *endpointSlice) {
	g.Labels = model.LabelSet{namespaceLabel: lv(e.Meta.Namespace), sliceAddressType: lv(e.AddressType)}
	introduce(g.Labels, &e.Meta, RoleEndpointSlice)
	var of *service
	if name, ok := e.Meta.Labels[serviceOfSlice]; ok {
		of, _ = b.view.get(services, e.Meta.Namespace, name).(*service)
	}
	if of != nil {
		merge(g.Labels, serviceLabels(of))
	}
	b.addNamespace(g.Labels, e.Meta.Namespace)
	if of.second(e.AddressType) {
		return
	}
	behind := newPodsBehind(b)
	for i := range e.Endpoints {
		for _, port := range e.Ports {
			for _, address := range e.Endpoints[i].Addresses {
				g.Targets = append(g.Targets, b.sliceTarget(address, &e.Endpoints[i], port, behind))
			}
		}
	}
	g.Targets = append(g.Targets, behind.further()...)
}

// second reports whether addresses of a type belong to the second address family of a dual-stack service.
func (s *service) second(addressType string) bool {
	if s == nil || len(s.Spec.IPFamilies) == 0 || !slices.Contains([]string{"PreferDualStack", "RequireDualStack"}, s.Spec.IPFamilyPolicy) {
		return false
	}
	return addressType != s.Spec.IPFamilies[0]
}

func (b *builder) sliceTarget(address string, e *sliceEndpoint, port slicePort, behind *podsBehind) model.LabelSet {
	t := model.LabelSet{}
	text := func(label model.LabelName, value *string) {
		if value != nil {
			t[label] = lv(*value)
		}
	}
	flag := func(label model.LabelName, value *bool) {
		if value != nil {
			t[label] = lv(strconv.FormatBool(*value))
		}
	}
	if port.Port != nil {
		number := strconv.FormatUint(uint64(*port.Port), 10)
		t[slicePortNumber] = lv(number)
		address = net.JoinHostPort(address, number)
	}
	t[model.AddressLabel] = lv(address)
	text(slicePortName, port.Name)
	text(sliceProtocol, port.Protocol)
	text(sliceAppProtocol, port.AppProtocol)
	flag(sliceReady, e.Conditions.Ready)
	flag(sliceServing, e.Conditions.Serving)
	flag(sliceTerminating, e.Conditions.Terminating)
	text(sliceHostname, e.Hostname)
	text(sliceNodeName, e.NodeName)
	text(sliceZone, e.Zone)
	for name, value := range e.Topology {
		t[labelOf(sliceTopology, name)] = lv(value)
		t[labelOf(sliceTopologyPresent, name)] = present
	}
	at := e.NodeName
	if e.Target != nil {
		t[sliceTargetKind], t[sliceTargetName] = lv(e.Target.Kind), lv(e.Target.Name)
		if e.Target.Kind == "Node" {
			at = &e.Target.Name
		}
	}
	b.addNode(t, at)
	if p := behind.of(e.Target); p != nil {
		merge(t, b.podLabels(p.pod))
		if port.Port != nil {
			p.pod.portLabels(*port.Port, func(c containerPort) string { return c.Protocol }, t)
			p.covered[*port.Port] = true
		}
	}
	return t
}
