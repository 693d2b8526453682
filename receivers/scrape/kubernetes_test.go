package scrape

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/receivers/scrape/kubernetes/apitest"
)

func podAt(name, address string) apitest.Object {
	host, port, _ := strings.Cut(address, ":")
	var number int
	_, _ = fmt.Sscan(port, &number)
	return apitest.Object{
		"metadata": apitest.Object{"namespace": "a", "name": name, "labels": apitest.Object{"app": name}},
		"spec":     apitest.Object{"containers": []any{apitest.Object{"name": "c", "ports": []any{apitest.Object{"containerPort": number}}}}},
		"status":   apitest.Object{"podIP": host, "phase": "Running"},
	}
}

// TestScrapePods: pods that the API server lists are scraped, with a token that is read again when its file
// changes; the status reports why a list fails, and the last targets continue.
func TestScrapePods(t *testing.T) {
	page := show(t, "a 1\n")
	api := apitest.New()
	defer api.Close()
	defer api.CloseClientConnections()
	token := filepath.Join(t.TempDir(), "token")
	give := func(text string) {
		t.Helper()
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refuse := func(valid string) {
		api.Fail(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Authorization") == "Bearer "+valid {
				return false
			}
			apitest.Refuse(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized: "+r.Header.Get("Authorization"))
			return true
		})
	}
	give("CANARY-1\n")
	refuse("CANARY-1")
	api.Put("pods", podAt("good", page.addr()))
	api.Put("pods", podAt("other", "127.0.0.1:1"))
	j := jobs(t, fmt.Sprintf(`{job_name: pods, kubernetes_sd_configs: [{role: pod, api_server: '%s', authorization: {credentials_file: %s}}],
		relabel_configs: [{source_labels: [__meta_kubernetes_pod_label_app], regex: good, action: keep}, {source_labels: [__meta_kubernetes_pod_name], target_label: pod}]}`, api.URL, token))
	if got := j.Try(t.Context(), "pods"); got.Found != 2 || got.Kept != 1 || got.Problem != "" || len(got.Targets) != 1 || got.Targets[0].Error != "" {
		t.Errorf("a trial finds %+v", got)
	}
	m := newMemory()
	s, _, stop := run(t, m, j)
	defer stop() // before the API server
	state := func() Job {
		all := s.Status()
		if len(all) != 1 {
			return Job{}
		}
		return all[0]
	}
	until(t, "the pod is scraped", func() bool {
		got := state()
		return len(got.Targets) == 1 && got.Targets[0].Health == healthUp && got.Targets[0].Labels.Get("pod") == "good" && got.Dropped == 1 && got.Error == ""
	})
	refuse("CANARY-2")
	api.Forget()
	api.Cut()
	until(t, "the token is refused", func() bool { return strings.Contains(state().Error, "401 Unauthorized") })
	if got := state(); len(got.Targets) != 1 || strings.Contains(got.Error, "CANARY") || !strings.Contains(got.Error, "role pod: ") {
		t.Errorf("with a token that is refused: %+v", got)
	}
	if got := j.Try(t.Context(), "pods"); !strings.Contains(got.Problem, "401 Unauthorized") || strings.Contains(got.Problem, "CANARY") {
		t.Errorf("a trial finds %+v", got)
	}
	give("CANARY-2\n")
	api.Put("pods", podAt("good", "127.0.0.1:1"))
	until(t, "the new token is taken", func() bool {
		got := state()
		return got.Error == "" && len(got.Targets) == 1 && strings.Contains(got.Targets[0].URL, "127.0.0.1:1/")
	})
}
