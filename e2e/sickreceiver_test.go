package e2e

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/tier"
)

// illness is how a receiver misbehaves for a while.
type illness struct {
	name      string
	fromStart bool
	reply     func(receiver.Request) (receiver.Reply, bool) // while it is ill; false: as if it were well
	held      string                                        // what the target's reason says meanwhile; "": it is not held all the time
	within    time.Duration                                 // of the recovery the first sample comes; 0: 15 s
}

// refuseData refuses requests with samples.
func refuseData(status int, text string) func(receiver.Request) (receiver.Reply, bool) {
	return func(q receiver.Request) (receiver.Reply, bool) {
		return receiver.Reply{Status: status, Text: text}, len(q.Series) > 0
	}
}

// illFor returns how long receivers are ill: longer than a window is kept for a target that is down.
func illFor() time.Duration {
	if os.Getenv("HWSAGENT_TORTURE") != "" {
		return 150 * time.Second
	}
	return 40 * time.Second
}

// TestSickReceivers: a receiver that refuses all data for a while, whatever it does with empty writes,
// costs no sample: the target is held and says why, gets its first sample within 15 seconds of the
// receiver's recovery, and requests of full size again.
func TestSickReceivers(t *testing.T) {
	endToEnd(t)
	var dice sync.Mutex
	rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for _, ill := range []illness{
		{name: "400 to all data", reply: refuseData(400, "no such path"), held: "no such path"},
		{name: "400 to all data from the start", fromStart: true, reply: refuseData(400, "no such path"), held: "no such path"},
		{name: "413 to all data", reply: refuseData(413, "too large for the proxy"), held: "too large for the proxy"},
		{name: "413 to all data from the start", fromStart: true, reply: refuseData(413, "too large for the proxy"), held: "too large for the proxy"},
		{name: "one of two backends answers 400", reply: func(q receiver.Request) (receiver.Reply, bool) {
			dice.Lock()
			defer dice.Unlock()
			return receiver.Reply{Status: 400, Text: "backend 2"}, len(q.Series) > 0 && rnd.IntN(2) == 0
		}},
		{name: "its clock is eleven minutes slow", reply: func(q receiver.Request) (receiver.Reply, bool) {
			if len(q.Series) == 0 {
				return receiver.Reply{}, false
			}
			header := http.Header{"Date": {time.Now().Add(-11 * time.Minute).UTC().Format(http.TimeFormat)}}
			return receiver.Reply{Status: 400, Text: "out of bounds", Header: header}, true // the words of a Prometheus for a time ahead, too
		}, held: "the receiver's clock is 11m", within: 65 * time.Second},
	} {
		t.Run(ill.name, func(t *testing.T) {
			t.Parallel()
			sickReceiver(t, ill)
		})
	}
}

func sickReceiver(t *testing.T, is illness) {
	recv, oracle := startReceiver(t, receiver.Options{})
	var mu sync.Mutex
	ill, most, refused := is.fromStart, 0, 0
	var first time.Time // that a sample was taken since the recovery
	recv.Behave(func(q receiver.Request) receiver.Reply {
		mu.Lock()
		defer mu.Unlock()
		if a, ok := is.reply(q); ill && ok {
			refused++
			return a
		}
		if !ill && len(q.Series) > 0 {
			if first.IsZero() {
				first = time.Now()
			}
			n := 0
			for _, ts := range q.Series {
				n += len(ts.Samples)
			}
			most = max(most, n)
		}
		return receiver.Accept(q)
	})
	set := func(to bool) {
		mu.Lock()
		defer mu.Unlock()
		ill, most, first = to, 0, time.Time{}
	}
	l := newLoad(t, 100, 500*time.Millisecond, entry("receiver", recv.URL()), oracle).begin()
	if !is.fromStart {
		l.arrived(20 * time.Second)
		set(true)
	}
	time.Sleep(illFor())
	tg := l.target("receiver")
	if tg.Ledger.Lost > 0 || tg.DeadLetters > 0 {
		t.Errorf("while the receiver is ill: %+v, %d dead letters", tg.Ledger, tg.DeadLetters)
	}
	if is.held != "" && (tg.State != "held" || !strings.Contains(tg.Why, is.held)) {
		t.Errorf("state %q, why %q", tg.State, tg.Why)
	}
	if refused == 0 {
		t.Error("no request was refused: the fault did not happen")
	}
	well := time.Now()
	set(false)
	within := cmp.Or(is.within, 15*time.Second)
	eventually(t, within+5*time.Second, func() string {
		mu.Lock()
		defer mu.Unlock()
		if first.IsZero() {
			return "no sample was taken yet"
		}
		return ""
	})
	took := first.Sub(well)
	if took > tier.Within(within) {
		t.Errorf("the first sample came %s after the recovery", took)
	}
	r := l.settle(60*time.Second, "receiver")
	if r.Missing > 0 || r.OutOfOrder > 0 {
		t.Errorf("missing %d, out of order %d", r.Missing, r.OutOfOrder)
	}
	if tg := l.target("receiver"); tg.Ledger.Lost > 0 {
		t.Errorf("in the end: %+v", tg.Ledger)
	}
	if is.held != "" && is.within == 0 && most < 2000 {
		t.Errorf("the largest request after the recovery had %d samples", most)
	}
	t.Logf("%d requests refused; the first sample %s after the recovery, %d samples in the largest request", refused, took.Round(time.Millisecond), most)
}
