package remotewrite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

var newerMessages = []string{config.MessageV2, config.MessageAuto}

// versions counts requests with samples by version.
func (r *fakeReceiver) versions(from int) (n [wire.NumVersions]int) {
	for _, q := range r.log()[from:] {
		if len(q.samples) > 0 {
			n[q.version]++
		}
	}
	return n
}

// TestEveryReceiverGetsItsVersion: a receiver gets every sample once, in a version that it accepts, whatever it answers
// to 2.0; finding the version takes few requests.
func TestEveryReceiverGetsItsVersion(t *testing.T) {
	for _, message := range newerMessages {
		for speaks := range numSpeeches {
			for _, refuseEmpty := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/refuses empty writes: %v", message, speaks, refuseEmpty), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						to := &fakeReceiver{speaks: speaks, refuseEmpty: refuseEmpty}
						r := newRig(t, to)
						r.cfg.ProtobufMessage = message
						r.start()
						for range 120 {
							r.round(20)
							time.Sleep(time.Second)
						}
						r.drained(time.Minute)
						s := r.q.Status()
						r.end()
						r.verify()
						if to.again > 0 {
							t.Errorf("%d samples came again", to.again)
						}
						n := to.versions(0)
						want, other, most := wire.V1, wire.V2, 1
						if speaks == speaksBoth || speaks == speaksTwo {
							want, other, most = wire.V2, wire.V1, 0
						}
						switch {
						case speaks == speaksOne500:
							most = olderAfter
						case speaks == speaksOne && refuseEmpty, speaks == speaksOne400 && refuseEmpty:
							most = 2 // and one of the tests of the hold
						}
						if s.Protocol != want.String() || (s.Fallback != "") != (want == wire.V1) || n[other] > most || n[want] < 50 {
							t.Errorf("in use %s (%s), requests %v, want at most %d of %v\n%s", s.Protocol, s.Fallback, n, most, other, to.dump())
						}
						if o := r.log.outcome(); o.Delivered != 120*20 {
							t.Errorf("outcomes %+v", o)
						}
						if strings.HasPrefix(s.LastError, "2") {
							t.Errorf("%q is shown as an error", s.LastError)
						}
					})
				})
			}
		}
	}
}

// TestFallbackIsAskedAgain: 2.0 is tried again, with one request, when the fallback has become old; a receiver that was
// upgraded meanwhile gets 2.0 from then on, and 1.0 at once when it is downgraded.
func TestFallbackIsAskedAgain(t *testing.T) {
	for _, speaks := range []speech{speaksOne, speaksOneSilent, speaksOne400} {
		synctest.Test(t, func(t *testing.T) {
			to := &fakeReceiver{speaks: speaks}
			r := newRig(t, to)
			r.cfg.ProtobufMessage = config.MessageAuto
			r.start()
			run := func(d time.Duration) [wire.NumVersions]int {
				from := to.count()
				for range int(d / (15 * time.Second)) {
					r.round(3)
					time.Sleep(15 * time.Second)
				}
				return to.versions(from)
			}
			run(time.Minute)
			if n := run(protocol.FallbackTime - 2*time.Minute); n[wire.V2] != 0 {
				t.Errorf("answer %d: %d requests of 2.0 while 1.0 is known to be what it takes", speaks, n[wire.V2])
			}
			if n := run(protocol.FallbackTime); n[wire.V2] != 1 {
				t.Errorf("answer %d: %d requests of 2.0 in an hour, want 1", speaks, n[wire.V2])
			}
			to.set(func() { to.speaks = speaksBoth })
			if n := run(2 * protocol.FallbackTime); n[wire.V2] < 240 || r.q.Status().Protocol != "2.0" {
				t.Errorf("answer %d: upgraded, and requests %v", speaks, n)
			}
			to.set(func() { to.speaks = speaks })
			most := 1
			if speaks == speaksOne400 { // it had confirmed 2.0, so it is held, and tested in both versions
				most = 20
			}
			if n := run(5 * time.Minute); n[wire.V2] > most || n[wire.V1] < 20-most {
				t.Errorf("answer %d: downgraded, and requests %v", speaks, n)
			}
			r.drained(time.Minute)
			r.end()
			r.verify()
			if to.again > 0 {
				t.Errorf("answer %d: %d samples came again", speaks, to.again)
			}
		})
	}
}

