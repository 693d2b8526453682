package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/results"
)

// trip is an agent that writes to a real receiver through a gate, by the entry that
// docs/compatibility.md recommends, and to a recorder.
type trip struct {
	*load
	b        backend
	end      endpoint
	gate     *gate
	recorder *recorder
	native   bool // the entry sends native histograms
}

// startTrip starts all of it and waits until data arrives. The canary has native
// histograms and exemplars if native is set.
func startTrip(t *testing.T, b backend, native bool) *trip {
	t.Helper()
	return startTripBy(t, b, native, recommendedEntry(t, b.entry))
}

// startTripBy is startTrip with that entry.
func startTripBy(t *testing.T, b backend, native bool, recommended map[string]any) *trip {
	t.Helper()
	end := b.start(t, b)
	r := &trip{b: b, end: end, gate: newGate(t, end.write), recorder: newRecorder()}
	recv := receiver.New(receiver.Options{Sink: r.recorder.add})
	if err := recv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(recv.Stop)
	r.native = native && recommended["send_native_histograms"] == true
	r.load = newLoad(t, 20, 100*time.Millisecond,
		quickEntry(t, recommended, r.gate.url())+
			entry("recorder", recv.URL(), "    send_native_histograms: true\n"), receiver.NewOracle())
	r.canary = fmt.Sprintf(", native: %t", native)
	r.begin()
	r.delivered()
	return r
}

// delivered waits until the receiver has, or has refused, all that the log has now.
func (r *trip) delivered() {
	r.t.Helper()
	upTo := r.target("real").Ledger.Appended
	eventually(r.t, 30*time.Second, func() string {
		tg := r.target("real")
		if l := tg.Ledger; l.Appended-l.Pending < upTo {
			return fmt.Sprintf("%d samples of %d have their outcome, %s: %s %s", l.Appended-l.Pending, upTo, tg.State, tg.Why, tg.LastError)
		}
		return ""
	})
}

// settled ends the load, and returns what both sides have and the receiver's ledger.
func (r *trip) settled() (sent, stored contents, tg target) {
	r.t.Helper()
	r.reload(r.text(false))
	r.drained(30*time.Second, "recorder")
	tg = r.drained(30*time.Second, "real")
	return r.recorder.contents(), r.end.read(), tg
}

// comparable changes what was sent to what the receiver can show of it.
func (r *trip) comparable(sent contents) contents {
	histogram := func(series string) bool { return strings.Contains(series, "_histogram\"") }
	shown := make(contents)
	for series, times := range sent {
		for t, values := range times {
			for _, v := range values {
				switch {
				case histogram(series) && !r.native && v != staleText: // is not sent
				case histogram(series) && r.b.queried && v == staleText: // is not shown
				case histogram(series) && r.b.queried:
					shown.add(series, t, strings.TrimPrefix(strings.TrimPrefix(v, "int "), "float "))
				default:
					shown.add(series, t, v)
				}
			}
		}
	}
	return shown
}

// checkNumbers compares what the receiver has of the canary's counters with what the log
// has acknowledged: each number once.
func (r *trip) checkNumbers(stored contents, except ...string) {
	r.t.Helper()
	acked := r.journal().Acked
	for i := range r.series {
		name := strconv.Itoa(i)
		if slices.Contains(except, name) {
			continue
		}
		var got []string
		for series, times := range stored {
			if canarySeries(series) == name {
				for _, t := range slices.Sorted(maps.Keys(times)) {
					got = append(got, times[t]...)
				}
			}
		}
		for _, n := range acked {
			want := strconv.FormatUint(n, 10)
			count := 0
			for _, v := range got {
				if v == want {
					count++
				}
			}
			if count != 1 {
				r.t.Fatalf("series %s has the acknowledged number %d %d times, want once: %v", name, n, count, got)
			}
		}
	}
}

// canarySeries returns the label series of a canary's counter, "" of any other series.
func canarySeries(series string) string {
	m := regexp.MustCompile(`__name__="hwsagent_canary",.*series="([0-9]+)"`).FindStringSubmatch(series)
	if m == nil {
		return ""
	}
	return m[1]
}

