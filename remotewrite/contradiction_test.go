package remotewrite

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal"
)

// A sample that contradicts what the receiver has of its time is refused beside later ones of its series. If the receiver stores those, and takes late
// samples, it then takes the contradicting one without a word, and drops it. It counts as lost, with a letter, and no other one does.
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
	// It is in the middle of what waits, so that it is sent beside later ones of its series.
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
	if n := int(o.Lost()); n < least || n > len(missing) || o.Lost() != o.Dropped[wal.Rejected]+o.Dropped[wal.Unconfirmed] {
		t.Errorf("outcomes %+v, and %d samples are missing\n%s", o, len(missing), to.dump())
	}
	for _, l := range r.letters.all() {
		if !missing[l.Series+strconv.FormatInt(l.Timestamp, 10)] {
			t.Errorf("a letter of a sample that is stored: %+v", l)
		}
	}
}
