// Package apitest plays the API server of a Kubernetes cluster for tests: lists in pages, watches with
// bookmarks, versions that are forgotten, and faults.
package apitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Object is an object of the API as JSON has it.
type Object = map[string]any

// event is a change of an object.
type event struct {
	version  int
	kind     string // "DELETED", or "" for anything else
	resource string
	object   Object
	before   Object // nil if there was none
}

// as is the event as a watch with a selector sees it, "" if it does not: an object that changes so that it is
// chosen no more is gone, and one that is from now on is new.
func (e event) as(chosen func(Object) bool) string {
	is, was := chosen(e.object), e.before != nil && chosen(e.before)
	switch {
	case e.kind == "DELETED" && was, was && !is:
		return "DELETED"
	case e.kind == "DELETED", !is:
		return ""
	case !was:
		return "ADDED"
	}
	return "MODIFIED"
}

// Server is an API server that keeps objects in memory. It is safe for concurrent use.
type Server struct {
	*httptest.Server

	mu        sync.Mutex
	version   int
	forgotten int // versions up to it cannot be watched from
	objects   map[string]map[string]Object
	events    []event
	changed   chan struct{} // closed with the next change
	requests  []*http.Request
	fault     func(w http.ResponseWriter, r *http.Request) bool
	page      int // at most so many objects a page; 0: as many as asked for
}

// New starts a server, which is closed by its Close.
func New() *Server {
	s := NewUnstarted()
	s.Start()
	return s
}

// NewUnstarted makes one that its caller starts.
func NewUnstarted() *Server {
	s := &Server{version: 1, objects: map[string]map[string]Object{}, changed: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(s)
	return s
}

// Meta is the metadata of an object.
func Meta(o Object) Object {
	m, _ := o["metadata"].(Object)
	return m
}

func field(o Object, path ...string) string {
	for _, step := range path[:len(path)-1] {
		o, _ = o[step].(Object)
	}
	text, _ := o[path[len(path)-1]].(string)
	return text
}

func key(o Object) string {
	return field(o, "metadata", "namespace") + "/" + field(o, "metadata", "name")
}

// Put adds or changes an object of a resource, such as "pods".
func (s *Server) Put(resource string, o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]Object{}
	}
	before := s.objects[resource][key(o)]
	o = s.stamp(o)
	s.objects[resource][key(o)] = o
	s.tell("", resource, o, before)
}

// Delete removes an object.
func (s *Server) Delete(resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[resource][namespace+"/"+name]
	if o == nil {
		return
	}
	delete(s.objects[resource], namespace+"/"+name)
	s.tell("DELETED", resource, s.stamp(o), o)
}

// Get is an object, nil if there is none.
func (s *Server) Get(resource, namespace, name string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[resource][namespace+"/"+name]
	if o == nil {
		return nil
	}
	return clone(o)
}

// stamp is a copy of an object with a new version. The caller holds mu.
func (s *Server) stamp(o Object) Object {
	o = clone(o)
	s.version++
	Meta(o)["resourceVersion"] = strconv.Itoa(s.version)
	return o
}

func clone(o Object) Object {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var c Object
	if err := json.Unmarshal(text, &c); err != nil {
		panic(err)
	}
	return c
}

// tell wakes watches. The caller holds mu.
func (s *Server) tell(kind, resource string, o, before Object) {
	s.events = append(s.events, event{s.version, kind, resource, o, before})
	close(s.changed)
	s.changed = make(chan struct{})
}

// Forget makes the server forget all events so far: who watches from an earlier version gets 410.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.forgotten, s.events = s.version, nil
}

// Cut ends all connections.
func (s *Server) Cut() { s.CloseClientConnections() }

// Page bounds the objects of a page, whatever is asked for.
func (s *Server) Page(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = n
}

// Fail answers requests by f as long as it returns true. nil ends that.
func (s *Server) Fail(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Requests are those so far.
func (s *Server) Requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Asked is how many requests there were whose address contains text.
func (s *Server) Asked(text string) int {
	n := 0
	for _, r := range s.Requests() {
		if strings.Contains(r.URL.String(), text) {
			n++
		}
	}
	return n
}

// Refuse answers with a Status, as the API server does.
func Refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	write(w, Object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message})
}

func write(w http.ResponseWriter, o any) bool {
	return json.NewEncoder(w).Encode(o) == nil
}

