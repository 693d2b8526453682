package remotewrite

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/replay"
	"hwsagent/remotewrite/wire"
)

// TestReplayBusyReceiverKeeps20: a receiver of 2.0 that answers 429 to a replay gets no request of 1.0.
func TestReplayBusyReceiverKeeps20(t *testing.T) {
	for _, after := range []time.Duration{150 * time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			until := time.Now().Add(150 * time.Second)
			to := &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) {
				return client.Answer{Status: 429, Text: "ingestion rate limit", RetryAfter: after}, time.Now().Before(until)
			}}
			r := newReplayRig(t, 50, 20, to)
			r.o.Config.ProtobufMessage = "io.prometheus.write.v2.Request"
			c, err := r.run(t.Context(), 0)
			for _, q := range to.log() {
				if q.version == wire.V1 {
					t.Fatalf("after %s: sent as 1.0 %s after the start, to a receiver of 2.0 that is only busy; %+v, %v", after, q.at.Sub(until.Add(-150*time.Second)), c, err)
				}
			}
		})
	}
}

// TestReplaySaysWhyTheFirstSampleIsRefused: a receiver that accepts 2.0 only refuses the first sample. The replay names that reason, not that
// of the attempt with 1.0.
func TestReplaySaysWhyTheFirstSampleIsRefused(t *testing.T) {
	to := &fakeReceiver{speaks: speaksTwo, hidesWritten: true, poison: func(s smp) bool { return true }}
	r := newReplayRig(t, 50, 20, to)
	r.o.Config.ProtobufMessage = "io.prometheus.write.v2.Request"
	_, err := r.run(t.Context(), 0)
	var stopped *replay.Error
	if !errors.As(err, &stopped) || !stopped.First || stopped.Answer.Status != 400 {
		t.Errorf("the replay says: %v", err)
	}
}

// TestReplayPassesARefusedSeries: one refused series of ten does not end a replay, also where a commit has several samples of each series, or a
// request may have one sample only.
func TestReplayPassesARefusedSeries(t *testing.T) {
	for _, limit := range []int{100, 1} {
		to := &fakeReceiver{poison: func(s smp) bool { return s.series == "s3" }}
		r := newReplayRig(t, 0, 0, to)
		r.o.Config.Queue.MaxSamplesPerSend = limit
		for i := range int64(20) {
			var all []smp
			for k := range 10 {
				for n := range int64(5) {
					all = append(all, smp{fmt.Sprintf("s%d", k), 1 + i*1000 + n*100, float64(i)})
				}
			}
			r.log.append(all...)
		}
		after, total := uint64(0), uint64(0)
		for range 10 {
			c, err := r.run(t.Context(), after)
			total += c.Delivered
			if err == nil {
				break
			}
			after = c.Done
			t.Errorf("limit %d: it ends after %d of 900 good samples, to be continued after commit %d: %v", limit, total, c.Done, err)
		}
		r.has(900)
	}
}
