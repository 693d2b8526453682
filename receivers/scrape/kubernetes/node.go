package kubernetes

import (
	"net"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// Labels of nodes.
const (
	nodeProviderID = prefix + "node_provider_id"
	nodeCondition  = prefix + "node_condition_"
	nodeAddress    = prefix + "node_address_"
)

// addressTypes returns the types of a node's addresses, the preferred one first.
func addressTypes() []string {
	return []string{"InternalIP", "InternalDNS", "ExternalIP", "ExternalDNS", "LegacyHostIP", "Hostname"}
}

// node makes one target, the kubelet's. A node without an address gets none.
func (b *builder) node(g *targetgroup.Group, n *node) {
	first := map[string]string{} // the first address of each type
	for _, a := range n.Status.Addresses {
		if _, ok := first[a.Type]; !ok {
			first[a.Type] = a.Address
		}
	}
	for _, kind := range addressTypes() {
		address, ok := first[kind]
		if !ok {
			continue
		}
		port := strconv.FormatInt(int64(n.Status.Daemons.Kubelet.Port), 10)
		t := model.LabelSet{model.AddressLabel: lv(net.JoinHostPort(address, port)), model.InstanceLabel: lv(n.Meta.Name)}
		for kind, address := range first {
			t[labelOf(nodeAddress, kind)] = lv(address)
		}
		g.Targets = append(g.Targets, t)
		break
	}
	g.Labels = model.LabelSet{nodeProviderID: lv(n.Spec.ProviderID)}
	for _, c := range n.Status.Conditions {
		g.Labels[labelOf(nodeCondition, strings.ToLower(c.Type))] = lv(strings.ToLower(c.Status))
	}
	introduce(g.Labels, &n.Meta, RoleNode)
}
