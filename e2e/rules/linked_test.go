package rules

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// heavy lists packages that come with an import, serve nothing in the agent and keep memory or methods; docs/adr/0073 says why.
func heavy() []string {
	return []string{
		"html/template", "golang.org/x/net/trace", "google.golang.org/grpc", "google.golang.org/api",
		"k8s.io", promModule + "config", promModule + "discovery",
	}
}

// light are packages below those that link nothing else.
func light() []string { return []string{promModule + "discovery/targetgroup"} }

// TestNothingHeavyIsLinked: one import too many links megabytes, and html/template has Go's linker keep all methods.
func TestNothingHeavyIsLinked(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "../../cmd/hwsagent")
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(text))
	if len(all) < 300 || !slices.Contains(all, "hwsagent/agent/web") {
		t.Fatalf("go list names %d packages", len(all))
	}
	for _, p := range all {
		if slices.ContainsFunc(heavy(), func(h string) bool { return below(p, h) }) && !slices.Contains(light(), p) {
			t.Errorf("%s is linked", p)
		}
	}
}
