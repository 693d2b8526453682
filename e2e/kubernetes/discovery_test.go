package kubernetes

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// needed returns the resources that a role reads, each with its group.
func needed(role string) [][2]string {
	return map[string][][2]string{
		"node": {{"", "nodes"}}, "pod": {{"", "pods"}}, "service": {{"", "services"}},
		"endpoints":     {{"", "endpoints"}, {"", "services"}, {"", "pods"}},
		"endpointslice": {{"discovery.k8s.io", "endpointslices"}, {"", "services"}, {"", "pods"}},
		"ingress":       {{"networking.k8s.io", "ingresses"}},
	}[role]
}

// attached returns those of attach_metadata.
func attached(what string) [2]string {
	return map[string][2]string{
		"node": {"", "nodes"}, "namespace": {"", "namespaces"}, "deployment": {"apps", "replicasets"}, "job": {"batch", "jobs"}, "cronjob": {"batch", "jobs"},
	}[what]
}

// TestDiscoveryMayReadWhatItNeeds: the manifests are of the API's types, the agent does not run as root, and its
// account may list and watch the resources that the jobs of its configuration need, and change nothing.
func TestDiscoveryMayReadWhatItNeeds(t *testing.T) {
	var namespace core.Namespace
	var policy networking.NetworkPolicy
	var set apps.StatefulSet
	read(t, discovery, "namespace.yaml", &namespace)
	read(t, discovery, "networkpolicy.yaml", &policy)
	read(t, discovery, "statefulset.yaml", &set)
	text, err := os.ReadFile(filepath.Join(discovery, "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	parts := bytes.Split(text, []byte("\n---\n"))
	if len(parts) != 3 {
		t.Fatalf("rbac.yaml has %d parts", len(parts))
	}
	var account core.ServiceAccount
	var role rbac.ClusterRole
	var binding rbac.ClusterRoleBinding
	parse(t, "account", parts[0], &account)
	parse(t, "role", parts[1], &role)
	parse(t, "binding", parts[2], &binding)
	pod := set.Spec.Template.Spec
	if pod.ServiceAccountName != account.Name || binding.Subjects[0].Name != account.Name || binding.Subjects[0].Namespace != namespace.Name || binding.RoleRef.Name != role.Name {
		t.Errorf("the account of the pod is not that of the role: %+v %+v", pod.ServiceAccountName, binding)
	}
	if s := pod.Containers[0].SecurityContext; !*pod.SecurityContext.RunAsNonRoot || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem {
		t.Errorf("the agent may do too much: %+v %+v", pod.SecurityContext, s)
	}
	may := func(resource [2]string) bool {
		return slices.ContainsFunc(role.Rules, func(r rbac.PolicyRule) bool {
			return slices.Contains(r.APIGroups, resource[0]) && slices.Contains(r.Resources, resource[1]) && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
		})
	}
	for _, r := range role.Rules {
		for _, verb := range r.Verbs {
			if !slices.Contains([]string{"get", "list", "watch"}, verb) {
				t.Errorf("the agent may %s %v", verb, r.Resources)
			}
		}
	}
	if text, err = os.ReadFile(filepath.Join(discovery, "agent.yaml")); err != nil {
		t.Fatal(err)
	}
	var config struct {
		Jobs []struct {
			Name   string `json:"job_name"`
			Places []struct {
				Role   string          `json:"role"`
				Attach map[string]bool `json:"attach_metadata"`
			} `json:"kubernetes_sd_configs"`
		} `json:"scrape_configs"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, j := range config.Jobs {
		for _, p := range j.Places {
			resources := needed(p.Role)
			for what := range p.Attach {
				resources = append(resources, attached(what))
			}
			for _, r := range resources {
				if n++; !may(r) {
					t.Errorf("the job %s needs list and watch of %s of %q", j.Name, r[1], r[0])
				}
			}
		}
	}
	if n < 5 {
		t.Errorf("the jobs need only %d resources", n)
	}
}
