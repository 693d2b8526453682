package remotewrite

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/wal/queue"
)

// TestClockSetBackAtAStrictReceiver: the host's clock is set back by ten minutes, more rounds than a window spans, at a
// receiver that accepts no late samples. Samples that it refuses until the clock has caught up are counted and become
// dead letters. All samples before the step and after that moment are delivered, and so are those of series that begin
// in between, in the same batches. A few requests per batch are enough.
func TestClockSetBackAtAStrictReceiver(t *testing.T) {
	for _, tc := range []struct{ keepsGood, refuseEmpty bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprintf("%+v", tc), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const (
					series = 50
					begin  = 20 // that begin after the step
					every  = 15 * time.Second
					step   = 10 * time.Minute
					before = 20 // rounds
					stale  = int(step / every)
					rounds = before + stale + 20
				)
				r := newRig(t, &fakeReceiver{keepsGood: tc.keepsGood, refuseEmpty: tc.refuseEmpty, latency: time.Millisecond})
				r.start()
				ahead, late, sent := time.Duration(0), 0, 0
				last := time.Now().UnixMilli() - 1
				rnd := rand.New(rand.NewPCG(1, 20))
				for i := range rounds {
					if i == before {
						ahead, sent = -step, r.to.count()
					}
					at := time.Now().Add(ahead).UnixMilli()
					if at <= last {
						late++
					}
					last = max(last, at)
					var round []smp
					for n := range series {
						round = append(round, smp{fmt.Sprintf("m%04d", n), at, float64(i)})
					}
					if i >= before {
						for n := range begin {
							round = append(round, smp{fmt.Sprintf("new%04d", n), at, float64(i)})
						}
						rnd.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
					}
					r.log.append(round...)
					time.Sleep(every)
				}
				r.drained(2 * time.Hour)
				r.end()
				if late < stale {
					t.Fatalf("%d rounds say times that were used: the clock was not set back", late)
				}
				for name, have := range r.to.stored {
					n := rounds - late
					if strings.HasPrefix(name, "new") {
						n = rounds - before
					}
					if len(have) != n || have[n-1].v != float64(rounds-1) {
						t.Errorf("of %s %d samples are stored, want %d: %v", name, len(have), n, have)
					}
				}
				o := r.log.outcome()
				if o.Lost() != uint64(late*series) || o.Dropped[queue.Resent] > 0 || len(r.to.stored) != series+begin {
					t.Errorf("outcomes %+v, want %d rounds of %d lost", o, late, series)
				}
				letters := uint64(0)
				for _, l := range r.letters.all() {
					letters += uint64(max(l.Samples, 1))
				}
				if letters != o.Lost() {
					t.Errorf("dead letters of %d samples, want %d", letters, o.Lost())
				}
				perRound := float64(r.to.count()-sent) / float64(rounds-before)
				t.Logf("%.0f requests a round of %d series; outcomes %+v", perRound, series, o)
				if perRound > 25 {
					t.Errorf("%.0f requests a round of %d series", perRound, series)
				}
			})
		})
	}
}

// TestRestartWhileTheClockIsBehind: the agent restarts while the clock is behind and samples are in flight. It knows
// which series are late: samples of series that began after the step are delivered, missing samples do not count as
// stored, and a target that also refuses empty writes is not held.
func TestRestartWhileTheClockIsBehind(t *testing.T) {
	for _, tc := range []struct{ keepsGood, refuseEmpty, kill bool }{
		{false, false, false}, {false, false, true}, {true, false, true}, {false, true, true}, {true, true, true},
	} {
		t.Run(fmt.Sprintf("%+v", tc), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const old, young, before, behind, step = 40, 10, 10, 30, 15 * time.Minute
				to := &fakeReceiver{keepsGood: tc.keepsGood, refuseEmpty: tc.refuseEmpty, latency: time.Millisecond}
				r, loses, lost := newRig(t, to), false, 0
				to.loseAnswer = func(fakeRequest) bool {
					if loses {
						lost++
					}
					return loses
				}
				r.start()
				ahead, fresh, late := time.Duration(0), map[smp]bool{}, uint64(0)
				for i := range before + behind {
					var round []smp
					at := time.Now().Add(ahead).UnixMilli()
					for n := range old {
						s := smp{fmt.Sprintf("old%02d", n), at, float64(i)}
						if round = append(round, s); ahead < 0 {
							late++
						}
					}
					for n := range young {
						if s := (smp{fmt.Sprintf("young%02d", n), at, float64(i)}); ahead < 0 {
							round = append(round, s)
							fresh[s] = true
						}
					}
					r.log.append(round...)
					switch i {
					case before - 1:
						time.Sleep(10 * time.Second)
						ahead = -step
					case before + behind/2:
						to.set(func() { loses = true })
						r.until("an answer is lost", 10*time.Minute, func() (ok bool) {
							to.set(func() { ok = lost > 0 })
							return ok
						})
						r.end()
						if tc.kill {
							r.log.crash()
						}
						to.set(func() { loses = false })
						r.start()
					}
					time.Sleep(10 * time.Second)
				}
				// Only late samples come from now on.
				r.drained(30 * time.Minute)
				r.end()
				o := r.log.outcome()
				for s := range fresh {
					if !to.has[s] {
						t.Errorf("receiver does not have %+v, which is fresh; outcomes %+v", s, o)
						break
					}
				}
				letters := uint64(0)
				for _, l := range r.letters.all() {
					letters += uint64(max(l.Samples, 1))
				}
				if lost == 0 {
					t.Error("no answer was lost")
				}
				if letters < late {
					t.Errorf("%d late samples, dead letters of %d; outcomes %+v", late, letters, o)
				}
				t.Logf("%d late, %d letters, %d answers lost; outcomes %+v", late, letters, lost, o)
			})
		})
	}
}

