package remotewrite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
)

// TestEndpointRefusesEverything: an endpoint that answers the same 4xx to everything gets at most two requests in eight
// seconds, without a repeated sample, and gets all samples within a minute after it accepts data again. A status that may
// be about the samples costs ten requests before that: the batch twice, and a sample of each of eight series.
func TestEndpointRefusesEverything(t *testing.T) {
	for code := 400; code < 500; code++ {
		if slices.Contains([]int{408, 413, 425, 429}, code) || testing.Short() && code%7 != 0 {
			continue
		}
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := time.Now().Add(10 * time.Minute)
				r := newRig(t, &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) {
					return client.Answer{Status: code, Text: "no"}, time.Now().Before(up)
				}})
				r.timed()
				r.start()
				for range 60 {
					r.round(100)
					time.Sleep(time.Second)
				}
				s := r.q.Status()
				if s.State != StateHeld || s.Why == "" || s.NextTry.IsZero() {
					t.Errorf("status %+v, want held with a reason", s)
				}
				time.Sleep(5 * time.Minute)
				if o := r.log.outcome(); o.Sum() != 0 {
					t.Errorf("outcomes %+v while everything was refused", o)
				}
				reqs := r.to.log()
				if len(reqs) < 5 {
					t.Errorf("%d requests in 6 minutes: the target is not tested", len(reqs))
				}
				if slices.Contains([]int{400, 409, 422}, code) {
					alone := map[string]bool{}
					for _, q := range reqs[2:10] {
						alone[q.samples[0].series] = len(q.samples) == 1
					}
					if !slices.Equal(reqs[0].samples, reqs[1].samples) || len(alone) != 8 || slices.Contains(slices.Collect(maps.Values(alone)), false) {
						t.Errorf("want the batch twice, then a sample of each of eight series\n%s", r.to.dump())
					}
					reqs = reqs[10:]
				}
				for i, q := range reqs {
					n := 0
					seen := map[smp]bool{}
					for _, p := range reqs[i:] {
						if p.at.Sub(q.at) > 8*time.Second {
							break
						}
						n++
						for _, s := range p.samples {
							if seen[s] {
								t.Errorf("sample %+v twice in 8 s", s)
							}
							seen[s] = true
						}
					}
					if n > 2 {
						t.Errorf("%d requests within 8 s\n%s", n, r.to.dump())
						break
					}
				}
				time.Sleep(time.Until(up))
				r.drained(time.Minute)
				r.end()
				r.verify()
			})
		})
	}
}

// TestWebPageIsNoReceiver: a portal or a login page answers 200, but stores no samples: the target is held, the status
// says why, and all samples are delivered when a receiver answers again.
func TestWebPageIsNoReceiver(t *testing.T) {
	for _, policy := range []config.Refusal{config.RefusalHold, config.RefusalDrop} {
		synctest.Test(t, func(t *testing.T) {
			portal := true
			r := newRig(t, &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) {
				return client.Answer{Status: 200, Page: true, Text: "Please log in"}, portal
			}})
			r.cfg.Target.OnRefusal = policy
			r.start()
			for range 60 {
				r.round(10)
				time.Sleep(10 * time.Second)
			}
			if o, s := r.log.outcome(), r.q.Status(); o.Sum() != 0 || s.State != StateHeld || s.Why != "200 OK: a web page, no receiver: Please log in" {
				t.Errorf("outcomes %+v, status %+v", o, s)
			}
			if n := r.to.count(); n > 30 {
				t.Errorf("%d requests in ten minutes", n)
			}
			r.to.change(func() { portal = false })
			r.drained(time.Minute)
			r.end()
			r.verify()
		})
	}
}

// A sample that the client sent twice, over a connection that ended and over a new one, may be stored: refused as late, it is unconfirmed.
// One that was sent once is rejected.
func TestSentTwiceMayBeStored(t *testing.T) {
	for _, twice := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &fakeReceiver{})
			r.to.script = func(q fakeRequest) (client.Answer, bool) {
				return client.Answer{Status: 400, Text: "out of order sample", Again: twice && q.n == 0}, true
			}
			r.start()
			r.round(1)
			r.drained(time.Minute)
			r.end()
			want := queue.One(queue.Rejected)
			if twice {
				want = queue.One(queue.Unconfirmed)
			}
			if o := r.log.outcome(); o != want || len(r.letters.all()) != 1 {
				t.Errorf("sent twice %t: outcomes %+v, %d letters", twice, o, len(r.letters.all()))
			}
		})
	}
}

// TestRefusalStaysInTheStatus: the status has the words of the last refusal of samples after other errors, too.
func TestRefusalStaysInTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		r := newRig(t, &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) {
			if down {
				return client.Answer{Err: errDown}, true
			}
			return client.Answer{Status: 400, Text: "out of order sample", Failure: client.Failure{Kind: client.Refused}}, true
		}})
		r.start()
		r.round(1)
		r.drained(time.Minute)
		refused := r.q.Status()
		r.to.change(func() { down = true })
		r.round(1)
		time.Sleep(time.Minute)
		s := r.q.Status()
		if s.LastRefusal != refused.LastRefusal || s.LastRefusal.Text != refused.LastError || !strings.HasSuffix(s.LastRefusal.Text, "out of order sample") || !s.LastRefusal.At.Before(s.LastErrorAt) {
			t.Errorf("first %+v, then %+v", refused, s)
		}
		r.end()
	})
}
