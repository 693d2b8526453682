package remotewrite

import (
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/quarantine"
	"hwsagent/wal/queue"
)

// TestQuarantineWhoseSeriesEnd: an explosion of series exceeds a tenant's limit and is rolled back, so these series end, and the limit is raised.
// The ten series that remain in quarantine return within minutes. It took hours: the sample to probe was drawn among all series that
// counted, ended ones too, and the draw was never renewed.
func TestQuarantineWhoseSeriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const good, remain, series, every = 100, 110, 6000, 15 * time.Second
		tenant := &limitedTenant{limit: good, series: map[string]bool{}}
		to := &fakeReceiver{latency: 10 * time.Millisecond, says: limitWords, poison: tenant.refuses}
		r := newRig(t, to).timed()
		r.start()
		r.rounds(4, good, every)
		r.rounds(8, series, every)
		if st := r.q.Status().Quarantined; len(st) != 1 || st[0].Series != series-good {
			t.Fatalf("status: %+v", st)
		}
		r.log.mu.Lock()
		for name, s := range r.log.series {
			if name >= "m0110" {
				r.log.ended = append(r.log.ended, s)
			}
		}
		r.log.mu.Unlock()
		to.set(func() { tenant.limit = 1 << 30 })
		raised := time.Now()
		rejected := func() uint64 { return r.log.outcome().Dropped[queue.Rejected] }
		before := rejected()
		last := raised // when a sample was last rejected
		for time.Since(raised) < 24*time.Hour {
			was := rejected()
			r.rounds(1, remain, every)
			if rejected() != was {
				last = time.Now()
			}
		}
		if took := last.Sub(raised); took > 3*quarantine.ProbeEvery {
			t.Errorf("%d samples of series that the receiver would accept were rejected, until %s after the limit was raised", rejected()-before, took)
		}
		r.end()
	})
}
