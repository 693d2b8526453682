package agent

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hwsagent/agent/status"
)

// TestAStartIsNoWarning: from the start to the first answer of the receiver the verdict is good and says what comes next. If
// that answer is a refusal, the verdict is bad.
func TestAStartIsNoWarning(t *testing.T) {
	for _, answer := range []int{http.StatusOK, http.StatusUnauthorized} {
		asked, free := make(chan struct{}), make(chan struct{})
		ask := sync.OnceFunc(func() { close(asked) })
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			ask()
			<-free
			w.WriteHeader(answer)
		}))
		r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
		r.configure(strings.Replace(entry("a", receiver.URL, ""), "metadata_config", "remote_timeout: 1m, metadata_config", 1))
		startAgentWith(t, r, t.TempDir(), "")
		good := func(when string) {
			if v := *r.Status().Verdict; v.ExitCode != status.ExitOK || !strings.HasPrefix(v.Text, "Ready; ") {
				t.Errorf("%s: %+v", when, v)
			}
		}
		good("at once")
		<-asked
		until(t, "the waiting samples are counted", func() bool { good("before the answer"); a, _ := r.target("a"); return a.LagSeconds > 0 })
		if v := *r.Status().Verdict; v.Text != "Ready; the first samples are on their way" {
			t.Errorf("before the answer: %+v", v)
		}
		close(free)
		want := map[int]int{http.StatusOK: status.ExitOK, http.StatusUnauthorized: status.ExitTarget}[answer]
		until(t, "the answer is judged", func() bool {
			v := *r.Status().Verdict
			return v.ExitCode == want && !strings.HasPrefix(v.Text, "Ready")
		})
		r.end()
		receiver.Close()
	}
}

// TestFirstRoundIsAnnounced: before the first round the verdict says when it begins.
func TestFirstRoundIsAnnounced(t *testing.T) {
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	text := strings.Replace(testProbes, "interval: 20ms, timeout: 20ms", "interval: 24h", 1)
	text += "remote_write:\n" + entry("a", "http://127.0.0.1:1/", "")
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startAgentWith(t, r, t.TempDir(), "")
	until(t, "the time of the first round is known", func() bool { return !r.Status().Probes[0].FirstRun.IsZero() })
	s := r.Status()
	if want := "Ready; the first round of probes begins at " + status.Clock(s.Now, s.Probes[0].FirstRun); s.Verdict.Text != want || s.Verdict.ExitCode != status.ExitOK {
		t.Errorf("%+v, want %q", *s.Verdict, want)
	}
}
