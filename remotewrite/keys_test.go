package remotewrite

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// keyObservation holds what a receiver saw of a queue with some configuration.
type keyObservation struct {
	mu       sync.Mutex
	at       []time.Time // of requests with samples, as they came
	sizes    []int
	flying   int // requests at this moment
	most     int // ever
	requests []*prompb.WriteRequest

	requests2 []*writev2.Request
}

// throughQueue runs a queue with the entry against answer for the given time, and returns the requests and the queue's
// outcome. fill appends to the log before the start.
func throughQueue(t *testing.T, keys string, fill func(*memLog), answer func(n int) client.Answer, takes, length time.Duration) (*keyObservation, queue.Outcome, Status) {
	t.Helper()
	if !strings.Contains(keys, "hwsagent:") {
		keys += "\nhwsagent: {future_limit: 0s}"
	}
	cfg := mustLoad(t, "url: http://h.example/\n"+keys)
	log, o := newMemLog(t), &keyObservation{}
	fill(log)
	send := senderFunc(func(ctx context.Context, r client.Request) client.Answer {
		n := 0
		o.mu.Lock()
		seen := len(o.at)
		if r.Version == wire.V2 {
			req := decodeRequest2(t, r.Body)
			for _, ts := range req.Timeseries {
				n += len(ts.Samples) + len(ts.Histograms)
			}
			o.requests2 = append(o.requests2, req)
		} else {
			req := decode(t, r.Body)
			for _, ts := range req.Timeseries {
				n += len(ts.Samples) + len(ts.Histograms)
			}
			o.requests = append(o.requests, req)
		}
		if n > 0 {
			o.at, o.sizes = append(o.at, time.Now()), append(o.sizes, n)
		}
		o.flying++
		o.most = max(o.most, o.flying)
		o.mu.Unlock()
		defer func() {
			o.mu.Lock()
			o.flying--
			o.mu.Unlock()
		}()
		if gate.Sleep(ctx, takes) != nil {
			return client.Answer{Err: ctx.Err()}
		}
		if n == 0 {
			return client.Answer{Status: 204}
		}
		return answer(seen)
	})
	q, err := New(Options{Name: "test", Config: *cfg, Source: log, Sender: send, DeadLetters: &memLetters{}, Rand: func() float64 { return 0.5 }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); q.Run(ctx) }()
	time.Sleep(length)
	synctest.Wait()
	s := q.Status()
	cancel()
	<-done
	return o, log.outcome(), s
}

// secondsOf appends n rounds of samples of some series.
func secondsOf(n, series int) func(*memLog) {
	return func(m *memLog) {
		start := time.Now().Add(-time.Duration(n) * time.Second)
		for i := range n {
			var ss []smp
			for j := range series {
				ss = append(ss, smp{fmt.Sprint("m", j), start.Add(time.Duration(i) * time.Second).UnixMilli(), float64(i)})
			}
			m.append(ss...)
		}
	}
}

func alwaysStatus(status int) func(int) client.Answer {
	return func(int) client.Answer { return client.Answer{Status: status} }
}

// TestQueueConfigKeys: every key of queue_config has an effect: the same quantity is measured with two values of the
// key.
func TestQueueConfigKeys(t *testing.T) {
	gap := func(o *keyObservation, i int) time.Duration { return o.at[i+1].Sub(o.at[i]) }
	for _, tc := range []struct {
		key    string // with its two values
		values [2]string
		run    func(t *testing.T, keys string) float64
		want   [2][2]float64 // bounds of the measured quantity
	}{{
		key: "capacity", values: [2]string{"500", "2000"},
		run: func(t *testing.T, keys string) float64 { // samples in memory while requests hang
			_, _, s := throughQueue(t, keys, newSeriesOf(100, 100), alwaysStatus(200), time.Hour, 5*time.Second)
			return float64(s.Window)
		},
		want: [2][2]float64{{500, 600}, {2000, 2100}},
	}, {
		key: "max_shards", values: [2]string{"1", "4"},
		run: func(t *testing.T, keys string) float64 { // requests at once while far behind
			o, _, _ := throughQueue(t, keys, secondsOf(2000, 500), alwaysStatus(200), time.Second, 60*time.Second)
			return float64(o.most)
		},
		want: [2][2]float64{{1, 1}, {4, 4}},
	}, {
		key: "min_shards", values: [2]string{"1", "4"},
		run: func(t *testing.T, keys string) float64 { // requests at once, nothing being behind
			o, _, _ := throughQueue(t, keys, secondsOf(10, 100), alwaysStatus(200), 300*time.Millisecond, 30*time.Second)
			return float64(o.most)
		},
		want: [2][2]float64{{1, 1}, {2, 4}},
	}, {
		key: "max_samples_per_send", values: [2]string{"50", "700"},
		run: func(t *testing.T, keys string) float64 { // the largest request
			o, _, _ := throughQueue(t, keys, secondsOf(50, 100), alwaysStatus(200), 0, 20*time.Second)
			most := 0
			for _, n := range o.sizes {
				most = max(most, n)
			}
			return float64(most)
		},
		want: [2][2]float64{{50, 50}, {650, 700}},
	}, {
		key: "batch_send_deadline", values: [2]string{"2s", "60s"},
		run: func(t *testing.T, keys string) float64 { // how long a lone sample waits
			begin := time.Now()
			o, _, _ := throughQueue(t, keys, secondsOf(1, 1), alwaysStatus(200), 0, 90*time.Second)
			return o.at[0].Sub(begin).Seconds()
		},
		want: [2][2]float64{{2, 2.1}, {60, 60.1}},
	}, {
		key: "min_backoff", values: [2]string{"100ms", "4s"},
		run: func(t *testing.T, keys string) float64 { // from the first failure to the next attempt
			o, _, _ := throughQueue(t, keys, secondsOf(1, 1), alwaysStatus(503), 0, 20*time.Second)
			return gap(o, 0).Seconds()
		},
		want: [2][2]float64{{0.1, 0.2}, {4, 5}},
	}, {
		key: "max_backoff", values: [2]string{"1s", "10s"},
		run: func(t *testing.T, keys string) float64 { // between attempts, after many failures
			longest := 0.0
			o, _, _ := throughQueue(t, keys, secondsOf(1, 1), func(int) client.Answer { return client.Answer{Status: 429} }, 0, 2*time.Minute)
			for i := range len(o.at) - 1 {
				longest = max(longest, gap(o, i).Seconds())
			}
			return longest
		},
		want: [2][2]float64{{0.8, 1}, {8, 10}},
	}, {
		key: "retry_on_http_429", values: [2]string{"true", "false"},
		run: func(t *testing.T, keys string) float64 { // samples dropped for one 429
			_, o, _ := throughQueue(t, keys, secondsOf(1, 10), func(n int) client.Answer {
				if n == 0 {
					return client.Answer{Status: 429, Text: "slow down"}
				}
				return client.Answer{Status: 200}
			}, 0, time.Minute)
			if o.Sum() != 10 {
				t.Errorf("outcome %+v", o)
			}
			return float64(o.Dropped[queue.Rejected])
		},
		want: [2][2]float64{{0, 0}, {10, 10}},
	}, {
		key: "sample_age_limit", values: [2]string{"0s", "30s"},
		run: func(t *testing.T, keys string) float64 { // of a sample of each of the last 100 seconds
			_, o, _ := throughQueue(t, keys, secondsOf(100, 1), alwaysStatus(200), 0, 20*time.Second)
			if o.Sum() != 100 {
				t.Errorf("outcome %+v", o)
			}
			return float64(o.Dropped[queue.TooOld])
		},
		want: [2][2]float64{{0, 0}, {65, 76}},
	}} {
		t.Run(tc.key, func(t *testing.T) {
			for i, v := range tc.values {
				synctest.Test(t, func(t *testing.T) {
					keys := fmt.Sprintf("queue_config: {%s: %s}", tc.key, v)
					if tc.key == "max_samples_per_send" {
						keys = fmt.Sprintf("queue_config: {%s: %s, batch_send_deadline: 1s}", tc.key, v)
					}
					if got := tc.run(t, keys); math.IsNaN(got) || got < tc.want[i][0] || got > tc.want[i][1] {
						t.Errorf("%s: %s gives %v, want within %v", tc.key, v, got, tc.want[i])
					}
				})
			}
		})
	}
}

