package kubernetes

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.yaml.in/yaml/v4"

	"hwsagent/receivers/scrape/kubernetes/apitest"
)

// plainClient is a client without anything.
type plainClient struct{ http.Client }

func (c *plainClient) Hidden(err error, _ string) error { return err }
func (c *plainClient) Close()                           { c.CloseIdleConnections() }

// rig runs a Discovery against a server.
type rig struct {
	t      *testing.T
	server *apitest.Server

	mu       sync.Mutex
	groups   map[string]*targetgroup.Group // that have targets, by source
	problems []string
	events   map[string]int
	failed   int
}

func newServer(t *testing.T) *apitest.Server {
	t.Helper()
	s := apitest.New()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// discover runs what an entry says, in YAML's flow style without api_server, until the test ends.
func discover(t *testing.T, s *apitest.Server, entry string) *rig {
	t.Helper()
	var c Config
	if err := yaml.Load([]byte("{api_server: '"+s.URL+"', "+entry+"}"), &c, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	return run(t, s, &c, Surroundings{})
}

func run(t *testing.T, s *apitest.Server, c *Config, around Surroundings) *rig {
	t.Helper()
	r := &rig{t: t, server: s, groups: map[string]*targetgroup.Group{}, events: map[string]int{}}
	client := &plainClient{http.Client{Transport: &http.Transport{}}}
	d := New(Options{
		Config: c, Around: around, Logger: slog.New(slog.DiscardHandler), Pause: 10 * time.Millisecond,
		Client: func(commonconfig.HTTPClientConfig) (Client, error) { return client, nil },
		Run:    func(f func()) { f() },
		Found: func(groups []*targetgroup.Group) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, g := range groups {
				delete(r.groups, g.Source)
				if len(g.Targets) > 0 {
					r.groups[g.Source] = g
				}
			}
		},
		Problem: func(text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.problems = append(r.problems, text)
		},
		Event: func(role, what string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events[role+" "+what]++
		},
		Failed: func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.failed++
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

// addresses returns those of all targets, in order.
func (r *rig) addresses() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, source := range slices.Sorted(maps.Keys(r.groups)) {
		for _, t := range r.groups[source].Targets {
			all = append(all, string(t["__address__"]))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// label is that of the only target of a source, or of its group.
func (r *rig) label(source, name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.groups[source]
	if g == nil {
		return "no group"
	}
	all := g.Labels.Merge(g.Targets[0])
	for n, v := range all {
		if string(n) == name {
			return string(v)
		}
	}
	return "no label"
}

// problem returns the newest one.
func (r *rig) problem() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.problems) == 0 {
		return ""
	}
	return r.problems[len(r.problems)-1]
}

// comes waits until what get returns is as wanted.
func comes(t *testing.T, what string, get func() string, want func(string) bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !want(get()) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: %q", what, get())
		}
	}
}

func (r *rig) finds(what, want string) {
	r.t.Helper()
	comes(r.t, what+": want "+want, r.addresses, func(got string) bool { return got == want })
}

func (r *rig) tells(what, part string) {
	r.t.Helper()
	comes(r.t, what+": want "+part, r.problem, func(got string) bool {
		return strings.Contains(got, part) && (part == "") == (got == "")
	})
}

// aPod returns a pod with a container that has one port.
func aPod(namespace, name, ip string) apitest.Object {
	return apitest.Object{
		"metadata": apitest.Object{"namespace": namespace, "name": name, "uid": "u-" + name, "labels": apitest.Object{"app": name}},
		"spec":     apitest.Object{"nodeName": "n1", "containers": []any{apitest.Object{"name": "c", "image": "i", "ports": []any{apitest.Object{"containerPort": 80}}}}},
		"status":   apitest.Object{"podIP": ip, "phase": "Running"},
	}
}

func putPods(s *apitest.Server, n int) (addresses string) {
	var all []string
	for i := range n {
		ip := fmt.Sprintf("10.0.%d.%d", i/256, i%256)
		s.Put("pods", aPod("a", fmt.Sprintf("p%d", i), ip))
		all = append(all, ip+":80")
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