// TestMixedReceivers: receivers of both versions share an address: 1.0 is the version that all accept.
func TestMixedReceivers(t *testing.T) {
	for _, speaks := range []speech{speaksOne, speaksOneSilent, speaksOne400} {
		synctest.Test(t, func(t *testing.T) {
			to := &fakeReceiver{latency: 20 * time.Millisecond}
			to.script = func(q fakeRequest) (client.Answer, bool) {
				if q.n%3 == 2 {
					return speaks.notTaken(q.version)
				}
				return client.Answer{}, false
			}
			r := newRig(t, to)
			r.cfg.ProtobufMessage = config.MessageAuto
			r.cfg.Queue.MinShards, r.cfg.Queue.MaxSamplesPerSend = 4, 50
			r.start()
			for range 200 {
				r.round(200)
				time.Sleep(time.Second)
			}
			r.drained(time.Minute)
			r.end()
			r.verify()
			if n := to.versions(0); (n[wire.V2] > 20 || to.again > 5) && speaks != speaksOne400 { // a 400 says nothing about the version once 2.0 is confirmed
				t.Errorf("answer %d: requests %v, %d samples came again", speaks, n, to.again)
			}
		})
	}
}

// TestHeldTargetWithoutVersion2Recovers: a target that gets 1.0 recovers within a minute after the reason for its hold
// is gone: tests do not spend time on 2.0.
func TestHeldTargetWithoutVersion2Recovers(t *testing.T) {
	for _, speaks := range []speech{speaksOne, speaksOneSilent, speaksOne400, speaksTwo} {
		for _, refuseEmpty := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				denied := false
				to := &fakeReceiver{speaks: speaks, refuseEmpty: refuseEmpty}
				to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Status: 403, Text: "expired"}, denied }
				r := newRig(t, to)
				r.cfg.ProtobufMessage = config.MessageAuto
				r.start()
				load := func(d time.Duration) {
					for range int(d / time.Second) {
						r.round(5)
						time.Sleep(time.Second)
					}
				}
				load(time.Minute)
				for _, hold := range []time.Duration{5 * time.Second, 3 * time.Minute, 20 * time.Minute} {
					to.set(func() { denied = true })
					load(hold)
					to.set(func() { denied = false })
					end := time.Now()
					r.until("data goes through", time.Minute+10*time.Second, func() bool { return r.q.Status().LastSuccess.After(end) })
				}
				r.drained(time.Minute)
				r.end()
				r.verify()
			})
		}
	}
}

// TestTrialOfVersion1IsRefused: a receiver that takes only 2.0, as OpenTelemetry's does, fails when the agent starts. The batch is tried as
// 1.0 after some failures, and refused. That must not be tried again and again without a pause.
func TestTrialOfVersion1IsRefused(t *testing.T) {
	fails := map[string]func(fakeRequest) (client.Answer, bool){
		"503":       answers(500, "starting"),
		"no answer": func(q fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, len(q.samples) > 0 },
	}
	for name, fail := range fails {
		for _, message := range []string{config.MessageV2, config.MessageAuto} {
			t.Run(name+" "+message, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					until := time.Now().Add(5 * time.Minute)
					tried := 0
					to := &fakeReceiver{speaks: speaksTwo, latency: time.Millisecond}
					to.script = func(q fakeRequest) (client.Answer, bool) {
						if q.version == wire.V1 {
							tried++
							return client.Answer{Status: 503}, tried > 500 // a storm, which this ends
						}
						a, ok := fail(q)
						return a, ok && time.Now().Before(until)
					}
					r := newRig(t, to)
					r.cfg.ProtobufMessage = message
					r.start()
					r.round(20)
					r.drained(10 * time.Minute)
					r.end()
					r.verify()
					if n := to.count(); tried == 0 || n > 200 {
						t.Errorf("%d requests, %d of them as 1.0\n%s", n, tried, to.dump())
					}
				})
			})
		}
	}
}

