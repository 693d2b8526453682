package remotewrite

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
)

// TestDropLetterIsOfTheBadSample: with on_refusal: drop and remote write 2.0, a receiver keeps the good part of a request, reports how much it
// wrote, and names the bad sample. The dead letter is of that sample, not of one that the receiver has.
func TestDropLetterIsOfTheBadSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{keepsGood2: true, latency: time.Millisecond}
		to.poison = func(s smp) bool { return s.series == "m0003" }
		to.says = `sample timestamp out of order or bad value for series {__name__="m0003", job="test"}`
		r := newRig(t, to)
		r.cfg.ProtobufMessage, r.cfg.Target.OnRefusal = config.MessageV2, config.RefusalDrop
		r.start()
		for range 5 {
			r.round(10)
			time.Sleep(5 * time.Second)
		}
		r.drained(time.Minute)
		r.end()
		if o := r.log.outcome(); o.Dropped[queue.Rejected] != 5 || o.Delivered != 45 {
			t.Errorf("outcomes %+v", o)
		}
		for _, l := range r.letters.all() {
			if !strings.Contains(l.Series, "m0003") {
				t.Errorf("a letter names %s, which the receiver has: %+v", l.Series, l)
			}
		}
	})
}
