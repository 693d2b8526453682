package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
)

// TestContradictingSampleIsNotDelivered: a sample contradicts the value that the receiver has for its time, and is
// refused beside later ones of its series. If the receiver stores those and accepts late samples, it then accepts the
// contradicting one and silently drops it. Only that sample counts as lost, with a letter.
func TestContradictingSampleIsNotDelivered(t *testing.T) {
	for _, message := range []string{config.MessageV1, config.MessageV2} {
		for _, keeps := range []bool{false, true} {
			for _, anyOrder := range []bool{false, true} {
				for n := range 4 {
					hides, outage := n&1 > 0, n&2 > 0
					name := fmt.Sprintf("%s keeps=%t anyOrder=%t hides=%t outage=%t", message, keeps, anyOrder, hides, outage)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							contradict(t, message, outage, &fakeReceiver{keepsGood: keeps, keepsGood2: keeps, anyOrder: anyOrder, oneValue: true, hidesWritten: hides, latency: time.Millisecond})
						})
					})
				}
			}
		}
	}
}

func contradict(t *testing.T, message string, outage bool, to *fakeReceiver) {
	down := false
	to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, down }
	r := newRig(t, to)
	r.cfg.ProtobufMessage = message
	for range 5 { // it asks whether several samples of a series may share a request
		r.round(6)
	}
	r.start()
	r.drained(time.Minute)
	first := r.time
	if to.set(func() { down = outage }); !outage {
		r.end()
	}
	const rounds = 8
	for range rounds {
		r.round(6)
	}
	time.Sleep(3 * time.Second)
	// It is in the middle of the waiting samples, so that it is sent beside later ones of its series.
	bad := smp{"m0002", r.time - 3000, float64(r.time-3000) + 2}
	to.plant(smp{bad.series, bad.t, bad.v + 0.5})
	if to.set(func() { down = false }); !outage {
		r.start()
	}
	r.drained(time.Minute)
	r.end()

	beside := func(q fakeRequest) bool {
		has := false
		for _, x := range q.samples {
			if has = has || x == bad; has && x.series == bad.series && x.t > bad.t {
				return q.status == 400
			}
		}
		return false
	}
	if to.anyOrder && !slices.ContainsFunc(to.log(), beside) {
		t.Fatalf("no request with the sample and a later one of its series was refused\n%s", to.dump())
	}
	missing := map[string]bool{} // letters' series and times
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			x := smpOf(s)
			late := x.series == bad.series && x.t < bad.t && !to.anyOrder && s.T > first
			if want := x != bad && !late; to.has[x] != want {
				t.Errorf("the receiver has %+v: %t", x, !want)
			}
			if !to.has[x] {
				missing[s.Series.Labels.String()+strconv.FormatInt(x.t, 10)] = true
			}
		}
	}
	o := r.log.outcome()
	least := len(missing)
	if (to.keepsGood || to.keepsGood2) && !to.anyOrder && (outage || to.hidesWritten || message == config.MessageV1) {
		least = 1 // it does not say how many samples it refused, and refuses stored ones with the same words
	}
	if n := int(o.Lost()); n < least || n > len(missing) || o.Lost() != o.Dropped[queue.Rejected]+o.Dropped[queue.Unconfirmed] {
		t.Errorf("outcomes %+v, and %d samples are missing\n%s", o, len(missing), to.dump())
	}
	for _, l := range r.letters.all() {
		if !missing[l.Series+strconv.FormatInt(l.Timestamp, 10)] {
			t.Errorf("a letter of a sample that is stored: %+v", l)
		}
	}
}

// TestContradictionsAtRandom: random receivers get samples that contradict those of another sender, beside others. No
// missing sample counts as delivered where the receiver says how many it refused, or stores no sample of a request that
// it refuses.
func TestContradictionsAtRandom(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 20
	}
	planted, beside := 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			p, b := contradictAtRandom(t, seed)
			planted, beside = planted+p, beside+b
		})
	}
	if t.Logf("%d samples contradicted, %d of them refused beside later ones of their series", planted, beside); beside == 0 {
		t.Error("none was refused beside a later one")
	}
}

func contradictAtRandom(t *testing.T, seed uint64) (planted, beside int) {
	rnd := rand.New(rand.NewPCG(seed, 106))
	keeps := rnd.IntN(3) > 0
	to := &fakeReceiver{keepsGood: keeps, keepsGood2: keeps, anyOrder: rnd.IntN(2) == 0, oneValue: true, hidesWritten: rnd.IntN(3) == 0, latency: time.Millisecond}
	r := newRig(t, to)
	r.cfg.ProtobufMessage = []string{config.MessageV1, config.MessageV2}[rnd.IntN(2)]
	r.cfg.Queue.MinShards = 1 << rnd.IntN(2)
	r.cfg.Queue.MaxSamplesPerSend = 20 + rnd.IntN(200)
	series := 3 + rnd.IntN(30)
	bad := map[smp]bool{}
	for range 3 + rnd.IntN(4) {
		r.round(series)
	}
	r.start()
	for range 1 + rnd.IntN(4) {
		r.drained(time.Minute)
		r.end()
		begin, rounds := r.time, 2+rnd.IntN(10)
		for range rounds {
			r.round(series)
		}
		for range rnd.IntN(3) {
			s := rnd.IntN(series)
			at := begin + int64(1+rnd.IntN(rounds))*1000
			x := smp{fmt.Sprintf("m%04d", s), at, float64(at) + float64(s)}
			if newest := to.stored[x.series]; newest[len(newest)-1].t <= begin { // the older one of two is never refused
				to.plant(smp{x.series, x.t, x.v + 0.5})
				bad[x] = true
			}
		}
		r.start()
	}
	r.drained(time.Minute)
	r.end()
	for _, q := range to.log() {
		for i, x := range q.samples {
			if q.status == 400 && bad[x] && slices.ContainsFunc(q.samples[i:], func(y smp) bool { return y.series == x.series && y.t > x.t }) {
				beside++
			}
		}
	}
	missing := 0
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			if !to.has[smpOf(s)] {
				missing++
			}
		}
	}
	o := r.log.outcome()
	exact := !keeps || r.cfg.ProtobufMessage == config.MessageV2 && !to.hidesWritten
	if lost := int(o.Lost()); exact && missing > lost || missing > 0 && lost == 0 || missing < len(bad) {
		t.Errorf("seed %d: %d samples are missing, %d are contradicted; outcomes %+v; keeps=%t anyOrder=%t hides=%t %s\n%s", seed, missing, len(bad), o,
			keeps, to.anyOrder, to.hidesWritten, r.cfg.ProtobufMessage, to.dump())
	}
	return len(bad), beside
}
