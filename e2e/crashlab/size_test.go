//go:build linux

package crashlab

import (
	"fmt"
	"math"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
	"hwsagent/internal/tools/tier"
)

// Bounds of TestBacklogOfGigabytes. Times and rates are the promise. Memory is compared
// with that of an agent that does the same without a backlog. Two such differ by some MB,
// as the garbage collector runs. An agent with a backlog reads two places of the log, and
// each has its series: 230 bytes of each of the 50,000, 12 MB, however large the backlog is.
// While it is delivered there are besides the windows of some shards, here two: 6,000
// samples, a batch, a request, a connection and some goroutines each.
const (
	readySoon     = time.Second     // from exec until ready
	soon          = 2 * time.Second // from exec until the first sample is delivered
	answerSoon    = time.Second     // of the status and the page
	leastRate     = 500_000         // samples a second, while liveRate come in
	waitingMemory = 12e6            // bytes more than an agent without a backlog has
	drainMemory   = 25e6            // the same while it is delivered
	windows       = 4 * 32 * 2_000  // samples that may come twice after a kill: the windows' span
	inspectMemory = 100e6           // bytes that `wal inspect` may take
)

// TestBacklogOfGigabytes lets one of two targets be away until the log holds 1 GB for it,
// in the full tier 10 GB. Then the agent ends and starts, with nothing of the log in the
// page cache, beside another one that has the same load and no backlog; after that the
// target comes back, and the agent is killed once in the middle of delivering.
func TestBacklogOfGigabytes(t *testing.T) {
	endToEnd(t)
	tier.OnlyNightly(t, "judges how fast a backlog is delivered")
	size := int64(amount(1, 10)) * 1e9
	roomFor(t, t.TempDir(), size+2e9)
	s, other, machine := newSized(t, 2*size), newSized(t, 2*size), newNoise(t)
	built := s.build(size)

	// The backlog waits.
	s.forget()
	ready := s.start()
	t.Logf("with the backlog, ready %s after exec", ready)
	if ready > readySoon {
		t.Errorf("ready after %s, want at most %s", ready, readySoon)
	}
	other.load(liveInterval, false)
	other.start()
	quiet := time.Now()
	s.answers(built, size)
	waiting, waitingOther := watch(20*time.Second, nil, s, other)
	calmLag, _ := s.steady.lag(quiet, time.Now())
	s.flat("while the backlog waits", waiting, waitingOther, waitingMemory)

	// Without the agent, the status is read from the files.
	s.stop()
	s.forget()
	out, took, memory := s.command("status", "--json")
	late := s.parse(out).target("late")
	t.Logf("status of the agent that is down: %s, %.0f MB of memory, %d samples in %d bytes wait since %s",
		took, mb(memory), late.Ledger.Pending, late.PendingBytes, late.OldestPending.Format(time.TimeOnly))
	if took > answerSoon || late.PendingBytes < size || late.OldestPending.Sub(built).Abs() > soon {
		t.Errorf("status of the agent that is down: %s, want at most %s; %+v", took, answerSoon, late)
	}

	// The target comes back.
	pending := int64(late.Ledger.Pending)
	s.late.up()
	other.late.up()
	drainBegan := time.Now()
	first := s.drain(pending/2, other)
	s.faults = append(s.faults, time.Now())
	s.kill()
	s.forget()
	asks := int64(time.Since(drainBegan)/time.Minute) + 1 // a sample is sent again when a backlog begins, at most once a minute
	if _, again := s.late.total(); again > asks {
		t.Errorf("%d samples came twice before the agent was killed, want at most %d", again, asks)
	}
	second := s.drain(0, other)
	drained := time.Now()
	lag := max(s.lagIn(first), s.lagIn(second))
	_, worst := s.steady.lag(drainBegan, drained) // what waited while the agent was away is in this one
	otherLag, _ := other.steady.lag(drainBegan, drained)
	slip, worstSlip := machine.between(drainBegan, drained)
	t.Logf("the other target's lag: 99%% below %s, at most %s; %s while the backlog waited, %s at the agent without one; this process was late by %s, at most %s",
		lag, worst, calmLag, otherLag, slip, worstSlip)

	rate := float64(first.samples+second.samples) / (first.took + second.took).Seconds()
	t.Logf("drained %d samples: %.0f a second, %.0f by the ledger", first.samples+second.samples, rate,
		float64(first.ledger+second.ledger)/(first.took+second.took).Seconds())
	if rate < leastRate {
		t.Errorf("drained %.0f samples a second, want at least %d", rate, leastRate)
	}
	if bound := 2*max(calmLag, otherLag) + 100*time.Millisecond + 4*slip; lag > bound {
		t.Errorf("the other target's lag is %s, want at most %s", lag, bound)
	}
	if bound := calmLag + soon + 4*worstSlip; worst > bound {
		t.Errorf("the other target had a sample after %s beside the kill, want at most %s", worst, bound)
	}
	mine, its := first.worst.worst(second.worst), first.other.worst(second.other)
	s.flat("while it is delivered", mine, its, drainMemory)
	lost, again := s.account(max(windows, int64(rate)))
	results.Add(t, results.Line{
		What: "a backlog, delivered with a kill -9 in the middle while 10,000 samples a second come in", Count: 1, Lost: int(lost),
		Figures: map[string]float64{
			"backlog_bytes": float64(late.PendingBytes), "backlog_samples": float64(pending), "ready_seconds": ready.Seconds(),
			"first_sample_seconds": max(first.first, second.first).Seconds(), "samples_per_second": math.Round(rate), "again_samples": float64(again),
			"status_seconds": took.Seconds(), "rss_waiting_mb": mb(waiting.peak), "rss_waiting_without_mb": mb(waitingOther.peak),
			"rss_draining_mb": mb(mine.peak), "rss_draining_without_mb": mb(its.peak), "other_lag_p99_seconds": lag.Seconds(),
			"noise_of_the_machine_ms": float64(slip.Milliseconds()),
		},
	})
}

