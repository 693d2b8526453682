package scrapediff

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// place is where the API has objects of a resource; space is the namespace, or "".
func place(resource, space string) string {
	group := map[string]string{
		"replicasets": "/apis/apps/v1", "jobs": "/apis/batch/v1", "endpointslices": "/apis/discovery.k8s.io/v1", "ingresses": "/apis/networking.k8s.io/v1",
	}[resource]
	if group == "" {
		group = "/api/v1"
	}
	if space != "" {
		group += "/namespaces/" + space
	}
	return group + "/" + resource
}

// labelled are valid labels and annotations, with names that need cleaning.
func (d dice) labelled(m some) some {
	all := some{}
	for _, name := range []string{"app", "app.kubernetes.io/name", "a-b", "with_under"} {
		if d.often(3) {
			all[name] = d.one("x", "y", "true", "")
		}
	}
	m["labels"], m["annotations"] = all, some{"prometheus.io/port": "9100", "note": d.one("ä/ö", "", "plain")}
	return m
}

// real are the objects of a namespace, each with its resource and, where it has one, the status that is set afterwards.
func (d dice) real(space string) (all []realObject) {
	add := func(resource, name string, spec, status some, owners ...some) {
		m := d.labelled(some{"name": name})
		if len(owners) > 0 {
			m["ownerReferences"] = owners
		}
		o := some{"metadata": m}
		for k, v := range spec {
			o[k] = v
		}
		all = append(all, realObject{resource, space, name, o, status})
	}
	owner := func(api, kind, name string) some {
		return some{"apiVersion": api, "kind": kind, "name": name, "uid": "u-" + name, "controller": true}
	}
	box := some{"name": "main", "image": "image:1", "ports": []any{some{"containerPort": 8080, "name": "http"}, some{"containerPort": 9100, "protocol": "UDP"}}}
	for i := range 2 {
		add("replicasets", fmt.Sprintf("rs-%d", i), some{"spec": some{
			"selector": some{"matchLabels": some{"a": "b"}}, "template": some{"metadata": some{"labels": some{"a": "b"}}, "spec": some{"containers": []any{box}}},
		}}, nil, owner("apps/v1", "Deployment", "deployment"))
		add("jobs", fmt.Sprintf("job-%d", i), some{"spec": some{"template": some{"spec": some{"restartPolicy": "Never", "containers": []any{box}}}}},
			nil, owner("batch/v1", "CronJob", "cronjob"))
	}
	for i := range 4 {
		ip := fmt.Sprintf("10.1.%d.%d", len(space), d.IntN(250))
		spec := some{"containers": []any{box, some{"name": "bare", "image": "image:2"}}, "nodeName": nodeNames()[i%3], "terminationGracePeriodSeconds": 0}
		if i == 1 {
			spec["initContainers"] = []any{some{"name": "init", "image": "image:3", "ports": []any{some{"containerPort": 81}}}}
		}
		status := some{"phase": d.one("Running", "Pending"), "podIP": ip, "podIPs": []any{some{"ip": ip}}, "hostIP": "192.0.2.1", "hostIPs": []any{some{"ip": "192.0.2.1"}},
			"conditions":        []any{some{"type": "Ready", "status": d.one("True", "False")}},
			"containerStatuses": []any{some{"name": "main", "image": "image:1", "imageID": "i", "containerID": "cri://1", "ready": true, "restartCount": 0}}}
		owners := map[int][]some{0: {owner("apps/v1", "ReplicaSet", "rs-0")}, 1: {owner("batch/v1", "Job", "job-1")}, 2: {owner("apps/v1", "DaemonSet", "set")}}[i]
		add("pods", fmt.Sprintf("pod-%d", i), some{"spec": spec}, status, owners...)
	}
	target := func(i int) some { return some{"kind": "Pod", "namespace": space, "name": fmt.Sprintf("pod-%d", i)} }
	for i := range 3 {
		name := fmt.Sprintf("service-%d", i)
		port := some{"name": "http", "port": 8080}
		add("services", name, some{"spec": some{"type": []string{"ClusterIP", "NodePort", "LoadBalancer"}[i], "ports": []any{port, some{"name": "udp", "port": 53, "protocol": "UDP"}}}}, nil)
		address := some{"ip": fmt.Sprintf("10.2.0.%d", i), "nodeName": "n1", "hostname": "h", "targetRef": target(i)}
		add("endpoints", name, some{"subsets": []any{some{"addresses": []any{address}, "notReadyAddresses": []any{some{"ip": "10.2.1.1"}}, "ports": []any{port}}}}, nil)
		add("endpointslices", name+"-x", some{"addressType": "IPv4", "ports": []any{port}, "endpoints": []any{
			some{"addresses": []any{"10.2.0.9"}, "conditions": some{"ready": d.often(2), "serving": true}, "nodeName": "n2", "zone": "z", "targetRef": target(i)},
			some{"addresses": []any{"10.2.0.8"}, "hostname": "h"},
		}}, nil)
		all[len(all)-1].object["metadata"].(some)["labels"].(some)["kubernetes.io/service-name"] = name
		path := some{"path": d.one("/", "/a"), "pathType": "Prefix", "backend": some{"service": some{"name": name, "port": some{"number": 8080}}}}
		add("ingresses", fmt.Sprintf("ingress-%d", i), some{"spec": some{"ingressClassName": "class", "tls": []any{some{"hosts": []any{"one.example"}}},
			"rules": []any{some{"host": d.one("one.example", "two.example", "*.example"), "http": some{"paths": []any{path}}}}}}, nil)
	}
	return all
}

