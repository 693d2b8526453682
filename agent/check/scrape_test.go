package check

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "# TYPE a gauge\na 1\nb 2\n") }))
	defer page.Close()
	look := func(regex string) Group {
		t.Helper()
		return group(t, check(t, Live, "scrape_configs: [{job_name: services, fallback_scrape_protocol: PrometheusText0.0.4, kubernetes_sd_configs: [{role: service, api_server: '"+api.URL+"'}], "+
			"relabel_configs: [{source_labels: [__address__], regex: '"+regex+"', action: keep}, {target_label: __address__, replacement: '"+page.Listener.Addr().String()+"'}]}]\n"), GroupScrape)
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
		g := look(tc.regex)
		if g.Name != "services" || g.Result != tc.result || !strings.Contains(g.Steps[0].Text, tc.want) {
			t.Errorf("%s: %+v, want %s %q", tc.regex, g, tc.result, tc.want)
		}
		if last := g.Steps[len(g.Steps)-1]; tc.result == OK && !strings.Contains(last.Text, "1 target answers with 2 samples") {
			t.Errorf("%+v", g)
		}
	}
}

// TestCheckScrapes: a check scrapes the targets of each job once, and prints each group when it is known: a target that hangs
// delays no other.
func TestCheckScrapes(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, "a 1\n")
	}))
	defer page.Close()
	seen := make(chan Group, 10)
	slow := receiver(t, false, func(w http.ResponseWriter, _ *http.Request) {
		for jobs := 0; jobs < 2; { // it answers only when both jobs have been printed
			if g := <-seen; g.Kind == GroupScrape {
				jobs++
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.yaml"), fmt.Sprintf(`remote_write: [{name: slow, url: %q}]
scrape_configs:
  - {job_name: up, static_configs: [{targets: [%q]}]}
  - {job_name: down, static_configs: [{targets: ["127.0.0.1:1"]}]}
probes: [{type: canary, enabled: false}]
`, slow.URL, page.Listener.Addr()), 0o600)
	var order []string
	r := checked(t, Options{ConfigFile: file, StoragePath: filepath.Join(dir, "data"), Level: Live, Env: noEnv, Done: func(g Group) {
		order = append(order, strings.TrimSpace(g.Kind+" "+g.Name))
		seen <- g
	}})
	if got := strings.Join(order[:3], ", "); got != "config, files, storage" || order[len(order)-1] != "target slow" {
		t.Errorf("printed in the order %q", order)
	}
	var kinds []string
	for _, g := range r.Groups[3:] {
		kinds = append(kinds, g.Name+" "+string(g.Result))
	}
	if got := strings.Join(kinds, ", "); got != "slow ok, up ok, down fail" {
		t.Errorf("the report has %s", got)
	}
	if !r.Failed(GroupScrape) || !strings.Contains(strings.Join(r.NotTried, " "), "canary") {
		t.Errorf("%+v", r)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "http://127.0.0.1:1/metrics: connection refused\n        Try: is the exporter running") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestDeployedConfigurations: the configurations of deploy are right.
func TestDeployedConfigurations(t *testing.T) {
	files, err := filepath.Glob("../../deploy/*/agent.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%q, %v", files, err)
	}
	node := map[string]string{"NODE_NAME": "node-1"}
	env := func(name string) (string, bool) { v, ok := node[name]; return v, ok }
	for _, file := range files {
		if r := checked(t, Options{ConfigFile: file, StoragePath: t.TempDir(), Level: SyntaxOnly, Env: env}); r.Result == Fail {
			t.Errorf("%s: %+v", file, r.Errors)
		}
	}
}
