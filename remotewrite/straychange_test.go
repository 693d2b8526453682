package remotewrite

import (
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// TestOneStrayAnswerLosesNoHistograms: a receiver has confirmed data as 2.0, and one stray 2xx comes from a program in front of it. 1.0 is used for a
// minute, not an hour: without send_native_histograms it carries no native histograms.
func TestOneStrayAnswerLosesNoHistograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stray := 0
		r := newRig(t, &fakeReceiver{latency: time.Millisecond, script: func(q fakeRequest) (client.Answer, bool) {
			if stray > 0 && q.version == wire.V2 && len(q.samples) > 0 {
				stray--
				return client.Answer{Status: 200}, true
			}
			return client.Answer{}, false
		}})
		r.cfg.ProtobufMessage = config.MessageV2 // send_native_histograms: false, as by default
		r.start()
		rounds := func(n int) {
			for range n {
				r.time += 5000
				r.log.append(smp{"histogram1", r.time, 1}, smp{"m", r.time, 2})
				time.Sleep(5 * time.Second)
			}
		}
		rounds(10)
		r.to.set(func() { stray = 1 })
		rounds(12 * 60)
		r.end()
		if o := r.log.outcome(); o.Dropped[queue.Unsupported] > 30 {
			t.Errorf("one stray answer cost %d histograms: %+v", o.Dropped[queue.Unsupported], o)
		}
	})
}
