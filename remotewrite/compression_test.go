package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
)

// compressions counts requests with samples by compression.
func (r *fakeReceiver) compressions(from int) (n [wire.NumCompressions]int) {
	for _, q := range r.log()[from:] {
		if len(q.samples) > 0 {
			n[q.compression]++
		}
	}
	return n
}

// feed brings n rounds, each of which is a request of its own.
func (r *rig) feed(n int) {
	for range n {
		r.round(20)
		time.Sleep(feedEvery)
	}
}

// feedEvery is longer than a batch waits to fill.
const feedEvery = 1500 * time.Millisecond

// TestZstd: zstd is used only where the entry names it and the version is 1.0. The first answer that is not of VictoriaMetrics, and the first refusal,
// end that until the next start, and so do three failures at zstd alone. No sample is lost.
func TestZstd(t *testing.T) {
	refuses := func(status int) func(fakeRequest) (client.Answer, bool) {
		return func(q fakeRequest) (client.Answer, bool) {
			return client.Answer{Status: status, Text: "cannot decode"}, q.compression == wire.Zstd
		}
	}
	for _, tc := range []struct {
		name     string
		asked    config.Compression
		victoria bool
		script   func(fakeRequest) (client.Answer, bool)
		zstd     bool // it stays in use
		most     int  // bodies with zstd until it is given up
	}{
		{"VictoriaMetrics", config.CompressionZstd, true, nil, true, 0},
		{"not asked for", config.CompressionSnappy, true, nil, false, 0},
		{"2xx of another receiver, which stores nothing", config.CompressionZstd, false, func(q fakeRequest) (client.Answer, bool) {
			return client.Answer{Status: 204}, q.compression == wire.Zstd
		}, false, 1},
		{"400", config.CompressionZstd, true, refuses(400), false, 1},
		{"415", config.CompressionZstd, true, refuses(415), false, 1},
		{"500", config.CompressionZstd, true, refuses(500), false, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &fakeReceiver{victoria: func(fakeRequest) bool { return tc.victoria }}
				to.script = tc.script
				r := newRig(t, to)
				r.cfg.Target.Compression = tc.asked
				r.start()
				r.feed(40)
				r.drained(time.Minute)
				s := r.q.Status()
				r.end()
				r.verify()
				n := to.compressions(0)
				if tc.zstd && (n[wire.Snappy] > 0 || s.Compression != "zstd") || !tc.zstd && (n[wire.Zstd] != tc.most || s.Compression != "snappy") {
					t.Errorf("requests %v, %+v", n, s)
				}
				if named := tc.asked == config.CompressionZstd && !tc.zstd; (s.Plain != "") != named {
					t.Errorf("why snappy: %q", s.Plain)
				}
			})
		})
	}
}

// TestZstdFailsForAWhile: an outage is no reason to give zstd up.
func TestZstdFailsForAWhile(t *testing.T) {
	for _, status := range []int{0, 429, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &fakeReceiver{victoria: func(fakeRequest) bool { return true }}
				down := true
				to.script = func(fakeRequest) (client.Answer, bool) {
					if status == 0 {
						return client.Answer{Err: errDown}, down
					}
					return client.Answer{Status: status}, down
				}
				r := newRig(t, to)
				r.cfg.Target.Compression = config.CompressionZstd
				r.start()
				r.feed(10)
				to.set(func() { down = false })
				r.drained(time.Minute)
				from := to.count()
				r.feed(10)
				r.drained(time.Minute)
				r.end()
				r.verify()
				if n := to.compressions(from); n[wire.Zstd] < 9 {
					t.Errorf("requests %v after the outage", n)
				}
			})
		})
	}
}
