package scrapediff

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	theirs "github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"hwsagent/receivers/scrape/kubernetes"
	"hwsagent/receivers/scrape/kubernetes/apitest"
)

// found are groups of targets by their sources. It is safe for concurrent use.
type found struct {
	mu     sync.Mutex
	groups map[string]*targetgroup.Group
}

func (f *found) take(groups []*targetgroup.Group) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range groups {
		delete(f.groups, g.Source)
		if len(g.Targets) > 0 {
			f.groups[g.Source] = g
		}
	}
}

// all returns the targets with all labels, in order.
func (f *found) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var texts []string
	for source, g := range f.groups {
		for _, t := range g.Targets {
			all := maps.Clone(g.Labels)
			if all == nil {
				all = model.LabelSet{}
			}
			maps.Copy(all, t)
			texts = append(texts, source+" "+all.String())
		}
	}
	slices.Sort(texts)
	return texts
}

// quiet keeps what client-go writes from the output.
func quiet(t *testing.T) {
	t.Helper()
	set := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(set)
	if err := set.Set("logtostderr", "false"); err != nil {
		t.Fatal(err)
	}
	klog.SetOutput(io.Discard)
}

// findTheirs finds targets with Prometheus' discovery until the returned function is called.
func findTheirs(t *testing.T, entry string) (*found, func()) {
	t.Helper()
	var c theirs.SDConfig
	if err := yaml.UnmarshalStrict([]byte(entry), &c); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	metrics := c.NewDiscovererMetrics(reg, discovery.NewRefreshMetrics(reg))
	if err := metrics.Register(); err != nil {
		t.Fatal(err)
	}
	d, err := theirs.New(slog.New(slog.DiscardHandler), metrics, &c)
	if err != nil {
		t.Fatal(err)
	}
	f := &found{groups: map[string]*targetgroup.Group{}}
	ctx, cancel := context.WithCancel(t.Context())
	updates, ended := make(chan []*targetgroup.Group), make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx, updates)
	}()
	go func() {
		for {
			select {
			case groups := <-updates:
				f.take(groups)
			case <-ended:
				return
			}
		}
	}()
	return f, sync.OnceFunc(func() { cancel(); <-ended })
}

// bare is a client without anything.
type bare struct{ *http.Client }

func (c bare) Hidden(err error, _ string) error { return err }
func (c bare) Close()                           { c.CloseIdleConnections() }

// findOurs does so with the agent's.
func findOurs(t *testing.T, entry string) (*found, func()) {
	t.Helper()
	var c kubernetes.Config
	if err := yaml.UnmarshalStrict([]byte(entry), &c); err != nil {
		t.Fatal(err)
	}
	f := &found{groups: map[string]*targetgroup.Group{}}
	d := kubernetes.New(kubernetes.Options{
		Config: &c, Logger: slog.New(slog.DiscardHandler), Pause: 10 * time.Millisecond,
		Client: func(c commonconfig.HTTPClientConfig) (kubernetes.Client, error) {
			client, err := commonconfig.NewClientFromConfig(c, "kubernetes")
			return bare{client}, err
		},
		Run: func(f func()) { f() }, Found: f.take, Problem: func(string) {}, Event: func(string, string) {}, Failed: func() {},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx)
	}()
	return f, sync.OnceFunc(func() { cancel(); <-ended })
}

// replay is the seed of [TestKubernetes]; 0: a new one.
var replay = flag.Uint64("seed", 0, "seed of TestKubernetes")