var setBackSeeds = flag.Uint64("setback.seeds", 60, "how many seeds TestClockSetBackAtRandom runs")

// TestClockSetBackAtRandom: the clock is set back at random, at a receiver that accepts no late samples, with outages,
// lost answers, and series that come and go. No sample that is newer than all before it in its series is lost, and
// every missing sample is counted and has a letter; after a stop in that state it is only counted.
func TestClockSetBackAtRandom(t *testing.T) {
	seeds := *setBackSeeds
	if testing.Short() {
		seeds = min(seeds, 15)
	}
	// Seeds beyond the others: a late sample of a series that the queue had forgotten spoke for a newer one; many of these
	// used up a budget that kept requests for proofs, which late samples do not need; and two rounds of such late samples
	// passed for proof that the receiver stores the good part of refused requests.
	lives := []uint64{154, 252, 632}
	for seed := range seeds {
		lives = append(lives, seed)
	}
	all, labelled := uint64(0), uint64(0)
	for _, seed := range lives {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, wrong := setBackAtRandom(t, rand.New(rand.NewPCG(seed, 21)))
				all, labelled = all+n, labelled+wrong
			})
		})
	}
	t.Logf("%d of %d missing samples, all of them late, count as resent", labelled, all)
	if 1000*labelled > all {
		t.Error("that is more than one in a thousand")
	}
}

// setBackAtRandom returns how many samples the receiver does not have, in a life without a restart, and how many of these
// count as resent: of a series that was gone for so long that the queue forgot it, a late sample that was refused
// together with later ones looks like one that the receiver stored then.
func setBackAtRandom(t *testing.T, rnd *rand.Rand) (missing, labelled uint64) {
	to := &fakeReceiver{keepsGood: rnd.IntN(2) == 0, refuseEmpty: rnd.IntN(3) == 0, latency: time.Millisecond}
	r := newRig(t, to).timed()
	r.cfg.Queue.MaxSamplesPerSend = 50 + rnd.IntN(500)
	lost, down, loses := false, false, false // the receiver's, under to.mu
	dice := rand.New(rand.NewPCG(rnd.Uint64(), 22))
	to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, down }
	to.loseAnswer = func(fakeRequest) bool { return loses && dice.IntN(4) == 0 }
	r.start()
	mayRestart := rnd.IntN(2) == 0
	restarts, series, ahead := 0, 10+rnd.IntN(80), time.Duration(0)
	for i := range 150 {
		switch rnd.IntN(25) {
		case 0:
			ahead -= time.Duration(rnd.IntN(600)) * time.Second
		case 1:
			ahead = 0
		case 2:
			series = 10 + rnd.IntN(80)
		case 3:
			to.set(func() { down = !down })
		case 4:
			lost = true
			to.set(func() { loses = !loses })
		case 5:
			if !mayRestart {
				break
			}
			restarts++
			r.end()
			r.start()
		}
		var round []smp
		for n := range series {
			round = append(round, smp{fmt.Sprintf("m%04d", n), time.Now().Add(ahead).UnixMilli() + int64(n), float64(i)})
		}
		rnd.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		r.log.append(round...)
		time.Sleep(time.Duration(1+rnd.IntN(30)) * time.Second)
	}
	to.set(func() { down, loses = false, false })
	r.drained(2 * time.Hour)
	r.end()
	o, newest, first := r.log.outcome(), map[string]int64{}, 0
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			x := smpOf(s)
			isFresh := x.t > newest[x.series]
			newest[x.series] = max(newest[x.series], x.t)
			if to.has[x] {
				continue
			}
			if missing++; isFresh {
				if first++; first < 4 {
					t.Logf("receiver does not have %+v, which is fresh", x)
				}
			}
		}
	}
	letters := uint64(0)
	for _, l := range r.letters.all() {
		letters += uint64(max(l.Samples, 1))
	}
	if restarts > 0 {
		// The queue then forgets the target's newest sample of each series: a late sample that may have been sent
		// before looks as if it were stored.
		if missing > o.Lost()+o.Dropped[queue.Resent] {
			t.Errorf("%d samples are missing, outcomes %+v", missing, o)
		}
		return 0, 0
	}
	labelled = missing - min(missing, o.Lost())
	exact := !to.keepsGood && !lost // then a stored sample cannot look as if it were not
	if labelled > o.Dropped[queue.Resent] || exact && missing < o.Lost() || letters != o.Lost() || first > 0 {
		t.Errorf("%d samples are missing, %d of them fresh, letters of %d; outcomes %+v", missing, first, letters, o)
	}
	if t.Failed() {
		t.Logf("receiver %+v restarts=%d", []any{to.keepsGood, to.refuseEmpty}, restarts)
	}
	return missing, labelled
}