// TestFallbackAfterALongOutage: a receiver of 1.0 answers 500 to 2.0, and could not be reached before for longer than a batch is kept. The agent
// finds out that it takes 1.0.
func TestFallbackAfterALongOutage(t *testing.T) {
	for _, message := range []string{config.MessageV2, config.MessageAuto} {
		for _, refuses := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s refuses empty writes %t", message, refuses), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					until, down := time.Now().Add(20*time.Minute), 0
					to := &fakeReceiver{speaks: speaksOne500, refuseEmpty: refuses, latency: time.Millisecond}
					to.script = func(fakeRequest) (client.Answer, bool) {
						if time.Now().After(until) {
							return client.Answer{}, false
						}
						down++
						return client.Answer{Err: errDown}, true
					}
					r := newRig(t, to)
					r.cfg.ProtobufMessage = message
					r.start()
					r.round(20)
					r.drained(40 * time.Minute)
					r.end()
					r.verify()
					if down == 0 {
						t.Error("it was never down")
					}
				})
			})
		}
	}
}

// TestHistogramsFollowTheVersion: samples that 1.0 does not carry are sent as 2.0, and count as unsupported once 1.0 is
// in use.
func TestHistogramsFollowTheVersion(t *testing.T) {
	custom := &histogram.Histogram{Schema: histogram.CustomBucketsSchema, Count: 1, CustomValues: []float64{1}, PositiveSpans: []histogram.Span{{Length: 1}}, PositiveBuckets: []int64{1}}
	plain := &histogram.Histogram{Schema: 1, Count: 1, PositiveSpans: []histogram.Span{{Length: 1}}, PositiveBuckets: []int64{1}}
	fill := func(m *memLog) {
		s, now := wal.NewSeries(0, labels.FromStrings("__name__", "h"), nil), time.Now().UnixMilli()
		for i := range int64(4) {
			m.entries = append(m.entries, &wal.Entry{
				End: markAt(uint64(i)+1, 2*uint64(i)+2), MinT: now, MaxT: now + 5,
				Histograms: []wal.Histogram{{Series: s, T: now + 2*i, H: custom}, {Series: s, T: now + 2*i + 1, H: plain}},
			})
		}
	}
	for _, tc := range []struct {
		name                   string
		keys                   string
		answer                 func(n int) client.Answer
		delivered, unsupported uint64
	}{
		{"2.0 carries both, whatever send_native_histograms says", "", func(int) client.Answer {
			return client.Answer{Status: 200, Written: client.Written{Known: true, Histograms: 8}}
		}, 8, 0},
		{"1.0 carries one kind", "send_native_histograms: true", alwaysStatus(200), 4, 4},
		{"1.0 carries none", "", alwaysStatus(200), 0, 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, o, s := throughQueue(t, "protobuf_message: auto\n"+tc.keys, fill, tc.answer, 0, 20*time.Second)
			if o.Delivered != tc.delivered || o.Dropped[queue.Unsupported] != tc.unsupported || o.Sum() != 8 {
				t.Errorf("%s: %+v, status %+v", tc.name, o, s)
			}
		})
	}
}

// TestAcceptedAndNotWritten: a 2xx that reports fewer samples written than sent counts as a refusal: the samples that the
// receiver does not write end as rejected, with a letter, and all others arrive.
func TestAcceptedAndNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{}
		to.script = func(q fakeRequest) (client.Answer, bool) {
			q.samples = slices.DeleteFunc(slices.Clone(q.samples), func(s smp) bool { return s.series == "m0003" })
			a := to.stores(q)
			a.Status, a.Written = 204, client.Written{Known: true, Samples: uint64(len(q.samples))}
			return a, true
		}
		r := newRig(t, to)
		r.cfg.ProtobufMessage = config.MessageAuto
		r.start()
		for range 30 {
			r.round(10)
			time.Sleep(time.Second)
		}
		r.drained(time.Minute)
		r.end()
		if o := r.log.outcome(); o.Delivered != 270 || o.Dropped[queue.Rejected] != 30 || len(r.letters.all()) == 0 {
			t.Errorf("outcomes %+v, %d letters", o, len(r.letters.all()))
		}
	})
}

