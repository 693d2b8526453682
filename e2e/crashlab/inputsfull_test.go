//go:build linux

package crashlab

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

// TestInputsFull fills the disk to the last byte while all inputs are in use: all senders get 503 with Retry-After,
// nothing refused is stored, and soon after there is space all are accepted again. Then the agent is killed: everything
// acknowledged is on the disk.
func TestInputsFull(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"1s", "always"} {
		t.Run("sync="+sync, func(t *testing.T) {
			t.Parallel()
			rnd := seeded(t)
			d := newMemory(t, "size=6m,nr_inodes=200")
			in := newInputs(t, options{
				storage: d.storage(), wal: "sync: " + sync + ", max_bytes: 2MiB, min_free_bytes: 0", interval: 100 * time.Millisecond,
			}, "")
			in.start()
			in.ready()
			in.send()
			in.answered(time.Now(), "are taken", answer.ok)
			faults := amount(2, 40)
			var healed time.Duration
			for range faults {
				time.Sleep(between(rnd, 0, 500)) // where in a segment it happens
				healed = max(healed, in.fillUp(d))
				in.crash()
				in.offline()
				in.start()
				in.ready()
				in.answered(time.Now(), "are taken", answer.ok)
			}
			in.quietInputs()
			r, g := in.settle()
			v := in.judge(nil)
			in.holds(v, r, g)
			in.asked(v)
			results.Add(t, results.Line{
				What: "inputs: disk full while all send, kill -9 after it, sync " + sync, Count: faults, Lost: v.lost + v.undone + int(r.Missing), Seed: seed(t),
				Figures: v.figures(map[string]float64{
					"refused": float64(v.refused), "refused_and_stored": float64(v.stored), "without_retry_after": float64(v.unasked),
					"all_taken_again_within_ms": float64(healed.Milliseconds()), "noise_of_the_machine_ms": float64(in.witness.slippedBy().Milliseconds()),
				}),
			})
		})
	}
}

// fillUp returns one fault, and says how long it took after it until all were taken again. As in
// suffer, what is late three times in a row is not the machine's doing.
func (in *inputs) fillUp(d *disk) time.Duration {
	in.t.Helper()
	for again := 0; ; again++ {
		began := time.Now()
		eventually(in.t, 20*time.Second, func() string {
			d.fill() // again, as the log frees what is delivered
			return in.missing(began, "are refused", func(a answer) bool { return a.status == http.StatusServiceUnavailable })
		})
		repaired := time.Now()
		d.empty()
		in.answered(repaired, "are taken again", answer.ok)
		took := time.Since(repaired)
		if limit := healsWithin + time.Second + 2*in.noise(); took <= limit { // a sender may be amid a request
			return took
		} else if again == 2 {
			in.t.Errorf("all were taken again after %s, more than %s, three times in a row", took, limit)
			return took
		}
	}
}

// TestInputsReject fills the log's budget with wal.on_full: reject, while the target is away and all inputs are in use.
// Requests answered with 2xx are delivered when the target is back, others are not stored, and then all are accepted
// again.
func TestInputsReject(t *testing.T) {
	t.Parallel()
	in := newInputs(t, many(options{wal: "on_full: reject, max_bytes: 1MiB, min_free_bytes: 1MiB"}, 250*time.Millisecond), "")
	in.start()
	in.ready()
	in.send()
	in.answered(time.Now(), "are taken", answer.ok)
	faults := amount(1, 8)
	var healed time.Duration
	for range faults {
		in.away()
		// A push is kept in a file of its own, and goes on.
		in.answeredBy(time.Now(), "are refused", func(a answer) bool { return a.status == http.StatusServiceUnavailable }, byWrite1, byWrite2, byOTLP, byGRPC, byText)
		if err := in.recv.Start(); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		in.answered(back, "are taken again", answer.ok)
		healed = max(healed, time.Since(back))
	}
	in.quietInputs()
	r, g := in.settle()
	v := in.judge(nil)
	in.holds(v, r, g)
	in.asked(v)
	if v.refused == 0 || in.last.WAL.Refused == 0 {
		t.Error("nothing was refused: the fault did not take")
	}
	results.Add(t, results.Line{
		What: "inputs: wal.on_full reject while the target is away", Count: faults, Lost: v.lost + v.undone + int(r.Missing),
		Figures: v.figures(map[string]float64{
			"refused": float64(v.refused), "refused_and_stored": float64(v.stored), "without_retry_after": float64(v.unasked),
			"all_taken_again_within_ms": float64(healed.Milliseconds()), "noise_of_the_machine_ms": float64(in.witness.slippedBy().Milliseconds()),
		}),
	})
}

// answered waits until requests of every sender that began after a time have got such an
// answer.
func (in *inputs) answered(since time.Time, what string, such func(answer) bool) {
	in.t.Helper()
	in.answeredBy(since, what, such, ways()...)
}

func (in *inputs) answeredBy(since time.Time, what string, such func(answer) bool, by ...way) {
	in.t.Helper()
	eventually(in.t, 60*time.Second, func() string { return in.missing(since, what, such, by...) })
}

// missing returns which sender has got no such answer since a time, "" if all have.
func (in *inputs) missing(since time.Time, what string, such func(answer) bool, by ...way) string {
	if in.gone() {
		in.t.Fatalf("the agent ended by itself: %s\n%s", in.cmd.ProcessState, in.tail(20))
	}
	if len(by) == 0 {
		by = ways()
	}
	for _, s := range in.senders {
		for _, w := range by {
			if s.way != w {
				continue
			}
			if n, last := s.since(since, such); n == 0 {
				return fmt.Sprintf("no requests by %s %s; the last was answered %d %s", w, what, last.status, last.text)
			}
		}
	}
	return ""
}

// since counts requests that began after a time and got such an answer.
func (s *sender) since(since time.Time, such func(answer) bool) (n int, last answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.said) - 1; i >= 0 && s.said[i].began.After(since); i-- {
		if such(s.said[i].answer) {
			n++
		}
	}
	if len(s.said) > 0 {
		last = s.said[len(s.said)-1].answer
	}
	return n, last
}

// asked fails the test for refusals that are another answer than 503 with the time to come
// again: a sender would drop its data.
func (in *inputs) asked(v judgement) {
	in.t.Helper()
	if v.unasked > 0 {
		in.t.Errorf("%d of %d refusals did not ask the sender to come again", v.unasked, v.refused)
	}
}
