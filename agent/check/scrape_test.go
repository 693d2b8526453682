//go:build !minimal

package check

import (
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/receivers/scrape/kubernetes/apitest"
)

// TestCheckLooksUpTargets: a check says how many targets a job's API servers list and relabelling keeps, and
// which rule is missing where they refuse.
func TestCheckLooksUpTargets(t *testing.T) {
	api := apitest.New()
	defer api.Close()
	defer api.CloseClientConnections()
	api.Put("services", apitest.Object{
		"metadata": apitest.Object{"namespace": "a", "name": "s"},
		"spec":     apitest.Object{"ports": []any{apitest.Object{"port": 80}, apitest.Object{"port": 81}}},
	})
	look := func(regex string) Group {
		t.Helper()
		return group(t, check(t, Live, "scrape_configs: [{job_name: services, kubernetes_sd_configs: [{role: service, api_server: '"+api.URL+"'}], "+
			"relabel_configs: [{source_labels: [__address__], regex: '"+regex+"', action: keep}]}]\n"), GroupScrape)
	}
	for _, tc := range []struct {
		regex, forbid string
		result        Result
		want          string
	}{
		{".*:81", "", OK, "2 targets found, relabel_configs keep 1"},
		{"none", "", Warn, "2 targets found, but relabel_configs keep none"},
		{".*", "services", Fail, `a ClusterRole with apiGroups: [""], resources: [services], verbs: [list, watch]`},
	} {
		if tc.forbid != "" {
			api.Fail(apitest.Forbid(tc.forbid))
		}
		if g := look(tc.regex); g.Name != "services" || g.Result != tc.result || len(g.Steps) != 1 || !strings.Contains(g.Steps[0].Text, tc.want) {
			t.Errorf("%s: %+v, want %s %q", tc.regex, g, tc.result, tc.want)
		}
	}
}

// TestDeployedConfigurations: the configurations of deploy are right.
func TestDeployedConfigurations(t *testing.T) {
	files, err := filepath.Glob("../../deploy/*/agent.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%q, %v", files, err)
	}
	env := func(name string) (string, bool) { return "node-1", name == "NODE_NAME" }
	for _, file := range files {
		if r := checked(t, Options{ConfigFile: file, StoragePath: t.TempDir(), Level: SyntaxOnly, Env: env}); r.Result == Fail {
			t.Errorf("%s: %+v", file, r.Errors)
		}
	}
}