type realObject struct {
	resource, space, name string
	object, status        some
}

// create makes an object at an API server.
func (c *cluster) create(server string, o realObject) {
	c.t.Helper()
	at := server + place(o.resource, o.space)
	c.must(http.MethodPost, at, "application/json", o.object)
	if o.status != nil {
		c.must(http.MethodPatch, at+"/"+o.name+"/status", "application/merge-patch+json", some{"status": o.status})
	}
}

// round marks all objects with a number, and deletes and makes some anew, as others. Owners of pods stay: Prometheus'
// discovery panics where one goes while it does not watch.
func (c *cluster) round(server string, d dice, all []realObject, n int) {
	c.t.Helper()
	for i, o := range all {
		at := server + place(o.resource, o.space) + "/" + o.name
		if o.space != "" && o.resource != "replicasets" && o.resource != "jobs" && !d.often(4) {
			c.must(http.MethodDelete, at+"?gracePeriodSeconds=0", "application/json", nil)
			for _, other := range d.real(o.space) {
				if other.resource == o.resource && other.name == o.name {
					all[i] = other
					c.create(server, other)
				}
			}
		}
		c.must(http.MethodPatch, at, "application/merge-patch+json", some{"metadata": some{"labels": some{"round": fmt.Sprint(n)}}})
	}
}

// watched are both discoveries of a role.
type watched struct {
	role, entry string
	want, got   *found
}

// agreeOn waits until both have found the same targets, with the labels of a round. It calls touch now and then meanwhile.
func (w *watched) agreeOn(t *testing.T, when string, round int, touch func()) int {
	t.Helper()
	mark := fmt.Sprintf(`__meta_kubernetes_%s_label_round="%d"`, w.role, round)
	stale := func(target string) bool {
		return !strings.Contains(target, mark) && !strings.Contains(target, `__meta_kubernetes_namespace="default"`) // which is the server's own
	}
	deadline, patience := time.Now().Add(3*time.Minute), time.Now().Add(3*time.Second)
	for ; ; time.Sleep(50 * time.Millisecond) { // three processes, in real time
		if time.Now().After(patience) {
			patience = time.Now().Add(3 * time.Second)
			touch()
		}
		a, b := w.want.all(), w.got.all()
		if slices.Equal(a, b) && len(a) > 0 && !slices.ContainsFunc(a, stale) {
			return len(a)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s, %s: of %d targets these are not of the round: %q; %s", w.entry, when, len(a), slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !stale(s) }), cmp.Diff(a, b))
		}
	}
}

