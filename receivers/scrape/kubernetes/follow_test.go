package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hwsagent/receivers/scrape/kubernetes/apitest"
)

func namedObject(namespace, name string, more apitest.Object) apitest.Object {
	m := apitest.Object{"name": name, "labels": apitest.Object{}}
	if namespace != "" {
		m["namespace"] = namespace
	}
	o := apitest.Object{"metadata": m}
	for k, v := range more {
		o[k] = v
	}
	return o
}

// TestAttached: objects that contribute labels are followed as well, whether they exist before the main object or after
// it.
func TestAttached(t *testing.T) {
	s := newServer(t)
	p := aPod("a", "p", "10.0.0.1")
	apitest.Meta(p)["ownerReferences"] = []any{apitest.Object{"kind": "ReplicaSet", "name": "r", "controller": true}}
	s.Put("pods", p)
	r := discover(t, s, "role: pod, attach_metadata: {node: true, namespace: true, deployment: true}")
	is := func(what, label, want string) {
		t.Helper()
		comes(t, what+": want "+want, func() string { return r.label("pod/a/p", "__meta_kubernetes_"+label) }, func(got string) bool { return got == want })
	}
	s.Put("nodes", namedObject("", "n1", nil)) // a pod of an unknown node is none
	is("a node", "node_name", "n1")
	node := namedObject("", "n1", nil)
	apitest.Meta(node)["labels"] = apitest.Object{"zone": "z"}
	s.Put("nodes", node)
	is("a node's label", "node_label_zone", "z")
	space := namedObject("", "a", nil)
	apitest.Meta(space)["annotations"] = apitest.Object{"team": "blue"}
	s.Put("namespaces", space)
	is("a namespace that comes later", "namespace_annotation_team", "blue")
	set := namedObject("a", "r", nil)
	apitest.Meta(set)["ownerReferences"] = []any{apitest.Object{"kind": "Deployment", "name": "d", "controller": true}}
	s.Put("replicasets", set)
	is("a ReplicaSet that comes later", "pod_deployment_name", "d")
	s.Delete("replicasets", "a", "r")
	is("a ReplicaSet that goes", "pod_deployment_name", "no label")
	s.Delete("nodes", "", "n1")
	is("a node that goes", "pod_name", "no group")
	r.tells("in the end", "")
}

// TestReady: targets of a namespace come when all that they are made of has been listed; one namespace does not
// wait for another.
func TestReady(t *testing.T) {
	s := newServer(t)
	for _, space := range []string{"a", "b"} {
		s.Put("endpoints", namedObject(space, "e", apitest.Object{"subsets": []any{apitest.Object{
			"addresses": []any{apitest.Object{"ip": "10.0.0." + map[string]string{"a": "1", "b": "2"}[space]}}, "ports": []any{apitest.Object{"port": 80}},
		}}}))
	}
	var fired atomic.Int64
	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/b/pods") {
			fired.Add(1)
			return apitest.Forbid("pods")(w, r)
		}
		return false
	})
	r := discover(t, s, "role: endpoints, namespaces: {names: [a, b, a]}")
	r.finds("without pods of b", "10.0.0.1:80")
	r.tells("without pods of b", `list pods in namespace b: the API server answered 403 Forbidden: pods is forbidden: User "system:serviceaccount:m:agent" cannot list resource "pods"; `+
		`give the agent's account a Role in namespace b with apiGroups: [""], resources: [pods], verbs: [list, watch]`)
	if fired.Load() == 0 {
		t.Error("the fault did not fire")
	}
	s.Fail(nil)
	r.finds("with all", "10.0.0.1:80 10.0.0.2:80")
	r.tells("with all", "")
}

