package remotewrite

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestBurstLimit: a receiver answers 429 to each request of more than 300 samples. The third 429 in a row halves the batch, so all samples
// arrive, and the following requests have no more than the half that was taken.
func TestBurstLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{script: func(q fakeRequest) (client.Answer, bool) {
			return client.Answer{Status: 429, Text: "the request exceeds the burst size"}, len(q.samples) > 300
		}})
		r.round(2000)
		r.start()
		r.drained(time.Minute)
		r.end()
		r.everySampleIsStored()
		var sizes []int
		for _, q := range r.to.log()[:7] {
			sizes = append(sizes, len(q.samples))
		}
		if want := []int{2000, 2000, 2000, 1000, 1000, 1000, 500}; !slices.Equal(sizes, want) {
			t.Errorf("requests of %v samples, want %v", sizes, want)
		}
		if n := r.to.count(); n > 30 {
			t.Errorf("%d requests\n%s", n, r.to.dump())
		}
	})
}
