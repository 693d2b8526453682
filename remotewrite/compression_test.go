package remotewrite

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

var (
	always = func(fakeRequest) bool { return true }
	never  = func(fakeRequest) bool { return false }
)

// answers is the same answer to every request.
func answers(status int, text string) func(fakeRequest) (client.Answer, bool) {
	return func(fakeRequest) (client.Answer, bool) { return client.Answer{Status: status, Text: text}, true }
}

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

// zstd is for VictoriaMetrics only, and only where the entry allows it and the version is 1.0.
func TestZstdIsForVictoriaMetrics(t *testing.T) {
	for _, asked := range []config.Compression{config.CompressionAuto, config.CompressionSnappy, config.CompressionZstd} {
		for _, is := range []bool{false, true} {
			for _, message := range []string{config.MessageV1, config.MessageAuto} {
				for _, speaks := range []speech{speaksBoth, speaksOneSilent} {
					t.Run(fmt.Sprintf("%v/victoria %v/%s/speech %d", asked, is, message, speaks), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							to := &fakeReceiver{speaks: speaks, victoria: func(fakeRequest) bool { return is }}
							r := newRig(t, to)
							r.cfg.Target.Compression, r.cfg.ProtobufMessage = asked, message
							r.start()
							r.feed(60)
							r.drained(time.Minute)
							s := r.q.Status()
							r.end()
							r.verify()
							want := wire.Snappy
							if is && asked != config.CompressionSnappy && (message == config.MessageV1 || speaks == speaksOneSilent) {
								want = wire.Zstd
							}
							n := to.compressions(0)
							if other := n[wire.Zstd-want]; n[want] < 50 || other > 3 || want == wire.Snappy && other > 0 || s.Compression != want.String() {
								t.Errorf("%d requests of snappy, %d of zstd, status %q; want %v\n%s", n[wire.Snappy], n[wire.Zstd], s.Compression, want, to.dump())
							}
							if told := s.Plain != ""; told != (asked == config.CompressionZstd && !is) {
								t.Errorf("status says why it is snappy: %q", s.Plain)
							}
							if to.again > 0 {
								t.Errorf("%d samples came again", to.again)
							}
						})
					})
				}
			}
		}
	}
}

// TestZstdIsTakenBack: a receiver answers 204 to zstd and stores no sample; an address starts to lead to that receiver,
// or leads to two by turns; a receiver does not accept zstd. All samples are delivered, and are counted once.
func TestZstdIsTakenBack(t *testing.T) {
	byTurns := func(r fakeRequest) bool { return r.n%2 == 0 }
	cells := 0
	for _, policy := range []config.Refusal{config.RefusalHold, config.RefusalDrop} {
		for _, asked := range []config.Compression{config.CompressionAuto, config.CompressionZstd} {
			for name, tc := range map[string]struct {
				victoria func(fakeRequest) bool // after a minute
				tells    func(fakeRequest) (client.Answer, bool)
				most     int  // how many requests of zstd may fail in the ten minutes after that
				back     bool // zstd is in use after that
			}{
				"the header disappears, and nothing is stored": {never, answers(204, ""), 1, false},
				"the header disappears, and 200":               {never, answers(200, "OK"), 1, false},
				"the header disappears, and all is stored":     {never, nil, 1, false},
				"the header disappears, and a web page": {never, func(fakeRequest) (client.Answer, bool) {
					return client.Answer{Status: 200, Page: true, HTML: true}, true
				}, 1, false},
				"two receivers by turns":    {byTurns, func(r fakeRequest) (client.Answer, bool) { return client.Answer{Status: 204}, !byTurns(r) }, 3, false},
				"415":                       {always, answers(415, "want snappy"), 1, false},
				"400":                       {always, answers(400, "snappy: corrupt input"), 1, false},
				"409":                       {always, answers(409, ""), 1, false},
				"422":                       {always, answers(422, ""), 1, false},
				"403 of a firewall":         {always, answers(403, ""), 1, false},
				"404":                       {always, answers(404, ""), 1, false},
				"302":                       {always, answers(302, ""), 3, false},
				"413":                       {always, answers(413, ""), 1, false},
				"500":                       {always, answers(500, "cannot decode"), 9, false},
				"the connection is cut off": {always, func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errors.New("reset")}, true }, 9, false},
				"well":                      {always, nil, 0, true},
			} {
				if cells++; sparse(cells) {
					continue
				}
				t.Run(fmt.Sprintf("%v/%v/%s", policy, asked, name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						to := &fakeReceiver{victoria: always}
						r := newRig(t, to)
						r.cfg.Target.Compression, r.cfg.Target.OnRefusal = asked, policy
						r.start()
						r.feed(60)
						from := to.count()
						if n := to.compressions(0); n[wire.Zstd] < 50 {
							t.Fatalf("%d requests of zstd before the change", n[wire.Zstd])
						}
						vain := 0
						to.set(func() {
							to.victoria = tc.victoria
							if tc.tells != nil {
								to.tellsZstd = func(q fakeRequest) (client.Answer, bool) {
									a, ok := tc.tells(q)
									if ok && len(q.samples) > 0 {
										vain++
									}
									return a, ok
								}
							}
						})
						r.feed(int(10 * time.Minute / feedEvery))
						r.drained(time.Minute)
						s := r.q.Status()
						r.end()
						r.verify()
						if o := r.log.outcome(); o.Delivered != o.Sum() {
							t.Errorf("outcomes %+v: want all delivered", o)
						}
						if letters := r.letters.all(); len(letters) > 0 {
							t.Errorf("%d dead letters, the first: %+v", len(letters), letters[0])
						}
						if vain > tc.most || tc.tells != nil && vain == 0 {
							t.Errorf("%d requests of zstd in vain, want 1 to %d\n%s", vain, tc.most, to.dump())
						}
						if n := to.compressions(from); tc.back != (n[wire.Zstd] > 300) || !tc.back && (n[wire.Zstd] > 20+tc.most || s.Plain == "") {
							t.Errorf("%d requests of zstd after the change, status %q %q", n[wire.Zstd], s.Compression, s.Plain)
						}
					})
				})
			}
		}
	}
}

