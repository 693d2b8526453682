package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"hwsagent/agent/status"
)

// TestHealthy: the exit code tells an agent that answers from one that answers badly and from none, for people and for programs.
func TestHealthy(t *testing.T) {
	dir, l := silentStorage(t)
	answer := http.StatusOK
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/-/healthy" {
			t.Errorf("the agent is asked for %s %s", r.Method, r.URL)
		}
		w.WriteHeader(answer)
		_, _ = w.Write([]byte("hwsagent is healthy\n"))
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	ask := func(args ...string) (int, string, string) {
		return hwsagent(t, append([]string{"healthy", "--storage.path", dir}, args...)...)
	}
	if code, stdout, stderr := ask(); code != status.ExitOK || stdout != "hwsagent is healthy\n" || stderr != "" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, _ := ask("--json")
	var got struct{ Healthy bool }
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != status.ExitOK || !got.Healthy {
		t.Errorf("exit %d, %v\n%s", code, err, stdout)
	}
	answer = http.StatusServiceUnavailable
	if code, _, stderr := ask(); code != status.ExitFailed || !strings.Contains(stderr, "503") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	<-served
	for _, args := range [][]string{nil, {"--json"}} {
		code, stdout, stderr := ask(args...)
		if code != status.ExitNotRunning || !strings.Contains(stdout+stderr, "no agent is running") || args != nil && !json.Valid([]byte(stdout)) {
			t.Errorf("%v: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
}
