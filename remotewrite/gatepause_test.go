package remotewrite

import (
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestCredentialsDoNotEndRetryAfter: new credentials end a hold and a pause, but not a pause that the receiver asked
// for; a user's poke ends all of them.
func TestCredentialsDoNotEndRetryAfter(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer client.Answer
		poke   func(*Queue)
		most   time.Duration // until the next request
		least  time.Duration
	}{
		{"429 with Retry-After, credentials", client.Answer{Status: 429, RetryAfter: time.Minute}, (*Queue).CredentialsChanged, 75 * time.Second, 50 * time.Second},
		{"429 with Retry-After, poke", client.Answer{Status: 429, RetryAfter: time.Minute}, (*Queue).Poke, time.Second, 0},
		{"503, credentials", client.Answer{Status: 503}, (*Queue).CredentialsChanged, time.Second, 0},
		{"401, credentials", client.Answer{Status: 401}, (*Queue).CredentialsChanged, time.Second, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ill := true
				r := newRig(t, &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) { return tc.answer, ill }})
				r.start()
				r.round(10)
				r.until("the first request", time.Minute, func() bool { return r.to.count() > 0 })
				time.Sleep(time.Millisecond)
				r.to.set(func() { ill = false })
				asked := time.Now()
				tc.poke(r.q)
				r.drained(2 * time.Minute)
				if took := time.Since(asked); took < tc.least || took > tc.most {
					t.Errorf("the next request came after %s", took)
				}
				r.end()
			})
		})
	}
}