// build fills the log until so many bytes wait for late, ends the agent and leaves the
// configuration of the usual load. It says when it began.
func (s *sized) build(size int64) time.Time {
	s.t.Helper()
	// Each probe a round every 14 ms, 3.5 million samples a second: more than there is
	// time for, so that rounds are skipped. The steady target takes a 25th of that.
	s.load(14*time.Millisecond, true)
	began := time.Now()
	s.start()
	eventually(s.t, 20*time.Minute, func() string {
		time.Sleep(200 * time.Millisecond) // the pace of asking
		body, err := s.get("/api/v1/status")
		if err != nil {
			return err.Error() // it has more to do than there is time for
		}
		if n := s.parse([]byte(body)).target("late").PendingBytes; n < size {
			return fmt.Sprintf("%d of %d bytes wait", n, size)
		}
		return ""
	})
	took := time.Since(began)
	s.load(0, true)
	s.reload()
	eventually(s.t, time.Minute, func() string {
		if n := s.now().target("steady").Ledger.Pending; n > 0 {
			return fmt.Sprintf("%d samples wait for the target that is well", n)
		}
		return ""
	})
	st := s.now()
	late := st.target("late")
	s.t.Logf("backlog: %d samples in %.2f GB, %.1f bytes a sample, %d segments; built in %s, %.2f million samples a second; %s",
		late.Ledger.Pending, float64(late.PendingBytes)/1e9, float64(late.PendingBytes)/float64(late.Ledger.Pending), st.WAL.Segments,
		took.Round(time.Second), float64(late.Ledger.Pending)/took.Seconds()/1e6, s.process())
	s.stop()
	for i, j := range s.journals() {
		if i > 0 {
			s.steady.expectAfter(i, j.Tried) // it was filtered
		}
	}
	s.load(liveInterval, false)
	return began
}

// stop is SIGTERM, which must not take long.
func (s *sized) stop() {
	s.t.Helper()
	if took := s.terminate(); took > soon {
		s.t.Errorf("the agent took %s to end, want at most %s", took, soon)
	}
}

// answers asks everything that tells of the log, which must not take long.
func (s *sized) answers(began time.Time, size int64) {
	s.t.Helper()
	for _, path := range []string{"/api/v1/status", "/", "/metrics"} {
		_, took := s.page(path)
		s.t.Logf("GET %s: %s", path, took)
		if took > answerSoon {
			s.t.Errorf("GET %s took %s, want at most %s", path, took, answerSoon)
		}
	}
	var took time.Duration
	var memory int64
	eventually(s.t, soon, func() string { // it begins to read a moment after it is ready
		var out []byte
		out, took, memory = s.command("status", "--json")
		late := s.parse(out).target("late")
		if took > answerSoon || late.PendingBytes < size {
			s.t.Errorf("hwsagent status took %s, want at most %s; %+v", took, answerSoon, late)
		}
		if late.OldestPending.IsZero() {
			return "hwsagent status does not know the oldest pending sample"
		}
		if late.OldestPending.Sub(began).Abs() > soon {
			s.t.Errorf("the oldest pending sample is of %s, want %s", late.OldestPending, began)
		}
		return ""
	})
	s.t.Logf("hwsagent status: %s, %.0f MB of memory", took, mb(memory))
	_, took, memory = s.command("wal", "inspect")
	s.t.Logf("hwsagent wal inspect: %s, %.0f MB of memory", took, mb(memory))
	if memory > inspectMemory {
		s.t.Errorf("hwsagent wal inspect took %.0f MB, want at most %.0f", mb(memory), inspectMemory/1e6)
	}
}

