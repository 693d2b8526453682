package scrape

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/internal/panics"
)

// TestFormerTargetsStay: when a reload changes where the targets of a job are listed, it keeps those that it has until
// the new source has answered, also over further reloads. What is removed goes at once.
func TestFormerTargetsStay(t *testing.T) {
	var all sync.WaitGroup
	d := newDiscovery(10*time.Millisecond, &guards{func(job string) *panics.Guard { return panics.New(job, slog.New(slog.DiscardHandler)) }}, newSDMetrics(), &all, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		d.end()
		all.Wait()
	})
	var asked atomic.Int64
	var answer atomic.Pointer[string] // nil: an error
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer asked.Add(1)
		text := answer.Load()
		if text == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, *text)
	}))
	t.Cleanup(server.Close)
	says := func(target string) { answer.Store(new(fmt.Sprintf(`[{"targets": [%q]}]`, target))) }
	has := func() string {
		targets := map[string]bool{}
		for _, g := range d.found()["j"] {
			for _, one := range g.Targets {
				targets[string(one[model.AddressLabel])] = true
			}
		}
		var names []string
		for name := range targets {
			names = append(names, name)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	soon := func(what, want string) {
		t.Helper()
		until(t, what+": "+want, func() bool { return has() == want })
	}
	now := func(what, want string) {
		t.Helper()
		if got := has(); got != want {
			t.Errorf("%s: the job has %q, want %q", what, got, want)
		}
	}
	apply := func(lists ...string) {
		d.apply(jobs(t, "{job_name: j, "+strings.Join(lists, ", ")+"}", "{job_name: other}"))
	}
	over := func(path string) string {
		return fmt.Sprintf("http_sd_configs: [{url: %q, refresh_interval: 50ms}]", server.URL+path)
	}
	static := func(target string) string { return fmt.Sprintf("static_configs: [{targets: [%q]}]", target) }
	dir := t.TempDir()
	files := func(names ...string) string {
		for i, name := range names {
			names[i] = filepath.Join(dir, name)
		}
		return fmt.Sprintf("file_sd_configs: [{files: [%s]}]", strings.Join(names, ", "))
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	says("a:1")
	apply(over("/1"), static("s:1"))
	soon("at first", "a:1 s:1")
	answer.Store(nil)
	apply(over("/2"), static("s:2"))
	now("the new list fails; the static target is another one", "a:1 s:2")
	before := asked.Load()
	until(t, "the new list has been asked", func() bool { return asked.Load() > before+1 })
	now("it still fails", "a:1 s:2")
	apply(over("/3"), static("s:2"))
	now("a second reload", "a:1 s:2")
	apply(over("/3"), static("s:3"))
	now("a third, which does not change the list", "a:1 s:3")
	says("b:1")
	soon("the list answers", "b:1 s:3")
	answer.Store(nil)
	apply(over("/4"), static("s:3"))
	now("another one fails", "b:1 s:3")
	answer.Store(new("[]"))
	soon("and answers that there is nothing", "s:3")
	says("b:2")
	soon("and then something", "b:2 s:3")
	answer.Store(nil)
	apply(over("/5"), static("s:3"))
	now("it fails", "b:2 s:3")
	apply(static("s:3"))
	now("the job has no such list any more", "s:3")
	apply(over("/6"), static("s:3"))
	now("what was forgotten does not come back", "s:3")

	write("f.json", `[{"targets": ["f:1"]}]`)
	apply(files("f.json"))
	soon("a file", "f:1")
	write("g.json", `[{"targets": [`)
	apply(files("f.json", "g.json"))
	now("one more, which is half written", "f:1")
	apply(files("g.json"))
	now("only that one", "f:1")
	write("g.json", `[{"targets": ["g:1"]}]`)
	soon("it is written", "g:1")
	apply(files("none*.json"))
	soon("there is no file", "")
}
