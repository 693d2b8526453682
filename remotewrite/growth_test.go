package remotewrite

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// behind runs a queue that has a backlog for so long, and returns how many samples it
// delivered and the numbers of shards it had.
func behind(t *testing.T, to *fakeReceiver, took time.Duration) (sent uint64, went []int) {
	t.Helper()
	r := newRig(t, to).old()
	r.cfg.Queue.MaxSamplesPerSend, r.cfg.Queue.Capacity = 20, 100
	for range 500 {
		r.round(200)
	}
	r.start()
	for end := time.Now().Add(took); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		s := r.q.Status()
		if len(went) == 0 || went[len(went)-1] != s.Shards {
			went = append(went, s.Shards)
		}
		if s.State != StateBehind && s.Sent > 0 {
			t.Fatalf("not behind: %+v", s)
		}
	}
	sent = r.q.Status().Sent
	r.end()
	r.verify()
	return sent, went
}

// TestShardsGrowAgainstLatency: a distant receiver gets more concurrent requests, which delivers the backlog faster.
func TestShardsGrowAgainstLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, went := behind(t, &fakeReceiver{latency: 100 * time.Millisecond, anyOrder: true}, 30*time.Second)
		if want := []int{1, 2, 4, 8, 16}; !slices.Equal(went, want) {
			t.Errorf("shards went %v, want %v", went, want)
		}
		if one := uint64(30 * 10 * 20); sent < 5*one {
			t.Errorf("%d samples delivered, want at least 5 times the %d that one shard delivers", sent, one)
		}
	})
}

// TestShardsDoNotGrowForNothing: a receiver with a limited rate gets no useless shards: twice the number is tried, and
// given up again.
func TestShardsDoNotGrowForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{}
		var free time.Time // when it has finished the requests so far
		to.pace = func(now time.Time) time.Duration {
			if free.Before(now) {
				free = now
			}
			free = free.Add(50 * time.Millisecond)
			return free.Sub(now)
		}
		sent, went := behind(t, to, 4*time.Minute)
		if want := []int{1, 2, 1}; !slices.Equal(went, want) {
			t.Errorf("shards went %v, want %v", went, want)
		}
		if all := uint64(240 * 20 * 20); sent < all*95/100 {
			t.Errorf("%d samples delivered of the %d that the receiver takes", sent, all)
		}
	})
}
