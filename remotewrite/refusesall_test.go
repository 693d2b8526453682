package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
)

// refusesData is a case of a target that refuses every request with samples for a while.
type refusesData struct {
	status  int
	when    string // it begins to: "from the start", "running", "after an outage", "after a restart", "after a kill"
	empties bool   // it takes empty writes meanwhile
	message string // protobuf_message
}

func (c refusesData) String() string {
	return fmt.Sprintf("%d %s/empty writes pass=%t/%s", c.status, c.when, c.empties, c.message)
}

// TestRefusesAllData: a target that refuses all data, for whatever reason, loses no sample: it is held, says why, and
// gets all samples soon after it accepts data again.
func TestRefusesAllData(t *testing.T) {
	cells := 0
	for _, status := range []int{400, 409, 413, 422} {
		for _, when := range []string{"from the start", "running", "after an outage", "after a restart", "after a kill"} {
			for _, empties := range []bool{true, false} {
				for _, message := range []string{config.MessageV1, config.MessageV2} {
					if cells++; sparse(cells) {
						continue
					}
					c := refusesData{status, when, empties, message}
					t.Run(c.String(), func(t *testing.T) { synctest.Test(t, c.run) })
				}
			}
		}
	}
}

func (c refusesData) run(t *testing.T) {
	down, ill := false, false
	to := &fakeReceiver{latency: 5 * time.Millisecond}
	to.script = func(q fakeRequest) (client.Answer, bool) {
		switch {
		case down:
			return client.Answer{Err: errDown}, true
		case ill && (!c.empties || len(q.samples) > 0):
			return client.Answer{Status: c.status, Text: "refused by the test"}, true
		}
		return client.Answer{}, false
	}
	r := newRig(t, to).timed()
	r.cfg.ProtobufMessage = c.message
	const series = 200
	rounds := func(n int) {
		for range n {
			r.round(series)
			time.Sleep(15 * time.Second)
		}
	}
	set := func(d, i bool) { to.set(func() { down, ill = d, i }) }
	if c.when == "from the start" {
		set(false, true)
	}
	r.start()
	switch c.when {
	case "running":
		rounds(4)
	case "after an outage":
		rounds(4)
		set(true, false)
		rounds(4)
	case "after a restart":
		rounds(4)
		r.end()
		r.start()
	case "after a kill":
		rounds(4)
		r.end()
		r.log.crash()
		r.start()
	}
	set(false, true)
	before := to.count()
	rounds(40)
	if o := r.log.outcome(); o.GivenUp() != 0 {
		t.Errorf("while everything is refused: outcomes %+v", o)
	}
	if s := r.q.Status(); s.State != StateHeld || !strings.Contains(s.Why, "refused by the test") {
		t.Errorf("state %q, why %q", s.State, s.Why)
	}
	if n := to.count() - before; n > 150 {
		t.Errorf("%d requests in ten minutes", n)
	}
	set(false, false)
	well, stored := time.Now(), len(to.has)
	r.until("a sample is stored", 15*time.Second, func() bool {
		to.mu.Lock()
		defer to.mu.Unlock()
		return len(to.has) > stored
	})
	r.drained(time.Minute)
	t.Logf("%d requests while ill; all delivered %s after it was well", to.count()-before, time.Since(well))
	if n := r.q.Status().BatchSize; n != r.cfg.Queue.MaxSamplesPerSend {
		t.Errorf("%d samples in a request at most", n)
	}
	r.end()
	r.everySampleIsStored()
}

// TestRefusesAllAsTooOld: a receiver calls all samples too old, the fresh ones too, as with a wrong clock. The target is held and tested, nothing
// is given up, and all samples arrive soon after it accepts data again.
func TestRefusesAllAsTooOld(t *testing.T) {
	for _, well := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprintf("after %s", well), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ill := false
				to := &fakeReceiver{latency: 5 * time.Millisecond}
				to.script = func(fakeRequest) (client.Answer, bool) {
					return client.Answer{Status: 400, Text: "out of bounds"}, ill
				}
				r := newRig(t, to).timed()
				r.start()
				r.rounds(200, well)
				to.set(func() { ill = true })
				before := to.count()
				r.rounds(200, 10*time.Minute)
				if s, n := r.q.Status(), to.count()-before; s.State != StateHeld || n < 10 || n > 400 {
					t.Errorf("%d requests in ten minutes, status %+v", n, s)
				}
				to.set(func() { ill = false })
				r.drained(time.Minute)
				r.end()
				if o := r.log.outcome(); o.GivenUp() != 0 {
					t.Errorf("outcomes %+v", o)
				}
				r.everySampleIsStored()
			})
		})
	}
}

// everySampleIsStored is verify without the account, which does not survive a kill.
func (r *rig) everySampleIsStored() {
	r.t.Helper()
	missing := 0
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			if !r.to.has[smpOf(s)] {
				missing++
			}
		}
	}
	if missing > 0 {
		r.t.Errorf("the receiver does not have %d samples", missing)
	}
}

// TestOneOfTwoBackendsRefusesAllData: one of two receivers behind a balancer refuses all data for ten minutes: samples
// accepted by the other are no proof against those that the first one refused.
func TestOneOfTwoBackendsRefusesAllData(t *testing.T) {
	for _, status := range []int{400, 413, 422} {
		for _, when := range []string{"from the start", "running", "after a restart"} {
			for _, balancer := range []string{"round robin", "random"} {
				t.Run(fmt.Sprintf("%d %s/%s", status, when, balancer), func(t *testing.T) {
					refused := 0
					for seed := range seedsOf(20) {
						synctest.Test(t, func(t *testing.T) { refused += oneOfTwo(t, seed, status, when, balancer == "random") })
						if t.Failed() {
							t.Fatalf("seed %d", seed)
						}
					}
					if refused < 10 {
						t.Errorf("%d requests were refused: the fault did not happen", refused)
					}
				})
			}
		}
	}
}

// oneOfTwo returns how many requests were refused.
func oneOfTwo(t *testing.T, seed uint64, status int, when string, random bool) (refused int) {
	ill, n := when == "from the start", 0
	dice, pace := rand.New(rand.NewPCG(seed, 27)), rand.New(rand.NewPCG(seed, 9)) // the receiver's, and the test's
	to := &fakeReceiver{latency: 5 * time.Millisecond}
	to.script = func(q fakeRequest) (client.Answer, bool) {
		n++
		bad := n%2 == 0
		if random {
			bad = dice.IntN(2) == 0
		}
		if !ill || len(q.samples) == 0 || !bad {
			return client.Answer{}, false
		}
		refused++
		return client.Answer{Status: status, Text: "refused by the test"}, true
	}
	r := newRig(t, to).timed()
	var chance = rand.New(rand.NewPCG(seed, 8))
	r.rand = chance.Float64
	r.start()
	rounds := func(n int) {
		for range n {
			r.round(50 + pace.IntN(200))
			time.Sleep(time.Duration(pace.IntN(15_000)) * time.Millisecond)
		}
	}
	rounds(4)
	to.set(func() { ill = true })
	if when == "after a restart" {
		r.end()
		r.log.crash()
		r.start()
	}
	rounds(80)
	to.set(func() { ill = false })
	r.drained(5 * time.Minute)
	r.end()
	if o := r.log.outcome(); o.GivenUp() != 0 {
		t.Errorf("outcomes %+v", o)
		t.Log(r.letters.all())
		t.Log(to.dump())
	}
	r.everySampleIsStored()
	return refused
}
