package kubernetes

import (
	"net"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// Labels of pods.
const (
	podIP                = prefix + "pod_ip"
	podReady             = prefix + "pod_ready"
	podPhase             = prefix + "pod_phase"
	podNodeName          = prefix + "pod_node_name"
	podHostIP            = prefix + "pod_host_ip"
	podUID               = prefix + "pod_uid"
	podControllerKind    = prefix + "pod_controller_kind"
	podControllerName    = prefix + "pod_controller_name"
	podDeploymentName    = prefix + "pod_deployment_name"
	podJobName           = prefix + "pod_job_name"
	podCronJobName       = prefix + "pod_cronjob_name"
	podContainerName     = prefix + "pod_container_name"
	podContainerID       = prefix + "pod_container_id"
	podContainerImage    = prefix + "pod_container_image"
	podContainerInit     = prefix + "pod_container_init"
	podContainerPortName = prefix + "pod_container_port_name"
	podContainerPort     = prefix + "pod_container_port_number"
	podContainerProtocol = prefix + "pod_container_port_protocol"
)

// eachContainer calls f with the containers of a pod, init containers last.
func (p *pod) eachContainer(f func(c *container, id string, init bool)) {
	visit := func(all []container, statuses []containerStatus, init bool) {
		for i := range all {
			id := ""
			for _, s := range statuses {
				if s.Name == all[i].Name {
					id = s.ID
					break
				}
			}
			f(&all[i], id, init)
		}
	}
	visit(p.Spec.Containers, p.Status.Statuses, false)
	visit(p.Spec.InitContainers, p.Status.InitStatuses, true)
}

// pod makes a target for each port of each container, and for each container without ports. A pod without an address,
// or on a node that is not selected, gets none.
func (b *builder) pod(g *targetgroup.Group, p *pod) {
	if p.Status.PodIP == "" {
		return
	}
	if b.attach.Node && b.view.get(nodes, "", p.Spec.NodeName) == nil {
		return
	}
	g.Labels = b.podLabels(p)
	g.Labels[namespaceLabel] = lv(p.Meta.Namespace)
	b.addNode(g.Labels, &p.Spec.NodeName)
	b.addNamespace(g.Labels, p.Meta.Namespace)
	p.eachContainer(func(c *container, id string, init bool) {
		about := func(address string) model.LabelSet {
			return model.LabelSet{
				model.AddressLabel: lv(address), podContainerName: lv(c.Name), podContainerID: lv(id),
				podContainerImage: lv(c.Image), podContainerInit: lv(strconv.FormatBool(init)),
			}
		}
		for _, port := range c.Ports {
			number := strconv.FormatUint(uint64(port.Port), 10)
			t := about(net.JoinHostPort(p.Status.PodIP, number))
			t[podContainerPort], t[podContainerPortName], t[podContainerProtocol] = lv(number), lv(port.Name), lv(port.Protocol)
			g.Targets = append(g.Targets, t)
		}
		if len(c.Ports) == 0 { // the user's rules must add a port
			g.Targets = append(g.Targets, about(p.Status.PodIP))
		}
	})
}

// podLabels returns the labels of a pod, for every role.
func (b *builder) podLabels(p *pod) model.LabelSet {
	ready := "unknown"
	for _, c := range p.Status.Conditions {
		ready = strings.ToLower(c.Status)
	}
	ls := model.LabelSet{
		podIP: lv(p.Status.PodIP), podReady: lv(ready), podPhase: lv(p.Status.Phase),
		podNodeName: lv(p.Spec.NodeName), podHostIP: lv(p.Status.HostIP), podUID: lv(p.Meta.UID),
	}
	introduce(ls, &p.Meta, RolePod)
	for _, o := range p.Meta.Owners {
		if o.Kind != "" {
			ls[podControllerKind] = lv(o.Kind)
		}
		if o.Name != "" {
			ls[podControllerName] = lv(o.Name)
		}
		switch o.Kind {
		case "ReplicaSet":
			if b.attach.Deployment {
				b.addOwner(ls, podDeploymentName, "Deployment", replicaSets, p.Meta.Namespace, o.Name)
			}
		case "Job":
			if b.attach.Job {
				ls[podJobName] = lv(o.Name)
			}
			if b.attach.CronJob {
				b.addOwner(ls, podCronJobName, "CronJob", jobs, p.Meta.Namespace, o.Name)
			}
		}
	}
	return ls
}

// addOwner adds the controller of an object, if it is of that kind.
func (b *builder) addOwner(ls model.LabelSet, label model.LabelName, ofKind string, k kind, namespace, name string) {
	made, ok := b.view.get(k, namespace, name).(*owned)
	if !ok {
		return
	}
	for _, o := range made.Meta.Owners {
		if o.Kind == ofKind {
			ls[label] = lv(o.Name)
		}
	}
}

// portLabels adds the labels of the container that has the port of a target: the last one, if there are several.
func (p *pod) portLabels(number uint32, protocol func(containerPort) string, ls model.LabelSet) {
	p.eachContainer(func(c *container, _ string, init bool) {
		for _, port := range c.Ports {
			if port.Port == number {
				c.portLabels(port, protocol(port), init, ls)
				return
			}
		}
	})
}

func (c *container) portLabels(port containerPort, protocol string, init bool, ls model.LabelSet) {
	ls[podContainerName], ls[podContainerImage] = lv(c.Name), lv(c.Image)
	ls[podContainerPortName], ls[podContainerPort] = lv(port.Name), lv(strconv.FormatUint(uint64(port.Port), 10))
	ls[podContainerProtocol], ls[podContainerInit] = lv(protocol), lv(strconv.FormatBool(init))
}