// TestKubernetesServer compares the targets that both discoveries find with a real API server: after changes, after it was
// killed and started again, and after changes by another server while it was down, with a store that has forgotten the
// version that they know.
func TestKubernetesServer(t *testing.T) {
	programs := os.Getenv("HWSAGENT_KUBERNETES")
	if programs == "" {
		t.Skip("HWSAGENT_KUBERNETES is not set: a directory with etcd and kube-apiserver, see e2e/kubernetes/server/go.mod")
	}
	quiet(t)
	seed := uint64(time.Now().UnixNano())
	if *replay != 0 {
		seed = *replay
	}
	t.Logf("replay with -seed %d", seed)
	d := dice{rand.New(rand.NewPCG(seed, 0))}
	c := newCluster(t, programs)
	address, another := freePort(t), freePort(t)
	server := "https://" + address
	kill := c.serve(address)
	var all []realObject
	for _, name := range nodeNames() {
		all = append(all, realObject{"nodes", "", name, some{"metadata": d.labelled(some{"name": name}), "spec": some{"providerID": "x://" + name}}, some{
			"addresses":       []any{some{"type": "InternalIP", "address": "192.0.2.7"}, some{"type": "Hostname", "address": name}},
			"conditions":      []any{some{"type": "Ready", "status": "True", "lastHeartbeatTime": nil, "lastTransitionTime": nil, "reason": "r", "message": "m"}},
			"daemonEndpoints": some{"kubeletEndpoint": some{"Port": 10250}},
		}})
	}
	for _, space := range spaces() {
		all = append(all, realObject{"namespaces", "", space, some{"metadata": d.labelled(some{"name": space})}, nil})
		all = append(all, d.real(space)...)
	}
	for _, o := range all {
		c.create(server, o)
	}
	c.round(server, d, all, 0)
	var pairs []*watched
	for _, role := range []string{"node", "pod", "service", "endpoints", "endpointslice", "ingress"} {
		for _, more := range []string{"", ", attach_metadata: {node: true, namespace: true, deployment: true, job: true, cronjob: true}", ", namespaces: {names: [two]}"} {
			if role == "node" && more != "" {
				continue
			}
			entry := "{api_server: '" + server + "', role: " + role + ", authorization: {credentials: " + token + "}, tls_config: {insecure_skip_verify: true}" + more + "}"
			want, endTheirs := findTheirs(t, entry)
			defer endTheirs()
			got, endOurs := findOurs(t, entry)
			defer endOurs()
			pairs = append(pairs, &watched{role, entry, want, got})
		}
	}
	compared := 0
	touched := 0
	touch := func() { // Prometheus reads a pod's labels when the endpoints change, perhaps before its pods are up to date
		touched++
		for _, o := range all {
			if strings.HasPrefix(o.resource, "endpoint") {
				c.must(http.MethodPatch, server+place(o.resource, o.space)+"/"+o.name, "application/merge-patch+json",
					some{"metadata": some{"annotations": some{"touched": fmt.Sprint(touched)}}})
			}
		}
	}
	same := func(when string, round int) {
		t.Helper()
		begin := time.Now()
		for _, w := range pairs {
			compared += w.agreeOn(t, when, round, touch)
		}
		t.Logf("%s: the same after %v", when, time.Since(begin).Round(time.Millisecond))
	}
	same("at first", 0)
	c.round(server, d, all, 1)
	same("after changes", 1)
	kill()
	kill = c.serve(address)
	c.round(server, d, all, 2)
	same("after a restart", 2)
	kill()
	killOther := c.serve(another)
	c.round("https://"+another, d, all, 3)
	c.round("https://"+another, d, all, 4)
	c.compact()
	killOther()
	c.serve(address)
	same("after changes that it did not serve", 4)
	c.round(server, d, all, 5)
	same("after changes on top", 5)
	if t.Logf("%d targets of %d entries were compared", compared, len(pairs)); compared < 500 {
		t.Errorf("only %d targets were compared", compared)
	}
}
