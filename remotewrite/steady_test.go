package remotewrite

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// treadmill is a Source that yields the same commit again and again on demand, with later times. It does not allocate,
// so that only the queue's allocations are counted.
type treadmill struct {
	entry wal.Entry
	step  chan struct{}
	acked atomic.Pointer[wal.Mark]
	done  chan struct{} // gets a token when everything that was handed out is acknowledged
}

func newTreadmill(series int) *treadmill {
	m := &treadmill{step: make(chan struct{}), done: make(chan struct{}, 1)}
	m.acked.Store(&wal.Mark{})
	for i, s := range testSeries(series) {
		about := &wal.About{Meta: metadata.Metadata{Type: "counter", Help: "Bytes written to " + s.from.Name() + " since the start."}}
		s.from = wal.NewSeries(s.from.Slot(), s.from.Labels(), about)
		m.entry.Samples = append(m.entry.Samples, wal.Sample{Series: s.from, T: 1_790_000_000_000, V: float64(i)})
	}
	return m
}

func (m *treadmill) Next(ctx context.Context) (*wal.Entry, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-m.step:
	}
	e := &m.entry
	e.End = markAt(e.End.Commit+1, e.End.Total+e.Count())
	for i := range e.Samples {
		e.Samples[i].T += 15_000
		e.Samples[i].V += 3
	}
	e.MinT, e.MaxT = e.Samples[0].T, e.Samples[0].T
	return e, nil
}

func (m *treadmill) Rewind()                {}
func (m *treadmill) Release()               {}
func (m *treadmill) Reserve(wal.Mark) error { return nil }
func (m *treadmill) Head() wal.Mark         { return *m.acked.Load() }

func (m *treadmill) Reach() (queue.Reach, bool) { return queue.Reach{Acked: *m.acked.Load()}, true }

func (m *treadmill) Advance(to wal.Mark, _ queue.Outcome) {
	m.acked.Store(&to)
	m.done <- struct{}{}
}

// yes answers every request with 204, and says that it wrote everything.
type yes struct{ bytes, requests atomic.Int64 }

func (s *yes) Send(_ context.Context, r client.Request) client.Answer {
	s.bytes.Add(int64(len(r.Body)))
	s.requests.Add(1)
	return client.Answer{Status: 204, Written: client.Written{Known: r.Version == wire.V2, Samples: uint64(r.Samples)}}
}

// runTreadmill starts a queue that reads a treadmill. turn has it deliver one commit.
func runTreadmill(tb testing.TB, message string, series int) (_ *yes, turn func()) {
	m, to := newTreadmill(series), &yes{}
	cfg := config.DefaultConfig()
	cfg.Queue.MaxShards, cfg.ProtobufMessage = 1, message
	q, err := New(Options{Name: "steady", Config: cfg, Source: m, Sender: to})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); q.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		<-ended
	})
	return to, func() {
		m.step <- struct{}{}
		<-m.done
	}
}

// BenchmarkQueue measures a commit's way through relabelling cache, window, shard and encoder.
func BenchmarkQueue(b *testing.B) {
	for _, message := range []string{config.MessageV1, config.MessageV2} {
		b.Run(message, func(b *testing.B) {
			const series = 10_000
			to, turn := runTreadmill(b, message, series)
			turn()
			bytes := to.bytes.Load()
			b.ReportAllocs()
			for b.Loop() {
				turn()
			}
			perSample(b, series, int(to.bytes.Load()-bytes)/b.N)
		})
	}
}

// TestSteadyStateAllocatesNothing: the queue allocates per commit and per request, but not per sample.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, message := range []string{config.MessageV1, config.MessageV2} {
		t.Run(message, func(t *testing.T) { steady(t, message) })
	}
}

func steady(t *testing.T, message string) {
	const series, runs = 50_000, 20
	most := config.DefaultConfig().Queue.MaxSamplesPerSend
	to, turn := runTreadmill(t, message, series)
	for range 10 {
		turn()
	}
	before := to.requests.Load()
	n := testing.AllocsPerRun(runs, turn)
	if got, want := to.requests.Load()-before, int64(series/most*(runs+1)); got != want {
		t.Errorf("%d requests, want %d", got, want)
	}
	if n > series/200 {
		t.Errorf("delivering a commit of %d samples allocates %.0f times", series, n)
	}
}
