package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/wal/queue"
)

// TestAnswerLostWhileABatchIsTakenApart: during the division of a batch the answer to each request in turn is lost,
// when the request was stored or never arrived. The agent then continues, or is stopped or killed and restarted. In
// each case only the bad sample counts as lost, with one letter, and all others as stored.
func TestAnswerLostWhileABatchIsTakenApart(t *testing.T) {
	for _, then := range []string{"it goes on", "stopped", "killed"} {
		for _, stored := range []bool{true, false} {
			for _, bad := range []int{0, 1, 3} {
				for _, gaps := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/stored=%t/bad in round %d/gaps=%t", then, stored, bad, gaps), func(t *testing.T) {
						for at, more := 1, true; more && !t.Failed(); at++ {
							synctest.Test(t, func(t *testing.T) {
								more = answerLostApart(t, apartLife{then: then, stored: stored, bad: bad, gaps: gaps, at: at})
							})
						}
					})
				}
			}
		}
	}
}

type apartLife struct {
	then   string
	stored bool // the request was stored before its answer was lost
	bad    int  // the round of the bad sample
	gaps   bool // some series lack samples in some rounds
	at     int  // the request whose answer is lost, from 0
}

// answerLostApart reports whether there was such a request.
func answerLostApart(t *testing.T, life apartLife) bool {
	const series, rounds = 12, 4
	rnd := rand.New(rand.NewPCG(uint64(life.at), 31))
	to := &fakeReceiver{latency: time.Millisecond}
	r := newRig(t, to)
	var lost smp
	for i := range rounds {
		r.time += 1000
		var ss []smp
		for n := range series {
			if n == 5 || !life.gaps || rnd.IntN(3) > 0 {
				ss = append(ss, smp{fmt.Sprintf("m%04d", n), r.time, float64(r.time) + float64(n)})
			}
			if n == 5 && i == life.bad {
				lost = ss[len(ss)-1]
			}
		}
		r.log.append(ss...)
	}
	to.poison = func(s smp) bool { return s == lost }
	fired, down, at := false, false, life.at
	to.script = func(q fakeRequest) (client.Answer, bool) {
		if q.n == at {
			fired, down = true, life.then != "it goes on"
			if life.stored {
				to.stores(q)
			}
			return client.Answer{Err: errDown}, true
		}
		return client.Answer{Err: errDown}, down
	}
	r.start()
	r.until("the request comes", time.Minute, func() (ok bool) {
		to.set(func() { ok = down })
		return ok || r.log.pending() == 0
	})
	to.set(func() { at = -1 })
	if life.then != "it goes on" {
		r.end()
		if life.then == "killed" {
			r.log.crash()
		}
		to.set(func() { down = false })
		r.start()
	}
	r.drained(time.Hour)
	r.end()
	o, ls := r.log.outcome(), r.letters.all()
	killed := life.then == "killed"                                                                     // the account of what the savepoint has passed is lost in this log
	if (o.Dropped[queue.Rejected] != 1 || o.GivenUp() != 1) && !killed || len(ls) < 1 || len(ls) > 2 || // a stop between letter and outcome repeats it
		slices.ContainsFunc(ls, func(l Letter) bool { return l.Timestamp != lost.t || !strings.Contains(l.Series, lost.series) }) {
		t.Errorf("%+v: outcomes %+v, letters %+v; want the one sample", life, o, ls)
	}
	if !killed {
		r.verify(lost)
	}
	for _, e := range r.log.entries {
		for _, x := range e.Samples {
			if have := smpOf(x); !to.has[have] && have != lost {
				t.Errorf("the receiver lacks %+v", have)
			}
		}
	}
	if t.Failed() {
		t.Log(to.dump())
	}
	return fired
}
