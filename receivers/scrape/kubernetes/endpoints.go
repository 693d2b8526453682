package kubernetes

import (
	"net"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// Labels of endpoints.
const (
	endpointNodeName   = prefix + "endpoint_node_name"
	endpointHostname   = prefix + "endpoint_hostname"
	endpointReady      = prefix + "endpoint_ready"
	endpointPortName   = prefix + "endpoint_port_name"
	endpointProtocol   = prefix + "endpoint_port_protocol"
	endpointTargetKind = prefix + "endpoint_address_target_kind"
	endpointTargetName = prefix + "endpoint_address_target_name"
)

// endpoints makes a target for each address with each port, and for each further port of the pods behind the addresses.
func (b *builder) endpoints(g *targetgroup.Group, e *endpoints) {
	g.Labels = model.LabelSet{namespaceLabel: lv(e.Meta.Namespace)}
	if s, ok := b.view.get(services, e.Meta.Namespace, e.Meta.Name).(*service); ok {
		merge(g.Labels, serviceLabels(s))
	}
	introduce(g.Labels, &e.Meta, RoleEndpoints)
	b.addNamespace(g.Labels, e.Meta.Namespace)
	behind := newPodsBehind(b)
	for _, s := range e.Subsets {
		for _, port := range s.Ports {
			for _, a := range s.Addresses {
				g.Targets = append(g.Targets, b.endpoint(a, port, true, behind))
			}
			for _, a := range s.NotReady {
				g.Targets = append(g.Targets, b.endpoint(a, port, false, behind))
			}
		}
	}
	g.Targets = append(g.Targets, behind.further()...)
}

func (b *builder) endpoint(a endpointAddress, port endpointPort, ready bool, behind *podsBehind) model.LabelSet {
	t := model.LabelSet{
		model.AddressLabel: lv(net.JoinHostPort(a.IP, strconv.FormatUint(uint64(port.Port), 10))),
		endpointPortName:   lv(port.Name), endpointProtocol: lv(port.Protocol), endpointReady: lv(strconv.FormatBool(ready)),
	}
	if a.Target != nil {
		t[endpointTargetKind], t[endpointTargetName] = lv(a.Target.Kind), lv(a.Target.Name)
	}
	if a.NodeName != nil {
		t[endpointNodeName] = lv(*a.NodeName)
	}
	if a.Hostname != "" {
		t[endpointHostname] = lv(a.Hostname)
	}
	switch {
	case a.NodeName != nil:
		b.addNode(t, a.NodeName)
	case a.Target != nil && a.Target.Kind == "Node":
		b.addNode(t, &a.Target.Name)
	}
	if p := behind.of(a.Target); p != nil {
		merge(t, b.podLabels(p.pod))
		p.pod.portLabels(port.Port, func(containerPort) string { return port.Protocol }, t)
		p.covered[port.Port] = true
	}
	return t
}

// podsBehind are the pods behind the addresses of one object, in order of appearance.
type podsBehind struct {
	b     *builder
	all   []*podBehind
	known map[ref]*podBehind
}

type podBehind struct {
	pod     *pod
	covered map[uint32]bool // ports that already are targets
}

func newPodsBehind(b *builder) *podsBehind { return &podsBehind{b: b, known: map[ref]*podBehind{}} }

// of returns the known pod that an address refers to, or nil.
func (p *podsBehind) of(target *reference) *podBehind {
	if target == nil || target.Kind != "Pod" {
		return nil
	}
	found, ok := p.b.view.get(pods, target.Namespace, target.Name).(*pod)
	if !ok {
		return nil
	}
	r := ref{pods, target.Namespace, target.Name}
	if p.known[r] == nil {
		p.known[r] = &podBehind{found, map[uint32]bool{}}
		p.all = append(p.all, p.known[r])
	}
	return p.known[r]
}

// further returns targets for the pods' ports that no address has covered.
func (p *podsBehind) further() (all []model.LabelSet) {
	for _, one := range p.all {
		if one.pod.Status.PodIP == "" {
			continue
		}
		one.pod.eachContainer(func(c *container, _ string, init bool) {
			for _, port := range c.Ports {
				if one.covered[port.Port] {
					continue
				}
				t := p.b.podLabels(one.pod)
				t[model.AddressLabel] = lv(net.JoinHostPort(one.pod.Status.PodIP, strconv.FormatUint(uint64(port.Port), 10)))
				c.portLabels(port, port.Protocol, init, t)
				all = append(all, t)
			}
		})
	}
	return all
}