// TestRefusedWithAllSamplesWritten: a refusal that reports all samples as written is about something else: no sample is
// sent again.
func TestRefusedWithAllSamplesWritten(t *testing.T) {
	for _, refused := range []string{"out of order exemplar", "invalid metadata"} {
		fill := func(m *memLog) {
			s, now := wal.NewSeries(0, labels.FromStrings("__name__", "c"), nil), time.Now().UnixMilli()
			e := &wal.Entry{End: markAt(1, 1), MinT: now, MaxT: now, Samples: []wal.Sample{{Series: s, T: now, V: 1}}}
			if strings.Contains(refused, "exemplar") {
				e.Exemplars = []wal.Exemplar{{Series: s, T: now, V: 1, Labels: labels.FromStrings("trace_id", "x")}}
			}
			m.entries = append(m.entries, e)
		}
		synctest.Test(t, func(t *testing.T) {
			got, o, _ := throughQueue(t, "protobuf_message: auto\nsend_exemplars: true", fill, func(int) client.Answer {
				return client.Answer{Status: 400, Text: refused, Written: client.Written{Known: true, Samples: 1}}
			}, 0, 20*time.Second)
			if o.Delivered != 1 || len(got.at) != 1 {
				t.Errorf("%s: %d requests, %+v", refused, len(got.at), o)
			}
		})
	}
}

// TestDropCountsWhatWasWritten: with on_refusal: drop no sample is sent again after a 4xx; samples that the receiver
// reports as written do not count as lost.
func TestDropCountsWhatWasWritten(t *testing.T) {
	for _, tc := range []struct {
		name                string
		answer              client.Answer
		delivered, rejected uint64
		requests            int
	}{
		{"a part", client.Answer{Status: 400, Written: client.Written{Known: true, Samples: 7}}, 7, 3, 1},
		{"all, and refuses something else", client.Answer{Status: 400, Written: client.Written{Known: true, Samples: 10}}, 10, 0, 1},
		{"nothing", client.Answer{Status: 400, Written: client.Written{Known: true}}, 0, 10, 1},
		{"it does not say: 1.0 is tried once", client.Answer{Status: 400}, 0, 10, 2},
		{"another status than a 1.0 receiver has for what it cannot decode", client.Answer{Status: 422}, 0, 10, 1},
		{"neither version", client.Answer{Status: 415}, 0, 10, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			got, o, _ := throughQueue(t, "protobuf_message: auto\nhwsagent: {on_refusal: drop, future_limit: 0s}", secondsOf(1, 10),
				func(int) client.Answer { return tc.answer }, 0, 20*time.Second)
			if o.Delivered != tc.delivered || o.Dropped[queue.Rejected] != tc.rejected || len(got.at) != tc.requests {
				t.Errorf("%s: %d requests, %+v", tc.name, len(got.at), o)
			}
		})
	}
}

// TestDropCountsWhatWasWrittenOfABacklog: the same in a backlog, some of whose samples are sent alone before the rest
// of a refused request is given up.
func TestDropCountsWhatWasWrittenOfABacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLateRig(t)
		r.cfg.Target.OnRefusal, r.cfg.ProtobufMessage, r.to.keepsGood2 = config.RefusalDrop, config.MessageV2, true
		from, until := time.Now().Add(time.Minute).UnixMilli(), time.Now().Add(21*time.Minute).UnixMilli()
		r.to.poison = func(s smp) bool {
			return s.t >= from && s.t < until && s.t%15_000 < 5000 && s.series == "m07"
		}
		r.start()
		r.collect(time.Minute)
		r.down.Store(true)
		r.collect(20 * time.Minute)
		r.down.Store(false)
		r.collect(10 * time.Minute)
		for end := time.Now().Add(time.Hour); r.r.Ledger().Pending > 0 && time.Now().Before(end); {
			time.Sleep(time.Second)
		}
		if g, missing := r.r.Ledger(), r.missing(); missing == 0 || g.Dropped[queue.Rejected] != uint64(missing) || g.GivenUp() != uint64(missing) {
			t.Errorf("the receiver lacks %d samples; ledger %+v", missing, g)
		}
		r.stop()
	})
}