// TestKubernetes compares the targets that both discoveries find in clusters made at random, by every role and
// its settings, at first and after changes, cut connections and forgotten versions.
func TestKubernetes(t *testing.T) {
	quiet(t)
	const every = "attach_metadata: {node: true, namespace: true, deployment: true, job: true, cronjob: true}"
	resources := map[string]string{"node": "nodes", "pod": "pods", "service": "services", "endpoints": "endpoints", "endpointslice": "endpointslices", "ingress": "ingresses"}
	var compared atomic.Int64
	t.Cleanup(func() {
		if compared.Load() < 100 {
			t.Errorf("only %d targets were compared", compared.Load())
		}
	})
	for i, tc := range []struct{ role, more string }{
		{"node", ""}, {"node", "selectors: [{role: node, label: app=x}]"},
		{"pod", ""}, {"pod", every}, {"pod", "namespaces: {names: [two]}"}, {"pod", "namespaces: {names: [one, two]}, " + every},
		{"pod", "selectors: [{role: pod, field: spec.nodeName=n1}]"}, {"pod", "selectors: [{role: node, label: app=x}], attach_metadata: {node: true}"},
		{"service", ""}, {"service", every}, {"service", "namespaces: {names: [two, none]}"},
		{"endpoints", ""}, {"endpoints", every}, {"endpoints", "namespaces: {names: [one]}, selectors: [{role: pod, label: app=x}, {role: service, label: app=true}]"},
		{"endpointslice", ""}, {"endpointslice", every}, {"endpointslice", "selectors: [{role: endpointslice, label: app=x}]"},
		{"ingress", ""}, {"ingress", every},
	} {
		t.Run(tc.role+" "+tc.more, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			if *replay != 0 {
				seed = *replay
			}
			t.Logf("replay with -seed %d", seed)
			d := dice{rand.New(rand.NewPCG(seed, uint64(i)))}
			s := apitest.New()
			defer s.Close()
			defer s.CloseClientConnections()
			fill(d, s)
			entry := "{api_server: '" + s.URL + "', role: " + tc.role
			if tc.more != "" {
				entry += ", " + tc.more
			}
			want, endTheirs := findTheirs(t, entry+"}")
			defer endTheirs()
			got, endOurs := findOurs(t, entry+"}")
			defer endOurs()
			same := func(when string) {
				t.Helper()
				compared.Add(int64(len(agree(t, when, want, got))))
			}
			same("at first")
			for round := range 3 {
				churn(d, s, resources[tc.role])
				same(fmt.Sprintf("after change %d", round))
				if round == 1 {
					s.Cut()
				}
			}
			s.Forget()
			s.Cut()
			churn(d, s, resources[tc.role])
			same("after a forgotten version")
			endTheirs() // it panics where a Job or ReplicaSet goes while the connection is down
			for resource := range kinds() {
				churn(d, s, resource)
			}
			want, endFresh := findTheirs(t, entry+"}")
			defer endFresh()
			same("after a change of everything, and a new start of Prometheus' own")
		})
	}
}

// agree waits until both have found the same targets, and then for a moment whether it stays so.
func agree(t *testing.T, when string, want, got *found) []string {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	same := 0
	for {
		a, b := want.all(), got.all()
		same++
		if !slices.Equal(a, b) {
			same = 0
		}
		if same > 10 {
			return a
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", when, cmp.Diff(a, b))
		}
		time.Sleep(10 * time.Millisecond) // both work in real time, and say nothing when they are done
	}
}

// TestKubernetesSelectors compares which selectors are refused.
func TestKubernetesSelectors(t *testing.T) {
	for _, text := range []string{
		"", " ", "a=b", "a==b", "a!=b", "a = b", "a in (b,c)", "a in (b)", "a notin (b, c)", "a in ()", "a in b", "a in (b", "!a", "! a", "a", "a,b", "a=b,c=d",
		"a=", "=b", "a=b=c", "a>1", "a<2", "a>b", "a >1", "a.b/c=d", "A.b/c=d", "/c=d", "a/=d", "a/b/c=d", "-a=b", "a=-b", "a=b-", strings.Repeat("a", 63), strings.Repeat("a", 64),
		"a=" + strings.Repeat("b", 64), "a b", "a!", "a!b", "a=!b", ",", "a,", ",a", "a in (b,c),d notin (e),!f,g=h", "ä=b", "a=ä", "in=b", "a=in", "a in (,b)",
	} {
		_, err := labels.Parse(text)
		compare(t, "label", text, err)
	}
	for _, text := range []string{
		"", "a=b", "a==b", "a!=b", "a", "a=", "=b", "a=b=c", `a=b\=c`, `a=b\,c`, `a=b\\`, `a=b\x`, `a=b\`, "a=b,c=d", "a=b,", ",a=b", ",", "a=b,c", "spec.nodeName=n1", "a>b", " ", "a = b", "!a", "a!b",
	} {
		_, err := fields.ParseSelector(text)
		compare(t, "field", text, err)
	}
}

func compare(t *testing.T, kind, text string, theirs error) {
	t.Helper()
	entry, err := yaml.Marshal(map[string]any{"role": "pod", "selectors": []any{map[string]string{"role": "pod", kind: text}}})
	if err != nil {
		t.Fatal(err)
	}
	var c kubernetes.Config
	ours := yaml.Unmarshal(entry, &c)
	if (theirs == nil) != (ours == nil) {
		t.Errorf("%s %q: %v, in Prometheus %v", kind, text, ours, theirs)
	}
}
