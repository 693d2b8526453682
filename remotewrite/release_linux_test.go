package remotewrite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestBacklogOfATargetThatIsDownHoldsNoSegment: a target goes down again while its backlog is sent. The backlog's lane then holds no
// segment open: the log could not free the space of one that it drops.
func TestBacklogOfATargetThatIsDownHoldsNoSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLateRig(t)
		r.cfg.Target.CatchUpRateLimit = 10
		r.start()
		defer r.stop()
		r.down.Store(true)
		r.collect(10 * time.Minute)
		r.down.Store(false)
		r.collect(30 * time.Second)
		if r.q.Status().Missed == 0 || r.q.back.window.Load() == nil {
			t.Fatal("no backlog is being sent")
		}
		r.down.Store(true)
		for wait := 2 * time.Minute; r.q.back.window.Load() != nil || r.q.live.window.Load() != nil; wait -= time.Second {
			if wait == 0 {
				t.Fatal("the lanes do not let go of their windows")
			}
			r.collect(time.Second)
			synctest.Wait()
		}
		if open := segmentsOpen(t, r.dir); len(open) != 1 {
			t.Errorf("open are %v, want the log's own segment only", open)
		}
	})
}

// segmentsOpen returns the segments of that log which this process has open.
func segmentsOpen(t *testing.T, dir string) (open []string) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		// A file that was closed meanwhile has no link.
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, filepath.Join(dir, "wal")+"/0") {
			open = append(open, to)
		}
	}
	return open
}