// TestOwnNamespace: the agent's own namespace is that of its service account.
func TestOwnNamespace(t *testing.T) {
	s := newServer(t)
	s.Put("pods", aPod("a", "p", "10.0.0.1"))
	s.Put("pods", aPod("b", "p", "10.0.0.2"))
	s.Put("pods", aPod("c", "p", "10.0.0.3"))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "namespace"), []byte("b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kube := filepath.Join(dir, "kube")
	if err := os.WriteFile(kube, []byte("clusters: [{name: c, cluster: {server: '"+s.URL+"'}}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, s, &Config{Role: RolePod, KubeConfig: kube, Namespaces: Namespaces{Own: true, Names: []string{"a"}}}, Surroundings{ServiceAccount: dir})
	r.finds("own and named", "10.0.0.1:80 10.0.0.2:80")
}

// TestKubeConfigChanges: a kubeconfig file that leads elsewhere is taken up with the next list.
func TestKubeConfigChanges(t *testing.T) {
	s, other := newServer(t), newServer(t)
	s.Put("pods", aPod("a", "p", "10.0.0.1"))
	other.Put("pods", aPod("a", "p", "10.0.0.2"))
	kube := filepath.Join(t.TempDir(), "kube")
	lead := func(to string) {
		t.Helper()
		text := "clusters: [{name: c, cluster: {server: '" + to + "'}}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"
		if err := os.WriteFile(kube, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lead("ftp://nowhere")
	r := run(t, s, &Config{Role: RolePod, KubeConfig: kube}, Surroundings{})
	r.tells("a wrong file", "not an address")
	lead(s.URL)
	r.finds("the first server", "10.0.0.1:80")
	r.tells("the first server", "")
	lead(other.URL)
	s.Forget()
	s.Cut()
	r.finds("the other server", "10.0.0.2:80")
}

// TestEndlessEvents: a server that tells changes without end is followed, and leaves nothing behind.
func TestEndlessEvents(t *testing.T) {
	s := newServer(t)
	putPods(s, 1)
	var sent atomic.Int64
	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		out := json.NewEncoder(w)
		for n := 0; ; n++ {
			p := aPod("a", "p0", fmt.Sprintf("10.0.0.%d", n%2))
			apitest.Meta(p)["resourceVersion"] = fmt.Sprint(n + 10)
			apitest.Meta(p)["annotations"] = apitest.Object{"n": strings.Repeat("x", 1000) + fmt.Sprint(n)}
			if out.Encode(apitest.Object{"type": "MODIFIED", "object": p}) != nil {
				return true
			}
			sent.Add(1)
		}
	})
	r := discover(t, s, "role: pod")
	comes(t, "many events", func() string { return fmt.Sprint(sent.Load() > 5000) }, func(got string) bool { return got == "true" })
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 64<<20 {
		t.Errorf("%d MiB are in use after %d events", m.HeapAlloc>>20, sent.Load())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.groups) != 1 {
		t.Errorf("%d groups", len(r.groups))
	}
}

// TestRoom: more objects, or more text, than the bounds are refused with words.
func TestRoom(t *testing.T) {
	p := &pod{Meta: meta{Name: "p", Annotations: map[string]string{"a": strings.Repeat("x", 1<<20)}}}
	if n := weigh(reflect.ValueOf(p)); n < 1<<20 || n > 1<<20+2000 {
		t.Errorf("a pod with 1 MiB of text weighs %d bytes", n)
	}
	r := newRoom("pods")
	n := 0
	for ; r.take(p) == nil; n++ {
	}
	if n != maxBytes>>20-1 {
		t.Errorf("room for %d MiB", n)
	}
	r = newRoom("pods")
	for n = 0; r.take(&pod{}) == nil; n++ {
	}
	if err := r.take(&pod{}); n != maxObjects || err == nil || !strings.Contains(err.Error(), "more than 100000 pods") {
		t.Errorf("room for %d objects: %v", n, err)
	}
}

// TestSlow: a list that comes slowly is awaited, and ends with the discovery.
func TestSlow(t *testing.T) {
	s := newServer(t)
	putPods(s, 1)
	begun := make(chan struct{})
	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "PodList", `)
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
		return true
	})
	r := discover(t, s, "role: pod")
	<-begun
	if got := r.addresses(); got != "" {
		t.Errorf("found %s", got)
	}
}

// TestRequests: selectors, versions and limits are asked for as the API wants them.
func TestRequests(t *testing.T) {
	s := newServer(t)
	s.Put("pods", aPod("a", "p", "10.0.0.1"))
	r := discover(t, s, "role: pod, namespaces: {names: [a]}, selectors: [{role: pod, label: 'app=p', field: 'spec.nodeName=n1'}]")
	r.finds("selected", "10.0.0.1:80")
	comes(t, "a watch", func() string { return fmt.Sprint(s.Asked("watch=true")) }, func(got string) bool { return got == "1" })
	for _, req := range s.Requests() {
		q := req.URL.Query()
		if req.URL.Path != "/api/v1/namespaces/a/pods" || q.Get("labelSelector") != "app=p" || q.Get("fieldSelector") != "spec.nodeName=n1" {
			t.Errorf("asked %v", req.URL)
		}
		if q.Get("watch") == "" {
			if q.Get("limit") != "500" || q.Get("resourceVersion") != "0" {
				t.Errorf("listed %v", req.URL)
			}
			continue
		}
		d, err := time.ParseDuration(q.Get("timeoutSeconds") + "s")
		if err != nil || d < watchTime || d > 2*watchTime || q.Get("allowWatchBookmarks") != "true" || q.Get("resourceVersion") == "0" {
			t.Errorf("watched %v", req.URL)
		}
	}
}

// TestChangesFillNoRoom: a pod that changes for ever takes the room of one. The room of former states leads to a new
// list at most, and is not a problem.
func TestChangesFillNoRoom(t *testing.T) {
	if testing.Short() {
		t.Skip("256 MiB of text take the race detector a minute")
	}
	s := newServer(t)
	putPods(s, 1)
	var sent atomic.Int64
	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		out := json.NewEncoder(w)
		for n := 0; ; n++ {
			p := aPod("a", "p0", "10.0.0.1")
			apitest.Meta(p)["resourceVersion"] = fmt.Sprint(n + 10)
			apitest.Meta(p)["annotations"] = apitest.Object{"n": strings.Repeat("x", 1<<20) + fmt.Sprint(n)}
			if out.Encode(apitest.Object{"type": "MODIFIED", "object": p}) != nil {
				return true
			}
			sent.Add(1)
		}
	})
	lists := s.Asked("limit=")
	r := discover(t, s, "role: pod")
	comes(t, "a list anew", func() string { return fmt.Sprint(s.Asked("limit=") > lists+1) }, func(got string) bool { return got == "true" })
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != 0 || len(r.problems) != 0 {
		t.Errorf("after %d states of one pod: %d failures, problems %q", sent.Load(), r.failed, r.problems)
	}
}