// Metadata goes in requests of its own while 1.0 is in use, and only then.
func TestMetadataRequestsStopWhile2CarriesIt(t *testing.T) {
	for _, tc := range []struct {
		speaks speech
		own    bool
	}{{speaksBoth, false}, {speaksTwo, false}, {speaksOneSilent, true}} {
		synctest.Test(t, func(t *testing.T) {
			to := &fakeReceiver{speaks: tc.speaks}
			r := newRig(t, to)
			r.cfg.ProtobufMessage = config.MessageAuto
			reg := prometheus.NewRegistry()
			m, err := metrics.New(reg, "test", "http://h/")
			if err != nil {
				t.Fatal(err)
			}
			r.metrics = m
			r.log.meta = metadata.Metadata{Type: "counter", Help: "Help."}
			r.start()
			for range 300 {
				r.round(2)
				time.Sleep(time.Second)
			}
			r.drained(time.Minute)
			r.end()
			if got := shown(t, reg, "prometheus_remote_storage_metadata_total"); (got > 0) != tc.own {
				t.Errorf("receiver %d: %v families in requests of their own", tc.speaks, got)
			}
			if !tc.own && to.metas == 0 {
				t.Error("2.0 carries no metadata")
			}
			if got := shown(t, reg, "hwsagent_target_protocol", "2.0"); (got == 1) == tc.own {
				t.Errorf("receiver %d: metric of 2.0 is %v", tc.speaks, got)
			}
		})
	}
}

// TestExemplarsStayWithTheirSample: exemplars share the fate of the sample that they follow, also at the end of a
// batch.
func TestExemplarsStayWithTheirSample(t *testing.T) {
	fill := func(m *memLog) {
		now := time.Now().UnixMilli()
		e := &wal.Entry{End: markAt(1, 7), MinT: now, MaxT: now}
		for i := range 7 {
			s := wal.NewSeries(i, labels.FromStrings("__name__", fmt.Sprint("c", i)), nil)
			e.Samples = append(e.Samples, wal.Sample{Series: s, T: now, V: 1})
			for range i % 3 {
				e.Exemplars = append(e.Exemplars, wal.Exemplar{Series: s, T: now, V: 1, Labels: labels.FromStrings("trace_id", "x")})
			}
		}
		bare := wal.NewSeries(7, labels.FromStrings("__name__", "bare"), nil)
		e.Exemplars = append(e.Exemplars, wal.Exemplar{Series: bare, T: now, V: 1})
		m.entries = append(m.entries, e)
	}
	synctest.Test(t, func(t *testing.T) {
		got, o, _ := throughQueue(t, "protobuf_message: auto\nsend_exemplars: true\nqueue_config: {max_samples_per_send: 2, max_shards: 1}", fill, func(int) client.Answer {
			return client.Answer{Status: 200, Written: client.Written{Known: true, Samples: 2, Exemplars: 99}}
		}, 0, 20*time.Second)
		n := 0
		for _, r := range got.requests2 {
			for _, ts := range r.Timeseries {
				if len(ts.Samples) == 0 {
					t.Error("a TimeSeries without a sample")
				}
				n += len(ts.Exemplars)
			}
		}
		if n != 6 || o.Delivered != 7 {
			t.Errorf("%d exemplars arrived, want 6; %+v", n, o)
		}
	})
}

// shown returns the value of a metric; values are those of its labels, in any order.
func shown(t *testing.T, reg prometheus.Gatherer, name string, values ...string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			has := func(v string) bool {
				return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == v })
			}
			if f.GetName() == name && !slices.ContainsFunc(values, func(v string) bool { return !has(v) }) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("there is no metric %s %v", name, values)
	return 0
}
