package probes

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// TestChangedTwiceBeforeARound: a reload changes a probe, and the next one changes its labels or removes it before its
// first round. The series of the former probe still end, once.
func TestChangedTwiceBeforeARound(t *testing.T) {
	for way, ends := range map[string]int{
		"remove": 1, "change labels": 1, "change again and remove": 1, "change labels and remove": 1, "change labels and back": 0,
		"change labels, back and remove": 1,
	} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := &recorder{}
				r := NewRunner(rec, slog.New(slog.DiscardHandler))
				apply := func(identity, instance string) {
					next := spec("p", &probeFunc{f: func(_ context.Context, _ int, r *Round) error { r.Add(&Family{Name: "a"}, 1); return nil }})
					next.Identity, next.Labels = identity, labels.FromStrings("job", "p", "instance", instance)
					r.Apply([]Spec{next})
				}
				apply("first", "i")
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- r.Run(ctx) }()
				time.Sleep(10 * time.Second) // one round
				synctest.Wait()
				apply("changed", "i")
				switch way {
				case "change labels":
					apply("other labels", "other")
				case "change again and remove":
					apply("again", "i")
				case "change labels and remove":
					apply("other labels", "other")
				case "change labels and back", "change labels, back and remove":
					apply("other labels", "other")
					apply("as before", "i")
				}
				if strings.HasSuffix(way, "remove") {
					r.Apply(nil)
				}
				time.Sleep(30 * time.Second)
				cancel()
				<-done
				got := rec.all()
				if n := strings.Count(strings.Join(got, "\n"), `up", instance="i", job="p"} 1`); n != 1 && ends == 1 || n < 2 && ends == 0 {
					t.Errorf("up has %d samples:\n%s", n, strings.Join(got, "\n"))
				}
				for _, name := range []string{"a", "up", "scrape_duration_seconds"} {
					marker := `{__name__="` + name + `", instance="i", job="p"} stale`
					if n := len(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s != marker })); n != ends {
						t.Errorf("%s has %d stale markers, want %d:\n%s", name, n, ends, strings.Join(got, "\n"))
					}
				}
				if ran := strings.Contains(strings.Join(got, "\n"), `"other"`); ran != (way == "change labels") {
					t.Errorf("the probe with other labels is in the log: %t", ran)
				}
			})
		})
	}
}
