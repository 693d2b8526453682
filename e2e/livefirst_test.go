package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

// liveFirstReceivers returns those receivers that take late data, by their entries with
// catch_up: live_first.
func liveFirstReceivers() []backend {
	var all []backend
	for _, b := range realReceivers() {
		switch {
		case b.window > 0 && b.entry == "prometheus-2.0", b.window > 0 && b.queried:
			b.entry = "prometheus-live-first"
		case b.everything:
			b.entry = "victoriametrics-live-first"
		default:
			continue
		}
		all = append(all, b)
	}
	return all
}

// TestRealLiveFirst: after an outage real receivers get fresh samples within seconds, while
// what was missed still follows, through kills at random moments; in the end every sample is
// there, and none counts as lost.
func TestRealLiveFirst(t *testing.T) {
	endToEnd(t)
	for i, b := range liveFirstReceivers() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(i), 17))
			e := recommendedEntry(t, b.entry)
			e["hwsagent"].(map[string]any)["catch_up_rate_limit"] = 400 // so that there is time for kills
			e["queue_config"] = map[string]any{"max_samples_per_send": 200}
			r := startTripBy(t, b, false, e)

			r.gate.down()
			eventually(t, 90*time.Second, func() string {
				if tg := r.target("real"); tg.LagSeconds < 33 {
					return fmt.Sprintf("the oldest sample waits for %.0f s", tg.LagSeconds)
				}
				return ""
			})
			up := time.Now()
			r.gate.up()
			var missed uint64
			eventually(t, 30*time.Second, func() string {
				if missed = r.target("real").MissedSamples; missed == 0 {
					return "nothing was left to a backlog"
				}
				for _, times := range r.end.read() {
					for at := range times {
						if at > up.UnixMilli() {
							return ""
						}
					}
				}
				return "nothing fresh arrives"
			})
			fresh := time.Since(up)
			if r.target("real").MissedSamples == 0 {
				t.Error("the backlog came before what is fresh")
			}
			const kills = 3
			for range kills {
				time.Sleep(time.Duration(50+rnd.IntN(900)) * time.Millisecond) // the fault's own schedule
				if r.target("real").MissedSamples == 0 {
					t.Error("a kill comes after the backlog")
				}
				r.kill()
				r.run()
			}
			r.delivered()
			r.acked(3)
			sent, stored, tg := r.settled()
			t.Logf("fresh after %s, beside %d samples that were missed; ledger %+v", fresh, missed, tg.Ledger)
			if missing := sent.lacks(stored); len(missing) > 0 {
				t.Errorf("the receiver lacks %d of %d samples:\n%s", len(missing), sent.samples(), some(missing))
			}
			if more := stored.lacks(sent); len(more) > 0 {
				t.Errorf("the receiver has %d samples that were not sent:\n%s", len(more), some(more))
			}
			r.checkNumbers(stored)
			if tg.Ledger.Lost > 0 || tg.DeadLetters > 0 || tg.MissedSamples > 0 {
				t.Errorf("ledger %+v, %d dead letters, %d missed", tg.Ledger, tg.DeadLetters, tg.MissedSamples)
			}
			results.Add(t, results.Line{
				What: "live first after an outage, with kill -9 while catching up, at " + b.name, Count: kills, Lost: len(sent.lacks(stored)),
				Figures: map[string]float64{"samples": float64(sent.samples()), "missed": float64(missed), "fresh_after_ms": float64(fresh.Milliseconds())},
			})
		})
	}
}