// watch notes the most that two agents take at the same time, until done says so or for
// that long if it is nil.
func watch(limit time.Duration, done func() bool, a, b *sized) (most, mostOther process) {
	a.t.Helper()
	deadline := time.Now().Add(limit)
	for done == nil || !done() {
		if time.Now().After(deadline) {
			if done != nil {
				a.t.Fatalf("after %s: %+v", limit, a.now().Targets)
			}
			break
		}
		most, mostOther = most.worst(a.process()), mostOther.worst(b.process())
		time.Sleep(250 * time.Millisecond) // the pace of looking
	}
	return most, mostOther
}

// flat compares what the agent took with what one without a backlog did.
func (s *sized) flat(when string, mine, other process, slack int64) {
	s.t.Helper()
	s.t.Logf("%s: %s", when, mine)
	s.t.Logf("without a backlog: %s", other)
	if mine.peak > other.peak+slack || mine.files > other.files+2*16 || mine.goroutines > other.goroutines+16*6 {
		s.t.Errorf("%s: %s; without a backlog %s", when, mine, other)
	}
}

// leg is one stretch of delivering the backlog.
type leg struct {
	began, ended    time.Time
	samples, ledger int64         // delivered, by the receiver and by the agent's ledger
	first           time.Duration // from exec to the first sample
	took            time.Duration // from then on
	worst, other    process
}

// drain starts the agent and watches it until no more than so many samples wait for late.
func (s *sized) drain(until int64, other *sized) leg {
	s.t.Helper()
	s.late.listenAnew()
	began := time.Now()
	before, _ := s.late.total()
	s.launch()
	var l leg
	eventually(s.t, 20*time.Second, func() string {
		at := s.late.firstSample()
		if l.first = at.Sub(began); at.IsZero() {
			return "no sample arrives"
		}
		return ""
	})
	s.ready()
	s.t.Logf("first sample of the backlog %s after exec", l.first)
	if l.first > soon {
		s.t.Errorf("the first sample came after %s, want at most %s", l.first, soon)
	}
	delivered := s.now().target("late").Ledger.Delivered
	var st sizedStatus
	l.worst, l.other = watch(20*time.Minute, func() bool {
		st = s.now()
		return int64(st.target("late").Ledger.Pending) <= max(until, 2*sizeSeries)
	}, s, other)
	after, _ := s.late.total()
	l.began, l.ended = began, time.Now()
	l.took = l.ended.Sub(began) - l.first
	l.samples, l.ledger = after-before, int64(st.target("late").Ledger.Delivered-delivered)
	s.t.Logf("%d samples in %s, %.0f a second; %d rounds of the live load skipped", l.samples, l.took.Round(time.Millisecond),
		float64(l.samples)/l.took.Seconds(), st.skipped())
	if n := st.skipped(); n > 2 {
		s.t.Errorf("%d rounds of the live load were skipped while the backlog was delivered", n)
	}
	return l
}

// lagIn returns the steady target's lag during a leg, without its start: samples that waited for the agent are as old
// as its absence was long.
func (s *sized) lagIn(l leg) time.Duration {
	p99, _ := s.steady.lag(l.began.Add(soon), l.ended)
	return p99
}

// account ends the load and compares what has come with what was logged: nothing is lost,
// and no more came twice than a kill explains. It returns both numbers for late.
func (s *sized) account(mayComeTwice int64) (lost, again int64) {
	s.t.Helper()
	st := s.settle(time.Minute)
	journals := s.journals()
	for name, c := range map[string]*tally{"late": s.late, "steady": s.steady} {
		v, g := c.verify(journals), st.target(name).Ledger
		s.t.Logf("%s: %+v; ledger %+v", name, v, g)
		if v.Lost != 0 || v.Garbled != 0 || v.Ghosts != 0 || g.Lost != 0 {
			s.t.Errorf("%s: lost %d, garbled %d, never tried %d, lost by the ledger %d; want none of each", name, v.Lost, v.Garbled, v.Ghosts, g.Lost)
		}
		most := mayComeTwice
		if name == "steady" {
			most = 2 * liveRate
		}
		if v.Again > most {
			s.t.Errorf("%s: %d samples came twice, want at most %d", name, v.Again, most)
		}
		// The two series that every round has beside the canary's own may come twice as well.
		got := v.Samples - v.Again - int64(g.Delivered)
		if got < 0 || got > v.Again/sizeSeries*report+report*sizeProbes {
			s.t.Errorf("%s: %d samples came, %d of them again; the ledger says %d", name, v.Samples, v.Again, g.Delivered)
		}
		if name == "late" {
			lost, again = v.Lost, v.Again
		}
	}
	return lost, again
}
