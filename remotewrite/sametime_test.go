package remotewrite

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal"
)

// TestSameTimeTwiceInABacklog: a push may bring three samples of a series in one commit, of which two late ones have the same time; the log
// accepts them, because it refuses only another value at the newest time. Each gets an outcome, and the target goes on, although the
// receiver refuses the backlog, and the queue sends samples of it alone.
func TestSameTimeTwiceInABacklog(t *testing.T) {
	for _, twice := range []int64{200, 300} { // 200: the control, without samples of the same time
		t.Run(fmt.Sprint(twice == 300), func(t *testing.T) { sameTimeTwice(t, twice) })
	}
}

func sameTimeTwice(t *testing.T, twice int64) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{anyOrder: true, latency: 5 * time.Millisecond}
		to.poison = func(s smp) bool { return strings.HasPrefix(s.series, "bad") }
		r := newRig(t, to)
		r.cfg.Target.CatchUp = config.LiveFirst
		r.cfg.Queue.MaxSamplesPerSend = 50
		down := false
		to.script = func(q fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, down }
		r.start()
		round := func() {
			r.time = max(r.time+1000, time.Now().UnixMilli())
			var ss []smp
			for i := range 10 {
				name := fmt.Sprintf("m%d", i)
				ss = append(ss, smp{name, r.time, 1}, smp{name, r.time - 300, 2}, smp{name, r.time - twice, 3})
			}
			ss = append(ss, smp{"bad", r.time, 4})
			r.log.append(ss...)
		}
		for range 3 {
			round()
			time.Sleep(5 * time.Second)
		}
		to.set(func() { down = true })
		for range 60 {
			round()
			time.Sleep(5 * time.Second)
		}
		to.set(func() { down = false })
		for range 720 { // an hour
			round()
			time.Sleep(5 * time.Second)
		}
		if n, st := r.log.pending(), r.q.Status(); n > 100 {
			t.Errorf("%d of %d samples wait an hour after the outage; %+v\noutcomes %+v", n, r.log.Head().Total, st, r.log.outcome())
		}
		r.end()
	})
}

// TestSameTimeTwiceInATrial: the same where series beyond a limit are refused together, then some of them alone, of which one is accepted.
func TestSameTimeTwiceInATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{anyOrder: true, latency: 5 * time.Millisecond, says: limitWords}
		to.poison = func(s smp) bool { return strings.HasPrefix(s.series, "bad") }
		r := newRig(t, to)
		r.start()
		n, extra := 0, ""
		round := func() {
			r.time = max(r.time+1000, time.Now().UnixMilli())
			var ss []smp
			for i := range 10 {
				ss = append(ss, smp{fmt.Sprintf("m%d", i), r.time, 1})
			}
			for i := range 4 {
				ss = append(ss, smp{fmt.Sprintf("bad%d", i), r.time, 4})
			}
			if extra != "" {
				for i := range 5 {
					name := fmt.Sprintf("bad%s%d", extra, i)
					if i == 0 {
						name = "new" + extra
					}
					ss = append(ss, smp{name, r.time, 1}, smp{name, r.time - 300, 2}, smp{name, r.time - 300, 3})
				}
			}
			r.log.append(ss...)
			n++
		}
		for range 20 {
			round()
			time.Sleep(15 * time.Second)
		}
		for i := range 10 {
			extra = fmt.Sprint("x", i)
			round()
			time.Sleep(15 * time.Second)
		}
		extra = ""
		for range 240 { // an hour
			round()
			time.Sleep(15 * time.Second)
		}
		if n, st := r.log.pending(), r.q.Status(); n > 100 {
			t.Errorf("%d of %d samples wait; %+v\noutcomes %+v", n, r.log.Head().Total, st, r.log.outcome())
		}
		r.end()
	})
}

// TestLogTakesSameTimeTwice: the log accepts such a commit.
func TestLogTakesSameTimeTwice(t *testing.T) {
	l, err := wal.Open(wal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := l.Reader("x", wal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	app := l.AppenderV2(t.Context())
	for i, at := range []int64{100, 90, 90} {
		if _, err := app.Append(0, labels.FromStrings("__name__", "x"), 0, at, float64(i), nil, nil, storage.AppendV2Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	e, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Samples) != 3 {
		t.Errorf("the log has %+v", e.Samples)
	}
}
