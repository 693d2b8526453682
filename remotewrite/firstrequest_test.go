package remotewrite

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// TestFirstRequestHasData: the first request has data and uses the version that the entry asks for. A receiver that
// answers 500 must get the same samples again, and a receiver of 2.0 must get no message of 1.0.
func TestFirstRequestHasData(t *testing.T) {
	for _, message := range []string{config.MessageV1, config.MessageV2, config.MessageAuto} {
		for _, fails := range []bool{false, true} {
			t.Run(message+map[bool]string{true: " first answer 500"}[fails], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, &fakeReceiver{}).timed()
					r.cfg.ProtobufMessage = message
					r.to.script = func(q fakeRequest) (client.Answer, bool) {
						a := client.Answer{Status: 500}
						if q.n > 0 || !fails {
							a = r.to.answerPlain(q)
						}
						a.Date = time.Now()
						return a, true
					}
					r.start()
					r.round(10)
					r.drained(time.Minute)
					r.end()
					want := wire.V2
					if message == config.MessageV1 {
						want = wire.V1
					}
					log := r.to.log()
					for _, q := range log {
						if trial := fails && log[1].version == wire.V1; len(q.samples) == 0 || q.version != want && !trial {
							t.Errorf("a request of %v with %d samples, want only data of %v\n%s", q.version, len(q.samples), want, r.to.dump())
						}
					}
					if fails && !slices.Equal(log[0].samples, log[1].samples) {
						t.Errorf("after the answer 500 other samples are sent\n%s", r.to.dump())
					}
					r.verify()
				})
			})
		}
	}
}

// TestFirstRequestIsRefusedForItsTime: a receiver refuses the first request because this host's clock is ahead, or its
// own is slow, and sends its time in the same answer. The samples are then judged by that time and do not count as
// refused, whatever on_refusal says.
func TestFirstRequestIsRefusedForItsTime(t *testing.T) {
	for _, refusal := range []config.Refusal{config.RefusalHold, config.RefusalDrop} {
		for _, tc := range []struct {
			name        string
			host        time.Duration // the samples' times minus this host's clock
			receiver    time.Duration // the receiver's clock minus this host's
			future      uint64
			deliveredIn time.Duration
		}{
			{"samples ahead of both clocks", 2 * time.Hour, 0, 10, time.Minute},
			{"receiver's clock slow", 0, -30 * time.Minute, 0, 25 * time.Minute},
		} {
			if refusal == config.RefusalDrop && tc.receiver < 0 {
				continue // no refusal holds the target: the samples are dropped
			}
			t.Run(map[config.Refusal]string{config.RefusalHold: "hold, ", config.RefusalDrop: "drop, "}[refusal]+tc.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, &fakeReceiver{}).timed()
					r.cfg.Target.OnRefusal = refusal
					r.to.script = func(q fakeRequest) (client.Answer, bool) {
						at := time.Now().Add(tc.receiver)
						a := client.Answer{Status: 400, Text: "bad"}
						if !slices.ContainsFunc(q.samples, func(s smp) bool { return s.t > at.Add(10*time.Minute).UnixMilli() }) {
							a = r.to.answerPlain(q)
						}
						a.Date = at
						return a, true
					}
					r.start()
					r.time = time.Now().Add(tc.host).UnixMilli()
					r.round(10)
					r.drained(tc.deliveredIn)
					r.end()
					if o := r.log.outcome(); o.Dropped[queue.Future] != tc.future || o.Delivered != 10-tc.future || len(r.letters.all()) > 0 {
						t.Errorf("outcomes %+v, %d dead letters, want %d of the future and the others delivered\n%s", o, len(r.letters.all()), tc.future, r.to.dump())
					}
				})
			})
		}
	}
}
