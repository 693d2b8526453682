package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// The target goes down while the window is drained for another number of shards.
func TestDownWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		r := newRig(t, &fakeReceiver{latency: 300 * time.Millisecond})
		r.to.script = func(q fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, down }
		for range 200 {
			r.round(500)
		}
		r.start()
		r.until("draining", time.Minute, func() bool { w := r.q.live.window.Load(); return w != nil && w.draining.Load() })
		r.to.change(func() { down = true })
		held := 0
		for range 300 {
			time.Sleep(time.Second)
			if r.q.live.window.Load() != nil {
				held++
			}
		}
		if held > 60 {
			t.Errorf("samples were held in %d of 300 s", held)
		}
		r.to.change(func() { down = false })
		r.drained(5 * time.Minute)
		r.end()
		r.verify()
	})
}

// A commit of exemplars only.
func TestExemplarsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{})
		r.cfg.SendExemplars = true
		r.start()
		r.round(10)
		time.Sleep(5 * time.Second)
		for range 10 {
			r.log.append()
			r.log.mu.Lock()
			e := r.log.entries[len(r.log.entries)-1]
			e.Exemplars = []wal.Exemplar{{Series: r.log.series["m0001"], T: r.time, V: 1, Labels: labels.FromStrings("a", "b")}}
			r.log.mu.Unlock()
			time.Sleep(2 * time.Second)
			if s := r.q.Status(); s.State != StateOK {
				t.Errorf("status %+v", s)
			}
		}
		r.end()
		r.verify()
	})
}

// TestDeniedWhileIsolating: 401 while a batch is being divided, at a receiver that refuses empty writes.
func TestDeniedWhileIsolating(t *testing.T) {
	for first := range 24 {
		for _, series := range []int{20, 500} {
			t.Run(fmt.Sprintf("from request %d, %d series", first, series), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var broken time.Time
					to := &fakeReceiver{refuseEmpty: true}
					to.script = func(q fakeRequest) (client.Answer, bool) {
						if broken.IsZero() && q.n >= first {
							broken = time.Now()
						}
						if !broken.IsZero() && time.Since(broken) < 10*time.Second {
							return client.Answer{Status: 401, Text: "expired"}, true
						}
						return client.Answer{}, false
					}
					r := newRig(t, to)
					at := series * 3 / 5
					bad := smp{fmt.Sprintf("m%04d", at), r.time + 2000, float64(r.time+2000) + float64(at)}
					to.poison = func(s smp) bool { return s == bad }
					r.round(series)
					r.round(series)
					r.round(series)
					r.start()
					r.drained(10 * time.Minute)
					r.end()
					if broken.IsZero() {
						t.Skip("isolation was over before")
					}
					if o := r.log.outcome(); o.GivenUp() != 1 {
						t.Errorf("outcomes %+v, want one lost\n%s", o, r.to.dump())
					}
					r.verify(bad)
					if to.again > 24 { // the controls of a proof are sent again
						t.Errorf("%d samples were sent again: some were settled twice, and the window started over\n%s", to.again, r.to.dump())
					}
				})
			})
		}
	}
}

// TestExpireLeavesWhatIsSentAgain: a sample that is sent again as a test of the target has its outcome: it gets no
// second one when it becomes too old meanwhile.
func TestExpireLeavesWhatIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{})
		r.cfg.Queue.SampleAgeLimit = model.Duration(time.Minute)
		q, err := New(Options{Config: r.cfg, Source: r.log, Sender: r.to})
		if err != nil {
			t.Fatal(err)
		}
		q.clock.answered.Store(true)
		w := newWindow(q.live, 1)
		w.progress.Begin(markAt(1, 2), 2, queue.Outcome{})
		old := point{series: testSeries(1)[0], seq: 1, t: r.time - 120_000}
		s := w.shards[0]
		s.expire(&parcel{points: []point{old}, role: asControl}, wire.V1)
		if n := w.open(); n != 2 {
			t.Errorf("%d samples open, want both", n)
		}
		s.expire(&parcel{points: []point{old}}, wire.V1)
		if n := w.open(); n != 1 {
			t.Errorf("%d samples open, want one: the other is too old", n)
		}
	})
}

// TestRefusalInAHoldProvesNothing: a part of a refused batch is refused while another shard finds out that the target
// refuses everything: it does not count as bad, because nothing shows that the receiver was reachable then.
func TestRefusalInAHoldProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{})
		q, err := New(Options{Name: "test", Config: r.cfg, Source: r.log, Sender: r.to})
		if err != nil {
			t.Fatal(err)
		}
		pass := func() gate.Pass {
			p, err := q.gate.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		q.gate.Delivered(pass())
		q.gate.SetLimit(2)
		part := &parcel{role: asPart, points: []point{{series: testSeries(1)[0], seq: 1, t: r.time}}}
		no := client.Judge(client.Answer{Status: 400, Samples: 1}, r.cfg.Policy())
		s := newWindow(q.live, 1).shards[0]
		if _, known := s.judge(pass(), part, no, protocol.Choice{}); !known {
			t.Error("a refusal of a part is not known as one")
		}
		mine, others := pass(), pass()
		q.gate.Refused(others, "400")
		if _, known := s.judge(mine, part, no, protocol.Choice{}); known {
			t.Error("what was refused before the hold began, and after another found it, is taken for bad")
		}
	})
}
