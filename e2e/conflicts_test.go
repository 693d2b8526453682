package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/internal/tools/results"
)

// plant stores a sample at the receiver, past the agent.
func (r *trip) plant(ls []prompb.Label, t int64, v float64) {
	r.t.Helper()
	ts := prompb.TimeSeries{Labels: ls, Samples: []prompb.Sample{{Value: v, Timestamp: t}}}
	if status, text := deliver(r.t, r.end.write, r.b.v2, ts); status/100 != 2 {
		r.t.Fatalf("plant: %d %s", status, text)
	}
}

// recorded is a sample that the recorder has.
type recorded struct {
	labels []prompb.Label
	t      int64
	v      float64
}

// newestOf returns the newest samples of two series, which are of the same round.
func (r *trip) newestOf(a, b string) (newest [2]recorded) {
	r.t.Helper()
	eventually(r.t, 10*time.Second, func() string {
		for i, series := range []string{a, b} {
			ls, t, v := r.recorder.newest(series)
			newest[i] = recorded{ls, t, number(r.t, v)}
		}
		if newest[0].v != newest[1].v {
			return fmt.Sprintf("the newest samples are of the rounds %v and %v", newest[0].v, newest[1].v)
		}
		return ""
	})
	return newest
}

// TestRealConflicts gives each real receiver samples that the agent's own are late to, or
// repeat, or contradict. A receiver may refuse those; all others must arrive, and the
// ledger must tell exactly how many are lost.
func TestRealConflicts(t *testing.T) {
	endToEnd(t)
	for _, b := range realReceivers() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			r := startTrip(t, b, false)
			series := func(n string) (name string) {
				t.Helper()
				eventually(t, 10*time.Second, func() string {
					for name = range r.recorder.contents() {
						if canarySeries(name) == n {
							return ""
						}
					}
					return "the recorder has no series " + n
				})
				return name
			}
			// From now on all samples of this series are late. Nothing may be in flight meanwhile: Prometheus silently
			// drops samples that are appended at the same time.
			r.gate.leave()
			ls, _, _ := r.recorder.newest(series("3"))
			r.plant(ls, time.Now().Add(4*time.Minute).UnixMilli(), 1e6)
			r.gate.up()
			r.acked(10)
			r.delivered()

			// The end of an outage brings samples that are there already, and one that is there
			// with another value; those before them are late.
			r.gate.leave()
			away := time.Now()
			r.acked(10)
			both := r.newestOf(series("5"), series("6")) // the others of their round come with them
			r.plant(both[0].labels, both[0].t, both[0].v)
			r.plant(both[1].labels, both[1].t, both[1].v+0.5)
			r.gate.up()
			r.delivered()
			r.acked(5)

			sent, stored, tg := r.settled()
			answers, _ := r.gate.counts()
			missing := sent.lacks(stored)
			t.Logf("ledger %+v, %d dead letters, %d missing, answers %v", tg.Ledger, tg.DeadLetters, len(missing), answers)
			r.checkNumbers(stored, "3", "5", "6")
			for _, m := range missing {
				if n := canarySeries(m); n != "3" && n != "5" && n != "6" {
					t.Errorf("a sample without a conflict is missing: %s", m)
				}
			}
			r.checkLost(stored, len(missing), tg, away)
			r.checkConflicts(missing)
			results.Add(t, results.Line{
				What: "late, repeated and contradicting samples, at " + b.name, Count: 1, Lost: len(missing),
				Figures: map[string]float64{"samples": float64(sent.samples()), "requests refused": float64(answers[400])},
			})
		})
	}
}

// checkLost: the ledger knows exactly how many samples are missing, and no dead letter is of
// one that the receiver has, but for those in doubt. When the outage begins, the agent may be
// taking a refused batch apart whose good part is stored, which is so by 2.0, and has yet to ask
// for some of it again. After the outage something newer of two series is there, from another
// sender: then their samples are refused as late, and the agent cannot know that they were
// stored first.
func (r *trip) checkLost(stored contents, missing int, tg target, away time.Time) {
	r.t.Helper()
	var kept struct {
		Letters []struct {
			Series, Value, Text string
			Timestamp           int64 `json:"timestamp_ms"`
			Samples             int
		}
	}
	out, err := exec.Command(binary(r.t), "targets", "rejected", "real", "--limit", "0", "--json", "--storage.path", r.storage).Output()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal(out, &kept); err != nil {
		r.t.Fatalf("%v in %s", err, out)
	}
	doubtful := 0
	for _, l := range kept.Letters {
		if l.Samples > 1 || !slices.Contains(stored[l.Series][l.Timestamp], l.Value) { // one of several may be any of them
			continue
		}
		n := canarySeries(l.Series)
		if doubtful++; !r.b.v2 || n != "5" && n != "6" || l.Timestamp >= away.UnixMilli() {
			r.t.Errorf("stored, and a dead letter: %+v", l)
		}
	}
	if int(tg.Ledger.Lost) != missing+doubtful {
		r.t.Errorf("%d samples are missing and %d in doubt, the ledger says %+v", missing, doubtful, tg.Ledger)
	}
}

// checkConflicts checks that the missing samples are those that the receiver refuses according to docs/reference/receivers.md.
func (r *trip) checkConflicts(missing []string) {
	r.t.Helper()
	late, repeated, contradicting := 0, 0, 0
	for _, m := range missing {
		switch canarySeries(m) {
		case "3":
			late++
		case "5":
			repeated++
		case "6":
			contradicting++
		}
	}
	switch {
	case r.b.everything:
		if len(missing) > 0 {
			r.t.Errorf("a receiver that refuses nothing lacks %d", len(missing))
		}
	case r.b.window > 0:
		if late > 0 || repeated > 0 || contradicting != 1 {
			r.t.Errorf("missing are %d late, %d repeated and %d contradicting samples, want none, none, one", late, repeated, contradicting)
		}
	default:
		if late < 20 || repeated == 0 || contradicting != repeated+1 {
			r.t.Errorf("missing are %d late samples, %d before a repeated and %d up to a contradicting one", late, repeated, contradicting)
		}
	}
}
