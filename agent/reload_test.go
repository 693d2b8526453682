package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestReloadTellsTheDifference: a reload lists the changed keys, before and after it is applied, without secrets.
func TestReloadTellsTheDifference(t *testing.T) {
	a := newSink(t)
	r := startAgent(t, t.TempDir(), entry("a", a.URL, ", bearer_token: first-hunter2"), entry("b", a.URL+"/b", ""))
	defer r.end()
	lines := func(dryRun bool) []string {
		t.Helper()
		got, err := RequestReload(t.Context(), r.o.StoragePath, dryRun)
		if err != nil {
			t.Fatal(err)
		}
		if got.Reloaded == dryRun || got.DryRun != dryRun {
			t.Errorf("reloaded %v, dry run %v", got.Reloaded, got.DryRun)
		}
		var text strings.Builder
		if err := got.WriteText(&text); err != nil || strings.Contains(text.String(), "hunter2") {
			t.Errorf("%v: %s", err, text.String())
		}
		return strings.Split(strings.TrimSpace(text.String()), "\n")
	}
	for name, c := range map[string]struct {
		entries []string
		extra   string
		want    []string
	}{
		"nothing": {[]string{entry("a", a.URL, ", bearer_token: first-hunter2"), entry("b", a.URL+"/b", "")}, "", nil},
		"a secret": {[]string{entry("a", a.URL, ", bearer_token: other-hunter2"), entry("b", a.URL+"/b", "")}, "",
			[]string{`~ remote_write "a": <secret> changed`}},
		"a key, a target and a probe": {[]string{entry("a", a.URL, ", bearer_token: first-hunter2, remote_timeout: 7s"), entry("c", a.URL+"/c", "")}, "  - {name: more, type: canary}\n",
			[]string{`+ probes "more"`, `~ remote_write "a".remote_timeout: 30s → 7s`, `- remote_write "b"`, `+ remote_write "c"`}},
	} {
		t.Run(name, func(t *testing.T) {
			r.extra = c.extra
			r.configure(c.entries...)
			before := r.Status().Config.LoadedAt
			for range 2 {
				if got := lines(true); !slices.Equal(got[:len(got)-1], c.want) {
					t.Errorf("--dry-run: %q, want %q", got, c.want)
				}
			}
			if !r.Status().Config.LoadedAt.Equal(before) {
				t.Error("--dry-run loaded the configuration")
			}
			if got := lines(false); !slices.Equal(got[:len(got)-1], c.want) {
				t.Errorf("reload: %q, want %q", got, c.want)
			}
			r.extra = ""
			r.configure(entry("a", a.URL, ", bearer_token: first-hunter2"), entry("b", a.URL+"/b", ""))
			lines(false)
		})
	}
	r.configure(entry("a", a.URL, ", remote_timeout: soon"))
	for _, dryRun := range []bool{true, false} {
		if _, err := RequestReload(t.Context(), r.o.StoragePath, dryRun); !errors.Is(err, ErrReload) || !strings.Contains(err.Error(), "soon") {
			t.Errorf("dry run %v of a mistake: %v", dryRun, err)
		}
		if shown := r.Status().Config.ReloadError != ""; shown == dryRun {
			t.Errorf("dry run %v: the status shows a failed reload: %v", dryRun, shown)
		}
	}
}
