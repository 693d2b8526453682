package remotewrite

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

func TestQueueDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{latency: 10 * time.Millisecond})
		r.start()
		for range 20 {
			r.round(100)
			time.Sleep(time.Second)
		}
		r.drained(5 * time.Second)
		r.end()
		r.verify()
		if n := r.to.again; n != 0 {
			t.Errorf("%d samples were sent again", n)
		}
		if n := r.log.syncs; n > 21 {
			t.Errorf("%d reservations in 20 s, want at most one a second", n)
		}
		if s := r.q.Status(); s.State != StateOK || s.Sent != 2000 {
			t.Errorf("status %+v", s)
		}
	})
}

// The commits of one request are settled by one record.
func TestRequestOfSeveralCommitsIsOneRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{latency: 10 * time.Millisecond})
		for n := range 5 { // a window holds one sample of a series
			var all []smp
			for i := range 20 {
				all = append(all, smp{fmt.Sprintf("m%d_%d", n, i), r.time, float64(i)})
			}
			r.log.append(all...)
		}
		r.start()
		r.drained(5 * time.Second)
		r.end()
		r.verify()
		if n := len(r.to.requests); n >= 5 || r.log.records > n {
			t.Errorf("five commits in %d requests, settled by %d records", n, r.log.records)
		}
	})
}

// A network outage: nothing is lost, pauses grow and keep to their bounds.
func TestQueueOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(90 * time.Second)
		fired := 0
		r := newRig(t, &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) {
			if time.Now().Before(up) {
				fired++
				return client.Answer{Err: errDown}, true
			}
			return client.Answer{}, false
		}})
		r.start()
		for range 120 {
			r.round(50)
			time.Sleep(time.Second)
		}
		r.drained(5 * time.Second)
		r.end()
		r.verify()
		if fired < 10 {
			t.Errorf("%d requests failed: the outage did not happen", fired)
		}
		var first time.Time
		var before time.Duration
		last := r.to.requests[0].at
		for _, q := range r.to.requests[1:] {
			if q.status != 0 {
				first = q.at
				break
			}
			gap := q.at.Sub(last)
			if gap < before*8/10 || gap > 5*time.Second+50*time.Millisecond {
				t.Errorf("a gap of %v after one of %v", gap, before)
			}
			before, last = gap, q.at
		}
		if d := first.Sub(up); d > 5*time.Second {
			t.Errorf("first delivery %v after the outage", d)
		}
	})
}

var errDown = errors.New("connection refused")

// cut is a connection that ended after the request was sent: the samples may be why, and may be stored.
var cut = client.Answer{Err: errors.New("connection reset"), Failure: client.Failure{Kind: client.Cut}}
