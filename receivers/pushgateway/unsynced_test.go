package pushgateway

import (
	"errors"
	"path/filepath"
	"testing"
)

// What a restart reads is what the receiver shows before it, also where the disk changed a file and did not make that
// durable. The answer is an error until it is.
func TestDirectoryNotSynced(t *testing.T) {
	const x, y = `{__name__="x", job="j"}`, `{__name__="y", job="j"}`
	times := own(`job="j"`, "set", "0")
	failed := own(`job="j"`, "set", "set")
	failing := func(string) error { return errors.New("the disk does not sync") }
	for name, tc := range map[string]struct {
		method, body string
		done         int // the answer once the disk syncs
		shows, ended []string
	}{
		"replaced": {"PUT", "y 2\n", 200, append(failed, y+" 2"), []string{x}},
		"added to": {"POST", "y 2\n", 200, append(failed, x+" 1", y+" 2"), nil},
		"deleted":  {"DELETE", "", 202, nil, []string{times[0][:len(times[0])-2], times[1][:len(times[1])-4], x}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, t.TempDir())
			r.must(200, "PUT", "/metrics/job/j", "x 1\n")
			sync := r.store.syncDir
			r.store.syncDir = failing
			r.must(503, tc.method, "/metrics/job/j", tc.body)
			r.must(503, tc.method, "/metrics/job/j", tc.body)
			if err := r.Settle(t.Context()); err != nil {
				t.Error("settle:", err)
			}
			r.want("not durable", tc.shows...)
			newRig(t, r.dir).want("after a restart", tc.shows...)
			r.wantEnded("not durable", tc.ended...)
			if left := r.store.unsettled(); len(left) > 0 {
				t.Errorf("the log has the markers, and these groups wait for them: %v", left)
			}
			r.store.syncDir = sync
			r.must(tc.done, tc.method, "/metrics/job/j", tc.body)
			r.wantEnded("durable", tc.ended...)
		})
	}
}

// A deletion is answered once it is durable, also if the agent was restarted since it failed to be; and so are the first
// group and its new directory.
func TestNamesBeforeAStartAreSynced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pushgateway")
	var synced []string
	for range 2 {
		r := newRig(t, dir)
		r.store.syncDir = func(dir string) error {
			synced = append(synced, dir)
			return nil
		}
		r.must(202, "DELETE", "/metrics/job/j", "")
		if len(synced) != 2 || synced[0] != filepath.Dir(dir) || synced[1] != dir {
			t.Errorf("a start, then a deletion without a group, synced %q, want %q and its parent", synced, dir)
		}
		synced = nil
		r.must(202, "DELETE", "/metrics/job/j", "")
		if len(synced) > 0 {
			t.Errorf("nothing has changed, and %q were synced", synced)
		}
	}
}
