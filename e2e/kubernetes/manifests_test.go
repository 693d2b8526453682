package kubernetes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const (
	dir       = "../../deploy/kubernetes"
	discovery = "../../deploy/kubernetes-discovery"
)

// read reads a file strictly: a key that the type does not have is an error.
func read(t *testing.T, dir, name string, v any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	parse(t, name, text, v)
}

func parse(t *testing.T, name string, text []byte, v any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(text, v); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestKustomizationNamesEveryFile: every file in the directory is applied, and every applied file exists.
func TestKustomizationNamesEveryFile(t *testing.T) {
	for _, dir := range []string{dir, discovery} {
		t.Run(filepath.Base(dir), func(t *testing.T) { namesEveryFile(t, dir) })
	}
}

func namesEveryFile(t *testing.T, dir string) {
	t.Helper()
	var k struct {
		APIVersion, Kind, Namespace string
		Labels                      []any
		Resources                   []string
		ConfigMapGenerator          []struct {
			Name  string
			Files []string
		}
		Images []struct{ Name, NewTag string }
	}
	read(t, dir, "kustomization.yaml", &k)
	named := append([]string{"kustomization.yaml"}, k.Resources...)
	for _, m := range k.ConfigMapGenerator {
		named = append(named, m.Files...)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, f := range files {
		there = append(there, filepath.Base(f))
	}
	slices.Sort(named)
	if !slices.Equal(named, there) {
		t.Errorf("kustomization.yaml names %q, there are %q", named, there)
	}
}

// TestManifests: the manifests are of the API's types, and what they promise holds: a user that is not root,
// the log on the node, no reason to restart an agent whose disk is full.
func TestManifests(t *testing.T) {
	var namespace core.Namespace
	var account core.ServiceAccount
	var set apps.DaemonSet
	read(t, dir, "namespace.yaml", &namespace)
	read(t, dir, "serviceaccount.yaml", &account)
	read(t, dir, "daemonset.yaml", &set)
	pod := set.Spec.Template.Spec
	if len(pod.Containers) != 1 || pod.ServiceAccountName != account.Name {
		t.Fatalf("the DaemonSet is %+v", pod)
	}
	c := pod.Containers[0]
	switch s := c.SecurityContext; {
	case !*pod.SecurityContext.RunAsNonRoot, *s.AllowPrivilegeEscalation, !*s.ReadOnlyRootFilesystem, !slices.Contains(s.Capabilities.Drop, "ALL"):
		t.Errorf("the agent may do too much: %+v %+v", pod.SecurityContext, s)
	}
	for name, probe := range map[string]*core.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Host != "127.0.0.1" || !strings.HasPrefix(probe.HTTPGet.Path, "/-/") {
			t.Errorf("the %s probe is %+v", name, probe)
		}
	}
	volumes := map[string]core.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
	}
	for _, m := range append(slices.Clone(c.VolumeMounts), pod.InitContainers[0].VolumeMounts...) {
		v, ok := volumes[m.Name]
		if !ok {
			t.Errorf("there is no volume %q", m.Name)
		}
		if m.MountPath == "/var/lib/hwsagent" && (v.HostPath == nil || m.ReadOnly) {
			t.Errorf("the log is on %+v", v)
		}
	}
}
