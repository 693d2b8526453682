package scrapediff

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"hwsagent/receivers/scrape/kubernetes/apitest"
)

// dice makes the objects of a cluster at random.
type dice struct{ *rand.Rand }

// some is what JSON has between braces.
type some = map[string]any

func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }

// often is true but for one time of n.
func (d dice) often(n int) bool { return d.IntN(n) > 0 }

// texts are labels or annotations, with names that need cleaning.
func (d dice) texts() some {
	all := some{}
	for _, name := range []string{"app", "app.kubernetes.io/name", "ünï", "a-b", "prometheus.io/scrape"} {
		if d.often(3) {
			all[name] = d.one("x", "x", "true", "", "ä/ö", "9100")
		}
	}
	return all
}

func (d dice) meta(namespace, name string) some {
	m := some{"name": name, "uid": "uid-" + name}
	if namespace != "" {
		m["namespace"] = namespace
	}
	if d.often(4) {
		m["labels"], m["annotations"] = d.texts(), d.texts()
	}
	return m
}

// own adds who made an object.
func (d dice) own(m some, kind, name string) {
	m["ownerReferences"] = []any{
		some{"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "1"},
		some{"apiVersion": "v1", "kind": kind, "name": name, "uid": "2", "controller": d.often(5)},
	}
}

func (d dice) ip() string {
	if d.often(4) {
		return fmt.Sprintf("10.0.0.%d", d.IntN(250))
	}
	return fmt.Sprintf("fd00::%x", d.IntN(250))
}

func (d dice) ports(number string) []any {
	all := []any{}
	for range d.IntN(3) {
		p := some{number: 80 + d.IntN(4), "name": d.one("http", "web", "")}
		if d.often(4) {
			p["protocol"] = d.one("TCP", "UDP")
		}
		all = append(all, p)
	}
	return all
}

func (d dice) containers(names ...string) (all, statuses []any) {
	for _, name := range names {
		all = append(all, some{"name": name, "image": "image:" + name, "ports": d.ports("containerPort")})
		if d.often(3) {
			statuses = append(statuses, some{"name": name, "containerID": "cri://" + name})
		}
	}
	return all, statuses
}

func spaces() []string { return []string{"one", "two"} }

func nodeNames() []string { return []string{"n1", "n2", "n3"} }

// object returns the object of a resource of that number.
func (d dice) object(resource string, n int) apitest.Object {
	space, name := d.one(spaces()...), fmt.Sprintf("%s-%d", resource, n)
	switch resource {
	case "namespaces":
		return some{"metadata": d.meta("", spaces()[n%2])}
	case "nodes":
		return d.node(nodeNames()[n%3])
	case "replicasets", "jobs":
		m := d.meta(space, name)
		d.own(m, d.one("Deployment", "CronJob", "Thing"), "maker")
		return some{"metadata": m}
	case "pods":
		return d.pod(space, name)
	case "services":
		return d.service(space, fmt.Sprintf("s-%d", n))
	case "endpoints":
		subsets := []any{}
		for range d.IntN(3) {
			subsets = append(subsets, some{"addresses": d.addresses(space), "notReadyAddresses": d.addresses(space), "ports": d.ports("port")})
		}
		return some{"metadata": d.meta(space, fmt.Sprintf("s-%d", n)), "subsets": subsets}
	case "endpointslices":
		return d.slice(space, name)
	}
	return d.ingress(space, name)
}

func (d dice) node(name string) apitest.Object {
	addresses := []any{some{"type": d.one("InternalIP", "ExternalDNS", "Hostname", "LegacyHostIP"), "address": d.ip()}}
	for _, kind := range []string{"InternalIP", "InternalDNS", "ExternalIP", "Hostname"} {
		if d.often(2) {
			addresses = append(addresses, some{"type": kind, "address": d.ip()})
		}
	}
	return some{
		"metadata": d.meta("", name), "spec": some{"providerID": d.one("", "x://1")},
		"status": some{
			"addresses": addresses, "daemonEndpoints": some{"kubeletEndpoint": some{"Port": 10250}},
			"conditions": []any{some{"type": "Ready", "status": d.one("True", "Unknown")}, some{"type": "example.com/Disk-Full", "status": "False"}},
		},
	}
}

func (d dice) pod(space, name string) apitest.Object {
	m := d.meta(space, name)
	switch d.IntN(4) {
	case 0:
		d.own(m, "ReplicaSet", fmt.Sprintf("replicasets-%d", d.IntN(3)))
	case 1:
		d.own(m, "Job", fmt.Sprintf("jobs-%d", d.IntN(3)))
	case 2:
		d.own(m, "DaemonSet", "d")
	}
	main, statuses := d.containers("main", "side")
	init, initStatuses := d.containers("init")
	status := some{"phase": d.one("Running", "Pending"), "hostIP": d.ip(), "containerStatuses": statuses, "initContainerStatuses": initStatuses}
	if d.often(5) {
		status["podIP"] = d.ip()
	}
	if d.often(3) {
		status["conditions"] = []any{some{"type": "Initialized", "status": "True"}, some{"type": "Ready", "status": d.one("True", "False")}}
	}
	return some{
		"metadata": m, "status": status,
		"spec": some{"nodeName": d.one(append(nodeNames(), "gone")...), "containers": main, "initContainers": init},
	}
}

func (d dice) service(space, name string) apitest.Object {
	spec := some{"type": d.one("ClusterIP", "NodePort", "ExternalName", "LoadBalancer"), "clusterIP": d.ip(), "ports": d.ports("port")}
	spec["externalName"], spec["loadBalancerIP"] = d.one("", "outside.example"), d.one("", "192.0.2.1")
	if d.often(3) {
		spec["ipFamilyPolicy"], spec["ipFamilies"] = d.one("SingleStack", "PreferDualStack", "RequireDualStack"), []any{d.one("IPv4", "IPv6")}
	}
	at := []any{}
	for range d.IntN(3) {
		at = append(at, some{"ip": d.one("", "192.0.2.7")})
	}
	return some{"metadata": d.meta(space, name), "spec": spec, "status": some{"loadBalancer": some{"ingress": at}}}
}

// target returns what an address belongs to.
func (d dice) target(space string) some {
	if !d.often(4) {
		return some{"kind": "Node", "name": d.one(nodeNames()...)}
	}
	return some{"kind": "Pod", "namespace": space, "name": fmt.Sprintf("pods-%d", d.IntN(8))}
}

func (d dice) addresses(space string) []any {
	all := []any{}
	for range d.IntN(3) {
		a := some{"ip": d.ip()}
		if d.often(4) {
			a["targetRef"] = d.target(space)
		}
		if d.often(2) {
			a["nodeName"] = d.one(nodeNames()...)
		}
		if d.often(2) {
			a["hostname"] = "h"
		}
		all = append(all, a)
	}
	return all
}

func (d dice) slice(space, name string) apitest.Object {
	m := d.meta(space, name)
	if d.often(4) {
		names := d.texts()
		names["kubernetes.io/service-name"] = fmt.Sprintf("s-%d", d.IntN(4))
		m["labels"] = names
	}
	all := []any{}
	for range d.IntN(4) {
		conditions := some{}
		for _, name := range []string{"ready", "serving", "terminating"} {
			if d.often(2) {
				conditions[name] = d.often(2)
			}
		}
		e := some{"addresses": []any{d.ip(), d.ip()}, "conditions": conditions}
		if d.often(4) {
			e["targetRef"] = d.target(space)
		}
		more := some{"hostname": "h", "nodeName": d.one(nodeNames()...), "zone": "z", "deprecatedTopology": some{"topology.kubernetes.io/zone": "z"}}
		for _, name := range slices.Sorted(maps.Keys(more)) {
			if d.often(2) {
				e[name] = more[name]
			}
		}
		all = append(all, e)
	}
	ports := d.ports("port")
	for _, p := range ports {
		if d.often(4) {
			p.(some)["appProtocol"] = "h2c"
		}
	}
	if !d.often(3) {
		ports = append(ports, some{}) // all ports
	}
	return some{"metadata": m, "addressType": d.one("IPv4", "IPv6"), "endpoints": all, "ports": ports}
}

func (d dice) ingress(space, name string) apitest.Object {
	spec := some{"tls": []any{some{"hosts": []any{d.one("*.example.com", "a.example.com", "*")}}, some{}}}
	if d.often(2) {
		spec["ingressClassName"] = "nginx"
	}
	rules := []any{}
	for range d.IntN(3) {
		rule := some{"host": d.one("a.example.com", "b.example.com", "c.b.example.com", "", "x")}
		if d.often(3) {
			paths := []any{}
			for range d.IntN(3) {
				paths = append(paths, some{"path": d.one("", "/", "/x"), "pathType": "Prefix", "backend": some{}})
			}
			rule["http"] = some{"paths": paths}
		}
		rules = append(rules, rule)
	}
	spec["rules"] = rules
	return some{"metadata": d.meta(space, name), "spec": spec}
}

// kinds returns all resources, and how many objects of each there are.
func kinds() map[string]int {
	return map[string]int{"namespaces": 2, "nodes": 3, "replicasets": 3, "jobs": 3, "pods": 8, "services": 4, "endpoints": 6, "endpointslices": 6, "ingresses": 4}
}

// fill puts objects of all resources into a cluster.
func fill(d dice, s *apitest.Server) {
	all := kinds()
	for _, resource := range slices.Sorted(maps.Keys(all)) {
		for n := range all[resource] {
			s.Put(resource, d.object(resource, n))
		}
	}
}

// churn changes, adds and removes objects that targets are made of. Those that labels come from besides stay:
// Prometheus takes up some of their changes only when the object itself changes.
func churn(d dice, s *apitest.Server, resource string) {
	for n := range kinds()[resource] {
		if !d.often(3) {
			continue
		}
		o := d.object(resource, n)
		name, _ := apitest.Meta(o)["name"].(string)
		for _, space := range append(spaces(), "") { // it may have been in another one
			s.Delete(resource, space, name)
		}
		if d.often(4) {
			s.Put(resource, o)
		}
	}
	fresh := d.object(resource, 90)
	s.Put(resource, fresh)
	s.Put(resource, fresh)
}
