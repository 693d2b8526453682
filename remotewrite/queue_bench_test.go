package remotewrite

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// sink takes everything.
type sink struct{ bytes int }

func (s *sink) Send(_ context.Context, r client.Request) client.Answer {
	s.bytes += len(r.Body)
	return client.Answer{Status: 204}
}

// endless yields the same entry, with new times, until enough samples were acknowledged.
type endless struct {
	entry wal.Entry
	head  wal.Mark
	acked wal.Mark
	upTo  uint64
	done  func()
}

func (e *endless) Next(ctx context.Context) (*wal.Entry, error) {
	if e.head.Total >= e.upTo {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	e.head.Commit++
	e.head.Total += uint64(len(e.entry.Samples))
	for i := range e.entry.Samples {
		e.entry.Samples[i].T += 5000
	}
	e.entry.End = e.head
	return &e.entry, nil
}

func (e *endless) Rewind()                    {}
func (e *endless) Release()                   {}
func (e *endless) Reserve(wal.Mark) error     { return nil }
func (e *endless) Reach() (queue.Reach, bool) { return queue.Reach{}, true }
func (e *endless) Head() wal.Mark             { return wal.Mark{Commit: math.MaxUint64, Total: e.upTo} } // a backlog
func (e *endless) Advance(to wal.Mark, _ queue.Outcome) {
	if e.acked = to; to.Total >= e.upTo {
		e.done()
	}
}

// BenchmarkQueueDrain measures the whole path from the log's entry to the encoded request, per sample: it must not
// allocate per sample.
func BenchmarkQueueDrain(b *testing.B) {
	for _, series := range []int{500, 10_000} {
		b.Run(fmt.Sprintf("series=%d", series), func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			src := &endless{upTo: uint64(b.N), done: cancel}
			for i := range series {
				ls := labels.FromStrings("__name__", "node_cpu_seconds_total", "cpu", fmt.Sprint(i), "mode", "idle", "instance", "host1:9100", "job", "node")
				src.entry.Samples = append(src.entry.Samples, wal.Sample{Series: wal.NewSeries(i, ls, nil), T: 1_700_000_000_000, V: float64(i)})
			}
			to := &sink{}
			q, err := New(Options{Name: "bench", Config: config.DefaultConfig(), Source: src, Sender: to})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			q.Run(ctx)
			b.ReportMetric(float64(to.bytes)/float64(src.acked.Total), "wirebytes/sample")
		})
	}
}
