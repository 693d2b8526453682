package e2e

import (
	"strings"
	"testing"

	"hwsagent/internal/tools/results"
)

// TestAutoFindsTheVersion writes by protobuf_message: auto to real receivers that take one
// version of the protocol only, whatever they answer to the other, and reads every
// sample back. One request is all that it costs to find out.
func TestAutoFindsTheVersion(t *testing.T) {
	endToEnd(t)
	accepting := func(message string) func(*testing.T, backend) endpoint {
		return func(t *testing.T, b backend) endpoint {
			return startPrometheus3With(t, b, "-accept", message)
		}
	}
	for _, tc := range []struct {
		backend
		v2 bool // what it takes
	}{
		{backend{name: "Prometheus 2.42", start: startPrometheus2, queried: true}, false},
		{backend{name: "VictoriaMetrics 1.79", start: startVictoria, everything: true}, false},
		{backend{name: "3.15 for 1.0", start: accepting("prometheus.WriteRequest")}, false},
		{backend{name: "3.15 for 2.0", start: accepting(message2)}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.entry = "prometheus-2.0"
			r := startTrip(t, tc.backend, false)
			r.acked(20)
			r.kill() // what was learnt is forgotten
			r.run()
			r.delivered()
			r.acked(10)
			sent, stored, tg := r.settled()
			_, types := r.gate.counts()
			t.Logf("ledger %+v, requests %v", tg.Ledger, types)
			shown := r.comparable(sent)
			if missing := shown.lacks(stored); len(missing) > 0 {
				t.Errorf("the receiver lacks %d of %d samples:\n%s", len(missing), shown.samples(), some(missing))
			}
			if more := stored.lacks(shown); len(more) > 0 {
				t.Errorf("the receiver has %d samples that were not sent:\n%s", len(more), some(more))
			}
			r.checkNumbers(stored)
			if tg.Ledger.Lost > 0 || tg.DeadLetters > 0 {
				t.Errorf("the ledger is %+v with %d dead letters", tg.Ledger, tg.DeadLetters)
			}
			of := map[bool]int{}
			for contentType, n := range types {
				of[strings.Contains(contentType, message2)] += n
			}
			// The first data of each start may be of 2.0.
			if of[!tc.v2] > 2 || of[tc.v2] < 5 {
				t.Errorf("requests %v, want at most one of the version that it does not take from each start", types)
			}
			results.Add(t, results.Line{
				What: "protobuf_message: auto, with a kill -9, at " + tc.name, Count: 1, Lost: len(shown.lacks(stored)),
				Figures: map[string]float64{"samples": float64(shown.samples()), "requests of the other version": float64(of[!tc.v2])},
			})
		})
	}
}
