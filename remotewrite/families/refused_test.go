package families

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/metrics"
)

// TestOneRefusedFamilyKeepsNoOtherBack: a receiver that refuses the metadata of one family gets those of all others outside its request.
func TestOneRefusedFamilyKeepsNoOtherBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		has := map[string]bool{}
		m := New(config.MetadataConfig{Send: true, SendInterval: model.Duration(time.Minute), MaxSamplesPerSend: 10},
			func(_ context.Context, r client.Request) client.Answer {
				var names []string
				for _, x := range decode(t, r.Body).Metadata {
					names = append(names, x.MetricFamilyName)
				}
				if slices.Contains(names, "m0003") {
					return client.Answer{Status: 400, Text: "help too long: m0003"}
				}
				for _, n := range names {
					has[n] = true
				}
				return client.Answer{Status: 204}
			}, openGate(), metrics.Unregistered("a", "u"))
		stop := start(m)
		defer stop()
		c := gauges(100)
		for range 60 {
			m.Offer(time.Now(), c)
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if len(has) < 90 {
			t.Errorf("after an hour the receiver has the metadata of %d families of 100; it refuses one", len(has))
		}
	})
}