// Forbid is a fault: reading that resource is not allowed.
func Forbid(resource string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/"+resource) {
			return false
		}
		Refuse(w, http.StatusForbidden, "Forbidden", fmt.Sprintf("%s is forbidden: User \"system:serviceaccount:m:agent\" cannot list resource %q", resource, resource))
		return true
	}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	fault := s.fault
	s.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource, namespace := parts[len(parts)-1], ""
	if i := slices.Index(parts, "namespaces"); i >= 0 && i+2 < len(parts) {
		namespace = parts[i+1]
	}
	want := func(o Object) bool {
		return (namespace == "" || field(o, "metadata", "namespace") == namespace) && selected(o, r)
	}
	switch q := r.URL.Query(); {
	case q.Get("watch") == "" || q.Get("watch") == "0":
		s.list(w, r, resource, want)
	case q.Get("sendInitialEvents") == "true":
		Refuse(w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is not known")
	default:
		s.watch(w, r, resource, want)
	}
}

// selected applies selectors of the form a=b.
func selected(o Object, r *http.Request) bool {
	for name, get := range map[string]func(string) string{
		"labelSelector": func(k string) string { return field(o, "metadata", "labels", k) },
		"fieldSelector": func(k string) string { return field(o, strings.Split(k, ".")...) },
	} {
		for _, term := range strings.Split(r.URL.Query().Get(name), ",") {
			if k, v, ok := strings.Cut(term, "="); ok && get(k) != v {
				return false
			}
		}
	}
	return true
}

// listKind is the kind of a list of a resource.
func listKind(resource string) string {
	return map[string]string{
		"nodes": "Node", "pods": "Pod", "services": "Service", "endpoints": "Endpoints", "endpointslices": "EndpointSlice",
		"ingresses": "Ingress", "namespaces": "Namespace", "replicasets": "ReplicaSet", "jobs": "Job",
	}[resource] + "List"
}

func apiVersion(r *http.Request) string {
	path := strings.TrimPrefix(r.URL.Path, "/")
	if rest, ok := strings.CutPrefix(path, "apis/"); ok {
		parts := strings.Split(rest, "/")
		return parts[0] + "/" + parts[1]
	}
	return "v1"
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, resource string, want func(Object) bool) {
	s.mu.Lock()
	var all []Object
	for _, o := range s.objects[resource] {
		if want(o) {
			all = append(all, o)
		}
	}
	version := s.version
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit == 0 {
		limit = len(all)
	}
	if s.page > 0 {
		limit = min(limit, s.page)
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b Object) int { return cmp.Compare(key(a), key(b)) })
	start, next := 0, ""
	if token := r.URL.Query().Get("continue"); token != "" {
		start = slices.IndexFunc(all, func(o Object) bool { return key(o) >= token })
		if start < 0 {
			start = len(all)
		}
	}
	end := min(start+limit, len(all))
	if end < len(all) {
		next = key(all[end])
	}
	items := append([]Object{}, all[start:end]...)
	w.Header().Set("Content-Type", "application/json")
	write(w, Object{
		"kind": listKind(resource), "apiVersion": apiVersion(r),
		"metadata": Object{"resourceVersion": strconv.Itoa(version), "continue": next}, "items": items,
	})
}

// watch tells events since a version, and a bookmark a second.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, resource string, want func(Object) bool) {
	since, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		Refuse(w, http.StatusBadRequest, "BadRequest", "no resourceVersion")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := http.NewResponseController(w)
	_ = out.Flush() // a client that has gone is found by the next write
	kind := strings.TrimSuffix(listKind(resource), "List")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s.mu.Lock()
		if since < s.forgotten {
			s.mu.Unlock()
			write(w, Object{"type": "ERROR", "object": Object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old resource version"}})
			return
		}
		var all []event
		for _, e := range s.events {
			if e.version > since && e.resource == resource && e.as(want) != "" {
				all = append(all, e)
			}
		}
		since = s.version
		changed := s.changed
		s.mu.Unlock()
		for _, e := range all {
			o := clone(e.object)
			o["kind"], o["apiVersion"] = kind, apiVersion(r)
			if !write(w, Object{"type": e.as(want), "object": o}) {
				return
			}
		}
		if out.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-tick.C:
			if r.URL.Query().Get("allowWatchBookmarks") == "true" {
				write(w, Object{"type": "BOOKMARK", "object": Object{"kind": kind, "apiVersion": apiVersion(r), "metadata": Object{"resourceVersion": strconv.Itoa(since)}}})
			}
		case <-r.Context().Done():
			return
		}
	}
}