// TestSendKindsKeys: without send_exemplars no exemplars are sent, and without send_native_histograms histograms count
// as unsupported; custom buckets always do.
func TestSendKindsKeys(t *testing.T) {
	fill := func(m *memLog) {
		s := wal.NewSeries(0, labels.FromStrings("__name__", "h"), nil)
		now := time.Now().UnixMilli()
		m.entries = append(m.entries, &wal.Entry{
			End: markAt(1, 4), MinT: now, MaxT: now + 3,
			Samples: []wal.Sample{{Series: s, T: now, V: 1}},
			Histograms: []wal.Histogram{
				{Series: s, T: now + 1, H: &histogram.Histogram{Schema: 1, Count: 1, PositiveSpans: []histogram.Span{{Length: 1}}, PositiveBuckets: []int64{1}}},
				{Series: s, T: now + 2, FH: &histogram.FloatHistogram{Schema: 1, Count: 1, PositiveSpans: []histogram.Span{{Length: 1}}, PositiveBuckets: []float64{1}}},
				{Series: s, T: now + 3, H: &histogram.Histogram{Schema: histogram.CustomBucketsSchema, Count: 1, CustomValues: []float64{1}}},
			},
			Exemplars: []wal.Exemplar{{Series: s, T: now, V: 1, Labels: labels.FromStrings("trace_id", "x")}},
		})
	}
	for _, tc := range []struct {
		keys                           string
		floats, histograms, exemplars  int
		delivered, unsupportedByLedger uint64
	}{
		{"", 1, 0, 0, 1, 3},
		{"send_native_histograms: true", 1, 2, 0, 3, 1},
		{"send_exemplars: true", 1, 0, 1, 1, 3},
		{"send_exemplars: true\nsend_native_histograms: true", 1, 2, 1, 3, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			got, o, _ := throughQueue(t, tc.keys, fill, alwaysStatus(200), 0, 20*time.Second)
			floats, histograms, exemplars := 0, 0, 0
			for _, r := range got.requests {
				for _, ts := range r.Timeseries {
					floats, histograms, exemplars = floats+len(ts.Samples), histograms+len(ts.Histograms), exemplars+len(ts.Exemplars)
				}
			}
			if floats != tc.floats || histograms != tc.histograms || exemplars != tc.exemplars {
				t.Errorf("%q: %d floats, %d histograms, %d exemplars", tc.keys, floats, histograms, exemplars)
			}
			if o.Delivered != tc.delivered || o.Dropped[queue.Unsupported] != tc.unsupportedByLedger || o.Sum() != 4 {
				t.Errorf("%q: %+v", tc.keys, o)
			}
		})
	}
}

// newSeriesOf fills a log with commits that have no series in common: a window holds one sample of a series.
func newSeriesOf(commits, each int) func(*memLog) {
	return func(m *memLog) {
		for c := range commits {
			var all []smp
			for i := range each {
				all = append(all, smp{fmt.Sprintf("n%d_%d", c, i), time.Now().UnixMilli(), float64(i)})
			}
			m.append(all...)
		}
	}
}
