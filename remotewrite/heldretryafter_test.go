package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestRetryAfterWhileHeld: a Retry-After counts for a held target, too.
func TestRetryAfterWhileHeld(t *testing.T) {
	for _, before := range []int{400, 403, 302} {
		for _, then := range []int{429, 503} {
			t.Run(fmt.Sprint(before, then), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := client.Answer{Status: 204}
					r := newRig(t, &fakeReceiver{latency: time.Millisecond, script: func(fakeRequest) (client.Answer, bool) { return a, a.Status != 204 }})
					r.start()
					for range 3 {
						r.round(10)
						time.Sleep(5 * time.Second)
					}
					r.to.set(func() { a = client.Answer{Status: before, Text: "no"} })
					r.round(10)
					r.until("held", time.Minute, func() bool { return r.q.Status().State == StateHeld })
					r.to.set(func() { a = client.Answer{Status: then, RetryAfter: 5 * time.Minute} })
					n := r.to.count()
					r.until("asked to wait", 5*time.Minute, func() bool { return r.to.count() > n })
					n = r.to.count()
					time.Sleep(5*time.Minute - time.Second)
					if got := r.to.count() - n; got > 0 {
						t.Errorf("%d requests in the five minutes in which the receiver wanted none", got)
					}
					r.end()
				})
			})
		}
	}
}
