package e2e

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
)

// seriesRefusedFor returns how long a receiver refuses series.
func seriesRefusedFor() time.Duration {
	if os.Getenv("HWSAGENT_TORTURE") != "" {
		return 150 * time.Second
	}
	return 30 * time.Second
}

// TestSeriesRefusedForEver: a receiver refuses one series in 34, and each request that has a sample of one. Only samples of these
// are lost, each is counted, and a round costs few requests more.
func TestSeriesRefusedForEver(t *testing.T) {
	endToEnd(t)
	for _, c := range []struct {
		words string
		most  float64 // requests that a round costs more, in the mean
	}{
		{"per-user series limit of 1400 exceeded, please contact your administrator", 2},
		{"bad request", 64},
	} {
		for _, keeps := range []bool{false, true} {
			t.Run(fmt.Sprintf("%.8s keeps=%t", c.words, keeps), func(t *testing.T) {
				t.Parallel()
				const series, every = 3 * 34, 34
				recv, oracle := startReceiver(t, receiver.Options{})
				recv.Behave(receiver.RefuseSeries(func(ts prompb.TimeSeries) bool {
					n, err := strconv.Atoi(receiver.Label(ts, "series"))
					return err == nil && n%every == 0
				}, c.words, keeps))
				l := newLoad(t, series, 500*time.Millisecond, entry("receiver", recv.URL()), oracle).begin()
				l.arrived(20 * time.Second)
				before, rounds := len(recv.Seen()), len(l.journal().Acked)
				time.Sleep(seriesRefusedFor())
				requests := len(recv.Seen()) - before
				rounds = len(l.journal().Acked) - rounds
				r := l.settle(60*time.Second, "receiver")
				if bad := r.Appended / every; r.Missing != bad || r.OutOfOrder > 0 {
					t.Errorf("missing %d, out of order %d, want the %d of the refused series", r.Missing, r.OutOfOrder, bad)
				}
				tg := l.target("receiver")
				stale := tg.Ledger.Lost - uint64(r.Missing) // markers at the end of a refused series
				if uint64(r.Missing) > tg.Ledger.Lost || stale > series/every || tg.Ledger.Dropped["rejected"]+tg.Ledger.Dropped["unconfirmed"] != tg.Ledger.Lost {
					t.Errorf("missing are %d, the ledger says %+v", r.Missing, tg.Ledger)
				}
				extra := float64(requests-rounds) / float64(max(rounds, 1))
				if extra > c.most || rounds < 20 {
					t.Errorf("%d requests in %d rounds: %.1f more for each, want at most %.0f", requests, rounds, extra, c.most)
				}
				t.Logf("%d requests in %d rounds: %.1f more for each; ledger %+v", requests, rounds, extra, tg.Ledger)
			})
		}
	}
}
