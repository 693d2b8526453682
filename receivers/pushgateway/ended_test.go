package pushgateway

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// ended returns the series that are marked stale in the log.
func (r *rig) ended() (all []string) {
	for _, s := range r.log.Samples() {
		if value.IsStaleNaN(s.V) {
			all = append(all, s.Labels)
		}
	}
	slices.Sort(all)
	return all
}

func (r *rig) wantEnded(what string, want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.ended()); diff != "" {
		r.t.Errorf("%s: marked stale (-want +got):\n%s", what, diff)
	}
}

// Series that a push or a deletion takes away are marked stale before the answer. If the log
// takes nothing then, or the agent is killed, they are when it runs again, once.
func TestEndedSeries(t *testing.T) {
	const a, b, c = `{__name__="x", job="j", n="a"}`, `{__name__="x", job="j", n="b"}`, `{__name__="y", job="j"}`
	own := []string{`{__name__="push_failure_time_seconds", job="j"}`, `{__name__="push_time_seconds", job="j"}`}
	for _, kill := range []bool{false, true} {
		dir := t.TempDir()
		r := newRig(t, dir)
		fail := func() {
			if kill {
				r.log.Fail(errors.New("disk"))
			}
		}
		again := func(what string, want ...string) {
			t.Helper()
			if kill {
				r.wantEnded(what + ", the log takes nothing")
				r = newRig(t, dir)
				if err := r.Settle(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			r.wantEnded(what, want...)
			r = newRig(t, dir)
			if err := r.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.wantEnded(what + ", and once more")
		}
		r.must(200, "PUT", "/metrics/job/j", "x{n=\"a\"} 1\nx{n=\"b\"} 1\ny 1\n")
		r.wantEnded("nothing ended")
		fail()
		r.must(200, "POST", "/metrics/job/j", "x{n=\"a\"} 2\n")
		again("POST", b)
		fail()
		r.must(200, "PUT", "/metrics/job/j", "z 2\n")
		again("PUT", a, c)
		fail()
		r.must(200, "PUT", "/metrics/job/j", "x{n=\"a\"} 1\n")
		r.must(200, "PUT", "/metrics/job/j", "z 3\n") // before the log took the markers: z goes on
		if kill {
			again("two times PUT", a)
		} else {
			again("two times PUT", a, `{__name__="z", job="j"}`)
		}
		fail()
		r.must(202, "DELETE", "/metrics/job/j", "")
		r.want("after DELETE")
		again("DELETE", append(own, `{__name__="z", job="j"}`)...)
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("files are left: %v, %v", files, err)
		}
		fail()
		r.must(200, "PUT", "/metrics/job/j", "z 2\ny 2\n")
		r.must(202, "DELETE", "/metrics/job/j", "")
		r.must(200, "PUT", "/metrics/job/j", "z 2\n") // back before anybody was told
		if kill {
			again("DELETE and PUT", c)
		}
		r.want("in the end", own[0]+" 0", own[1]+" set", `{__name__="z", job="j"} 2`)
	}
}

// slowLog delays a commit until the test releases it.
type slowLog struct {
	*receivertest.Log
	commits, goOn chan struct{}
}

func (l slowLog) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return slowAppender{l.Log.AppenderV2(ctx), l}
}

type slowAppender struct {
	storage.AppenderV2
	log slowLog
}

func (a slowAppender) Commit() error {
	a.log.commits <- struct{}{}
	<-a.log.goOn
	return a.AppenderV2.Commit()
}

// A push that brings back what a deletion is marking stale at this moment is behind the marker.
func TestPushedAgainWhileItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := OpenStore(t.TempDir(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		l := slowLog{&receivertest.Log{}, make(chan struct{}), make(chan struct{})}
		r := &rig{t: t, log: l.Log}
		r.Receiver = New(receivers.NewGate(receivers.GateOptions{
			Name: "pushgateway", Limits: receivers.DefaultLimits(), Out: l, Logger: slog.New(slog.DiscardHandler), Full: func(error) bool { return false },
		}), s)
		r.must(200, "PUT", "/metrics/job/j", "x 1\n")
		var all sync.WaitGroup
		all.Go(func() { r.must(202, "DELETE", "/metrics/job/j", "") })
		<-l.commits // the markers are on their way
		back := false
		all.Go(func() {
			r.must(200, "PUT", "/metrics/job/j", "x 2\n")
			back = true
		})
		synctest.Wait()
		if len(r.shows()) > 0 || back {
			t.Error("the series is back before the log has its marker")
		}
		l.goOn <- struct{}{}
		all.Wait()
		if len(r.ended()) != 3 || len(r.shows()) != 3 || !back {
			t.Errorf("ended %v, shown %v", r.ended(), r.shows())
		}
	})
}

// A series is in one group only, once: of two, a round could append but one.
func TestSeriesTwice(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir)
	r.must(200, "PUT", "/metrics/job/j", "x{instance=\"1\"} 1\n# TYPE s summary\ns_sum 1\ns_count 1\n")
	r.must(400, "PUT", "/metrics/job/j/instance/1", "x 2\n")
	r.must(200, "PUT", "/metrics/job/j/instance/2", "x 2\n")
	r.must(400, "POST", "/metrics/job/j", "s_count 2\n")
	r.must(400, "PUT", "/metrics/job/j", "x 1\nx 1\n")
	r.must(400, "PUT", "/metrics/job/j/empty@base64/=", "z 1\n") // the same labels as the first
	r = newRig(t, dir)
	r.must(400, "PUT", "/metrics/job/j/instance/1", "x 2\n")
	r.must(202, "DELETE", "/metrics/job/j", "")
	r.must(200, "PUT", "/metrics/job/j/instance/1", "x 2\n")
	r.want("in the end",
		`{__name__="push_failure_time_seconds", instance="1", job="j"} set`, `{__name__="push_failure_time_seconds", instance="2", job="j"} 0`,
		`{__name__="push_time_seconds", instance="1", job="j"} set`, `{__name__="push_time_seconds", instance="2", job="j"} set`,
		`{__name__="x", instance="1", job="j"} 2`, `{__name__="x", instance="2", job="j"} 2`)
}

// A refused push to a group whose deletion is not in the log yet only brings the group's own series back: the deleted
// series still end, over a restart, too.
func TestRefusedWhileItEnds(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir)
	r.must(200, "PUT", "/metrics/job/j", "x 1\n")
	r.log.Fail(errors.New("disk"))
	r.must(202, "DELETE", "/metrics/job/j", "")
	r.must(400, "PUT", "/metrics/job/j", "y 1 1\n")
	r.wantEnded("the log takes nothing")
	r = newRig(t, dir)
	r.want("after a restart", own(`job="j"`, "0", "set")...)
	if err := r.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.wantEnded("when the log takes it", `{__name__="x", job="j"}`)
	r.want("in the end", own(`job="j"`, "0", "set")...)
}
