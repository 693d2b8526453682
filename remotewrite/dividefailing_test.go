package remotewrite

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestTakenApartWhileRequestsFail: a batch with a bad sample is divided while one in so many requests fails, as behind
// a balancer with a dead receiver, or at a rate limit. Only the bad sample is given up.
func TestTakenApartWhileRequestsFail(t *testing.T) {
	const series, rounds = 40, 4
	for _, refuseEmpty := range []bool{false, true} {
		for _, every := range []int{7, 4, 3, 2} {
			for _, status := range []int{429, 502} {
				t.Run(fmt.Sprintf("refuses empty writes=%t/each %d is answered %d", refuseEmpty, every, status), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						to := &fakeReceiver{refuseEmpty: refuseEmpty, latency: 10 * time.Millisecond}
						r := newRig(t, to)
						bad := smp{}
						to.poison = func(s smp) bool { return s == bad }
						to.script = func(q fakeRequest) (client.Answer, bool) {
							return client.Answer{Status: status, Text: "no"}, q.n%every == every-1
						}
						r.start()
						r.round(series)
						r.drained(time.Hour)
						for i := range rounds {
							if i == 1 {
								bad = smp{"m0005", r.time + 1000, float64(r.time+1000) + 5}
							}
							r.round(series)
						}
						r.drained(time.Hour)
						r.end()
						if o := r.log.outcome(); o.GivenUp() != 1 {
							t.Errorf("%d requests; outcomes %+v, want one lost", to.count(), o)
						}
						r.verify(bad)
					})
				})
			}
		}
	}
}

// TestTakenApartWhereRequestsMustBeApart: requests that follow each other too closely are answered with 503, as by
// nginx's limit_req without a burst. A batch with a bad sample is divided all the same.
func TestTakenApartWhereRequestsMustBeApart(t *testing.T) {
	const series = 40
	for _, refuseEmpty := range []bool{false, true} {
		for _, apart := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprintf("refuses empty writes=%t/%v apart", refuseEmpty, apart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to := &fakeReceiver{refuseEmpty: refuseEmpty, latency: 10 * time.Millisecond}
					r := newRig(t, to)
					bad := smp{}
					to.poison = func(s smp) bool { return s == bad }
					var last time.Time
					to.script = func(q fakeRequest) (client.Answer, bool) {
						if q.at.Sub(last) < apart {
							return client.Answer{Status: 503, Text: "slow down"}, true
						}
						last = q.at
						return client.Answer{}, false
					}
					r.start()
					r.round(series)
					r.drained(time.Hour)
					bad = smp{"m0005", r.time + 1000, float64(r.time+1000) + 5}
					r.round(series)
					r.drained(time.Hour)
					r.end()
					if o := r.log.outcome(); o.GivenUp() != 1 {
						t.Errorf("%d requests; outcomes %+v, want one lost", to.count(), o)
					}
					r.verify(bad)
					t.Logf("%d requests", to.count())
				})
			})
		}
	}
}

// TestTooLargeWhereRequestsMustBeApart: the same holds for a single sample that is too large.
func TestTooLargeWhereRequestsMustBeApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{latency: 10 * time.Millisecond}
		r := newRig(t, to)
		large, last := smp{}, time.Time{}
		to.script = func(q fakeRequest) (client.Answer, bool) {
			if q.at.Sub(last) < 100*time.Millisecond {
				return client.Answer{Status: 503, Text: "slow down"}, true
			}
			last = q.at
			return client.Answer{Status: 413}, slices.Contains(q.samples, large)
		}
		r.start()
		r.round(4)
		r.drained(time.Hour)
		large = smp{"m0002", r.time + 1000, float64(r.time+1000) + 2}
		r.round(4)
		r.drained(time.Hour)
		r.end()
		if o := r.log.outcome(); o.GivenUp() != 1 {
			t.Errorf("outcomes %+v, want one lost", o)
		}
		r.verify(large)
	})
}