// TestRealReceivers writes to each real receiver through an outage and a kill in the
// middle of sending, and reads every sample back.
func TestRealReceivers(t *testing.T) {
	endToEnd(t)
	for _, b := range realReceivers() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			r := startTrip(t, b, true)

			// The receiver is away for two seconds at least.
			r.gate.down()
			eventually(t, 20*time.Second, func() string {
				if tg := r.target("real"); tg.State != "retrying" {
					return "without its receiver the target is " + tg.State
				}
				return ""
			})
			r.acked(20)
			if pending := r.target("real").PendingSamples; pending < 20*uint64(r.series) {
				t.Errorf("only %d samples wait in the outage", pending)
			}
			r.gate.up()
			r.delivered()

			// The agent is killed when the receiver has stored what the agent does not know of.
			r.gate.keep(true)
			eventually(t, 20*time.Second, func() string {
				if r.gate.keptBack() == 0 {
					return "no request comes"
				}
				return ""
			})
			r.acked(5)
			r.kill()
			r.gate.keep(false)
			r.run()
			r.delivered()
			r.acked(3)

			sent, stored, tg := r.settled()
			answers, types := r.gate.counts()
			t.Logf("ledger %+v, %d answers kept back, answers %v to %v", tg.Ledger, r.gate.keptBack(), answers, types)
			shown := r.comparable(sent)
			if missing := shown.lacks(stored); len(missing) > 0 {
				t.Errorf("the receiver lacks %d of %d samples:\n%s", len(missing), shown.samples(), some(missing))
			}
			if more := stored.lacks(shown); len(more) > 0 {
				t.Errorf("the receiver has %d samples that were not sent:\n%s", len(more), some(more))
			}
			r.checkNumbers(stored)
			r.checkExemplars()
			r.checkMetadata()
			r.checkProtocol(types)
			r.checkLedger(tg)
			results.Add(t, results.Line{
				What: "outage and kill -9 while sending, at " + b.name, Count: 1, Lost: len(shown.lacks(stored)),
				Figures: map[string]float64{
					"samples": float64(shown.samples()), "unconfirmed": float64(tg.Ledger.Dropped["unconfirmed"]),
					"requests refused": float64(answers[400]),
				},
			})
		})
	}
}

// checkLedger: nothing that the receiver has counts as lost, but histograms do that were not
// sent.
func (r *trip) checkLedger(tg target) {
	r.t.Helper()
	if r.b.queried && r.b.window > 0 {
		return
	}
	unsupported := tg.Ledger.Dropped["unsupported"]
	if unsupported > 0 == r.native || tg.Ledger.Lost != unsupported || tg.DeadLetters > 0 {
		r.t.Errorf("the ledger is %+v with %d dead letters", tg.Ledger, tg.DeadLetters)
	}
}

// checkExemplars: a receiver that stores exemplars has that of each acknowledged number.
func (r *trip) checkExemplars() {
	r.t.Helper()
	if r.end.exemplars == nil {
		return
	}
	found := r.end.exemplars(receiver.CanaryName)
	var missing []uint64
	for _, n := range r.journal().Acked {
		if v, ok := found[strconv.FormatUint(n, 10)]; !ok || v != float64(n) {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		r.t.Errorf("the receiver lacks the exemplars of the numbers %v; it has %d", missing, len(found))
	}
}

// checkMetadata: 2.0 brings each series' metadata with it, and Prometheus 3 keeps it. What
// 1.0 sends in requests of its own no receiver here keeps.
func (r *trip) checkMetadata() {
	r.t.Helper()
	if !r.b.v2 {
		return
	}
	var answer struct {
		Data map[string][]struct{ Type, Help string }
	}
	body := do(r.t, http.MethodGet, strings.TrimSuffix(r.end.write, "/write")+"/metadata", nil, nil)
	if err := json.Unmarshal(body, &answer); err != nil {
		r.t.Fatalf("metadata: %v in %s", err, body)
	}
	for metric, kind := range map[string]string{"hwsagent_canary": "counter", "hwsagent_canary_histogram": "histogram"} {
		if m := answer.Data[metric]; len(m) != 1 || m[0].Type != kind || !strings.Contains(m[0].Help, "of the round") {
			r.t.Errorf("the metadata of %s is %+v", metric, m)
		}
	}
}

// checkProtocol: the requests were of the protocol that the entry asks for, but for the empty
// writes, which the gate does not count.
func (r *trip) checkProtocol(types map[string]int) {
	r.t.Helper()
	for contentType, n := range types {
		if v2 := strings.Contains(contentType, message2); v2 != r.b.v2 {
			r.t.Errorf("%d requests are %s", n, contentType)
		}
	}
}
