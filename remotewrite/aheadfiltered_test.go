package remotewrite

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
)

// TestFilteredSampleAheadHoldsNothing: a sample that the target never sends, because write_relabel_configs or the tenant exclude it, does not
// make the target wait for the receiver's clock.
func TestFilteredSampleAheadHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{latency: time.Millisecond}
		r := newRig(t, to).timed()
		r.cfg.WriteRelabelConfigs = []*relabel.Config{{
			SourceLabels: model.LabelNames{"__name__"}, Regex: relabel.MustNewRegexp("other.*"), Action: relabel.Drop, NameValidationScheme: config.NameValidation,
		}}
		r.sender = senderFunc(func(ctx context.Context, q client.Request) client.Answer {
			a := to.Send(ctx, q)
			a.Date = time.Now().Add(-5 * time.Minute) // within future_limit
			return a
		})
		r.start()
		held := 0
		for range 360 { // half an hour
			now := time.Now().UnixMilli()
			r.log.append(smp{"mine", now, 1}, smp{"other", now + (9 * time.Minute).Milliseconds(), 2})
			time.Sleep(5 * time.Second)
			if r.q.Status().State == StateHeld {
				held++
			}
		}
		if n := r.log.pending(); n > 10 || held > 0 {
			t.Errorf("%d samples wait at the end, and the target was held in %d of 360 rounds: %+v", n, held, r.q.Status())
		}
		r.end()
	})
}
