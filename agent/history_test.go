package agent

import (
	"testing"
	"time"
)

// TestHistoryOverARestart: the points of a target are there again after an orderly stop, which writes the last ones, and the page is given them.
func TestHistoryOverARestart(t *testing.T) {
	a, dir := newSink(t), t.TempDir()
	r := startAgent(t, dir, entry("a", a.URL, ""))
	until(t, "it receives", func() bool { return a.last() > 3 })
	for name, p := range r.points() {
		r.history.Add(name, p)
	}
	r.end()
	r = startAgent(t, dir, entry("a", a.URL, ""))
	defer r.end()
	all := r.figures("a")
	if len(all) != 1 || time.Since(all[0].Time) > 3*time.Minute {
		t.Errorf("after a restart %+v", all)
	}
	if all := r.figures("b"); all != nil {
		t.Errorf("a target that never was has %+v", all)
	}
}
