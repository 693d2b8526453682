package remotewrite

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// TestDropFollowsTheSpecification: on_refusal: drop follows both specifications to the letter ("Retries & Backoff" of
// 1.0, "Retries on 4xx" of 2.0): samples that got a 4xx other than 429 are never sent again, and are counted; 429 and
// 5xx are retried; a redirect or any other answer that is not one to the write loses no sample.
func TestDropFollowsTheSpecification(t *testing.T) {
	codes := []int{0, 100, 199, 300, 301, 302, 303, 304, 305, 307, 308, 399, 600, 999}
	for code := 400; code < 600; code++ {
		codes = append(codes, code)
	}
	for _, code := range codes {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { dropped(t, code) })
		})
	}
}

// TestDropOfALargeBacklog: with on_refusal: drop a request has at most 2,000 samples, so one bad sample of 10,000 costs no more, and no refused
// sample is sent again.
func TestDropOfALargeBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{poison: func(s smp) bool { return s.series == "m4321" }})
		r.cfg.Target.OnRefusal = config.RefusalDrop
		r.round(10_000)
		r.start()
		r.drained(time.Minute)
		r.end()
		if o := r.log.outcome(); o.Dropped[queue.Rejected] != mostDivided || o.Delivered != 10_000-mostDivided {
			t.Errorf("outcomes %+v, want %d rejected", o, mostDivided)
		}
		came := make(map[smp]bool)
		for _, q := range r.to.log() {
			for _, s := range q.samples {
				if came[s] {
					t.Fatalf("%v was sent again", s)
				}
				came[s] = true
			}
		}
	})
}

func dropped(t *testing.T, code int) {
	answer := client.Answer{Status: code, Text: "no"}
	if code == 0 {
		answer = client.Answer{Err: errDown}
	}
	r := newRig(t, &fakeReceiver{script: func(q fakeRequest) (client.Answer, bool) { return answer, q.n == 0 }})
	r.cfg.Target.OnRefusal = config.RefusalDrop
	r.start()
	var lost []smp
	r.round(50)
	if code/100 == 4 && code != 429 {
		for _, s := range r.log.entries[0].Samples {
			lost = append(lost, smpOf(s))
		}
	}
	time.Sleep(3 * time.Second)
	r.round(50)
	r.drained(time.Minute)
	r.end()
	if o := r.log.outcome(); int(o.Dropped[queue.Rejected]) != len(lost) || int(o.GivenUp()) != len(lost) {
		t.Errorf("outcomes %+v, want %d rejected", o, len(lost))
	}
	if ls := r.letters.all(); len(lost) > 0 && (len(ls) != 1 || ls[0].Samples != len(lost) || ls[0].Status != code) || len(lost) == 0 && len(ls) > 0 {
		t.Errorf("letters %+v", ls)
	}
	for _, q := range r.to.log()[1:] {
		if slices.ContainsFunc(q.samples, func(s smp) bool { return slices.Contains(lost, s) }) {
			t.Fatalf("a refused sample was sent again\n%s", r.to.dump())
		}
	}
	r.verify(lost...)
}

// TestDropDropsAfterTrouble: with on_refusal: drop, samples that the receiver answers with a 4xx other than 429 are dropped and counted,
// whatever came before: lost answers, a restart, or a redirect that held the target. The target was held for ever.
func TestDropDropsAfterTrouble(t *testing.T) {
	for _, empty := range []bool{false, true} {
		for _, long := range []int{0, 30} {
			for _, status := range []int{400, 403, 413, 404} {
				for name, trouble := range map[string]client.Answer{"answers lost, restart": {Err: errors.New("connection reset")}, "redirect": {Status: 302}, "lost": {Err: errors.New("connection reset")}} {
					t.Run(fmt.Sprintf("%s,%d,empty=%t,long=%d", name, status, empty, long), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							var answer *client.Answer
							all := false
							r := newRig(t, &fakeReceiver{latency: time.Millisecond, script: func(q fakeRequest) (client.Answer, bool) {
								if answer == nil || len(q.samples) == 0 && empty && !all {
									return client.Answer{}, false
								}
								return *answer, true
							}})
							r.cfg.Target.OnRefusal, r.cfg.Metadata.Send = config.RefusalDrop, false
							r.start()
							rounds := func(n int) {
								for range n {
									r.round(10)
									time.Sleep(5 * time.Second)
								}
							}
							rounds(3)
							r.to.set(func() { answer, all = &trouble, true })
							rounds(long)
							rounds(3)
							if name == "answers lost, restart" {
								r.end()
							}
							r.to.set(func() { answer, all = &client.Answer{Status: status, Text: "no"}, false })
							if name == "answers lost, restart" {
								r.start()
							}
							rounds(300) // 25 minutes
							if n, st := r.log.pending(), r.q.Status(); n > 20 {
								t.Errorf("%d of %d samples wait; %s: %s; outcomes %+v", n, r.log.Head().Total, st.State, st.Why, r.log.outcome())
							}
							r.end()
						})
					})
				}
			}
		}
	}
}

// TestDropNeverSendsA400AgainAs1: with on_refusal: drop and protobuf_message set to 2.0, samples are never sent again
// as 1.0 after a 400: the specification allows that for 415 alone. auto asks for 1.0 where 2.0 is not accepted, so
// there it is tried once.
func TestDropNeverSendsA400AgainAs1(t *testing.T) {
	for message, want := range map[string]int{config.MessageV2: 0, config.MessageAuto: 1} {
		t.Run(message, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) { return client.Answer{Status: 400, Text: "no"}, true }})
				r.cfg.ProtobufMessage, r.cfg.Target.OnRefusal, r.cfg.Metadata.Send = message, config.RefusalDrop, false
				r.start()
				for range 5 {
					r.round(10)
					time.Sleep(5 * time.Second)
				}
				r.drained(time.Minute)
				r.end()
				older := 0
				for _, q := range r.to.log() {
					if q.version == wire.V1 && len(q.samples) > 0 {
						older++
					}
				}
				if older != want {
					t.Errorf("%d requests with samples as 1.0, want %d\n%s", older, want, r.to.dump())
				}
				if o := r.log.outcome(); o.Dropped[queue.Rejected] != 50 {
					t.Errorf("outcomes %+v", o)
				}
			})
		})
	}
}