// TestZstdComesBack: zstd is used again some minutes after the reason has gone, and not before.
func TestZstdComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{victoria: always}
		r := newRig(t, to)
		reg := prometheus.NewRegistry()
		var err error
		if r.metrics, err = metrics.New(reg, "test", "http://x"); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.feed(10)
		to.set(func() { to.victoria = never })
		r.feed(10)
		to.set(func() { to.victoria = always })
		from := to.count()
		if shown(t, reg, "hwsagent_target_compression", "snappy") != 1 || shown(t, reg, "hwsagent_target_compression", "zstd") != 0 {
			t.Error("the metric does not say snappy")
		}
		r.feed(int((protocol.PlainTime - 10*time.Second) / feedEvery))
		if n := to.compressions(from); n[wire.Zstd] > 0 {
			t.Errorf("%d requests of zstd before its time", n[wire.Zstd])
		}
		r.feed(30)
		if n := to.compressions(from); n[wire.Zstd] < 10 {
			t.Errorf("%d requests of zstd half a minute after its time", n[wire.Zstd])
		}
		if s := r.q.Status(); s.Compression != "zstd" || s.Plain != "" {
			t.Errorf("status %q %q", s.Compression, s.Plain)
		}
		if shown(t, reg, "hwsagent_target_compression", "zstd") != 1 {
			t.Error("the metric does not say zstd")
		}
		r.drained(time.Minute)
		r.end()
		r.verify()
	})
}

// A bad sample in a batch of zstd is found by requests of snappy, and costs no other.
func TestZstdSaysNothingAgainstSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := map[smp]bool{}
		to := &fakeReceiver{victoria: always}
		to.poison = func(s smp) bool { return bad[s] }
		r := newRig(t, to)
		r.start()
		r.feed(20)
		x := smp{"m0003", r.time + 1000, float64(r.time+1000) + 3}
		to.set(func() { bad[x] = true })
		r.feed(20)
		r.drained(time.Minute)
		r.end()
		r.verify(x)
		if o := r.log.outcome(); o.Dropped[queue.Rejected] != 1 {
			t.Errorf("outcomes %+v", o)
		}
		refused := 0
		for _, q := range to.log() {
			if q.compression == wire.Zstd && q.status == http.StatusBadRequest {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%d requests of zstd were refused, want 1", refused)
		}
	})
}

// TestZstdNotStoredAndAKill: the process ends between a 204 to zstd without the header, after which no sample is
// stored, and the same samples as snappy: the savepoint did not move, and the next process delivers them.
func TestZstdNotStoredAndAKill(t *testing.T) {
	for _, stores := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored %v", stores), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &fakeReceiver{victoria: always}
				r := newRig(t, to)
				r.start()
				r.feed(20)
				r.drained(time.Minute)
				acked := r.log.sp.Acked()
				fired := 0
				to.set(func() {
					to.victoria = never
					to.tellsZstd = func(fakeRequest) (client.Answer, bool) { fired++; return client.Answer{Status: 204}, !stores }
					to.script = func(q fakeRequest) (client.Answer, bool) { // requests of snappy get no answer
						return client.Answer{Err: errors.New("no route")}, q.compression == wire.Snappy
					}
				})
				r.feed(3)
				if fired == 0 {
					t.Fatal("no request of zstd")
				}
				if got := r.log.sp.Acked(); got != acked {
					t.Errorf("the savepoint moved from %+v to %+v on an answer that is none", acked, got)
				}
				r.end()
				from := to.count()
				to.set(func() { to.script = nil })
				r.start()
				r.feed(20)
				r.drained(5 * time.Minute)
				r.end()
				r.verify()
				if n := to.compressions(from); n[wire.Zstd] > 0 {
					t.Errorf("%d requests of zstd to a receiver that says nothing", n[wire.Zstd])
				}
				if o := r.log.outcome(); o.Sum() != r.log.Head().Total || o.Lost() != 0 {
					t.Errorf("outcomes %+v of %d", o, r.log.Head().Total)
				}
			})
		})
	}
}
