package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/remotewrite"
	"hwsagent/remotewrite/client"
	remoteconfig "hwsagent/remotewrite/config"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// path is the whole way of a sample but the network: appender, log on disk, reader,
// queue, encoder, and a sender that answers 204 at once.
type path struct {
	log      *wal.Log
	targets  []*countingSource
	sender   *discard
	encoders *remotewrite.EncoderPool // of all targets, as in the agent
	series   []seriesOf
	refs     []storage.SeriesRef
	rand     *rand.Rand
	t        int64
	total    uint64 // samples appended
}

func newPath(tb testing.TB, series int) *path {
	tb.Helper()
	dir := tb.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	log, err := wal.Open(wal.Options{Dir: dir, Settings: wal.Settings{MaxBytes: 1 << 30}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := log.Close(); err != nil {
			tb.Error(err)
		}
	})
	p := &path{
		log: log, sender: &discard{}, encoders: remotewrite.NewEncoderPool(),
		series: realisticSeries(series), refs: make([]storage.SeriesRef, series),
		rand: rand.New(rand.NewPCG(1, 2)), t: 1_790_000_000_000,
	}
	p.target(tb, "bench")
	return p
}

// target adds a target.
func (p *path) target(tb testing.TB, name string) {
	tb.Helper()
	reader, err := p.log.Reader(name, wal.ReaderOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	source := &countingSource{Reader: reader, reached: make(chan struct{}, 1)}
	p.targets = append(p.targets, source)
	cfg := remoteconfig.DefaultConfig()
	cfg.Queue.MaxShards = 1                                             // one: the others would be added, or not, by the clock
	cfg.Queue.BatchSendDeadline = model.Duration(50 * time.Millisecond) // of what is left at the end
	queue, err := remotewrite.New(remotewrite.Options{
		Name: name, Config: cfg, ExternalLabels: labels.FromStrings("site", "fra1"), Source: source, Sender: p.sender,
		Encoders: p.encoders,
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); queue.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		<-done
		if err := reader.Close(); err != nil {
			tb.Error(err)
		}
	})
}

// round appends one sample of each series, as probes do, in one commit.
func (p *path) round(tb testing.TB) {
	p.t += 15_000
	app := p.log.AppenderV2(context.Background())
	for i := range p.series {
		s := &p.series[i]
		ref, err := app.Append(p.refs[i], s.labels, 0, p.t, s.next(p.rand), nil, nil,
			storage.AppendV2Options{Metadata: s.meta, MetricFamilyName: s.family})
		if err != nil {
			tb.Fatal(err)
		}
		p.refs[i] = ref
	}
	if err := app.Commit(); err != nil {
		tb.Fatal(err)
	}
	p.total += uint64(len(p.series))
}

// delivered waits until everything that was appended has its outcome at all targets.
func (p *path) delivered() {
	for _, s := range p.targets {
		s.goal.Store(p.total)
		for sp := s.Savepoint(); sp.Acked().Total < p.total; sp = s.Savepoint() {
			<-s.reached
		}
	}
}

// countingSource tells when the savepoint reaches a goal.
type countingSource struct {
	*wal.Reader
	goal    atomic.Uint64
	reached chan struct{}
}

func (s *countingSource) Advance(to wal.Mark, o queue.Outcome) {
	s.Reader.Advance(to, o)
	if to.Total >= s.goal.Load() {
		select {
		case s.reached <- struct{}{}:
		default:
		}
	}
}

// discard answers every request with 204. While it is locked the receiver is slow.
type discard struct {
	slow     sync.RWMutex
	bytes    atomic.Int64
	requests atomic.Int64
}

func (d *discard) Send(_ context.Context, r client.Request) client.Answer {
	d.slow.RLock()
	defer d.slow.RUnlock()
	d.bytes.Add(int64(len(r.Body)))
	d.requests.Add(1)
	return client.Answer{Status: 204}
}

// seriesOf is one series of a host, whose value moves as such a metric's does.
type seriesOf struct {
	labels labels.Labels
	meta   metadata.Metadata
	family string
	value  float64
	step   float64 // a counter's mean growth; 0 for a gauge, which seldom moves
}

func (s *seriesOf) next(r *rand.Rand) float64 {
	switch {
	case s.step > 0:
		s.value += float64(r.IntN(int(2 * s.step)))
	case r.IntN(4) == 0:
		s.value = float64(r.IntN(100_000)) / 1000
	}
	return s.value
}

// realisticSeries are n series as some hosts of 1,000 each have them.
func realisticSeries(n int) []seriesOf {
	families := []struct {
		name, help, label, value string
		count                    int
		step                     float64
	}{
		{"node_cpu_seconds_total", "Seconds the CPUs spent in each mode.", "cpu", "%d", 128, 0},
		{"node_disk_written_bytes_total", "The total number of bytes written successfully.", "device", "nvme%dn1", 24, 1e6},
		{"node_disk_reads_completed_total", "The total number of reads completed successfully.", "device", "nvme%dn1", 24, 500},
		{"node_filesystem_avail_bytes", "Filesystem space available to non-root users in bytes.", "mountpoint", "/srv/data/%d", 40, 0},
		{"node_network_receive_bytes_total", "Network device statistic receive_bytes.", "device", "eth%d", 60, 1e6},
		{"node_network_transmit_packets_total", "Network device statistic transmit_packets.", "device", "eth%d", 60, 5000},
		{"node_hwmon_temp_celsius", "Hardware monitor for temperature (input)", "sensor", "temp%d", 80, 0},
		{"ipmi_fan_speed_rpm", "Fan speed in rotations per minute.", "name", "Fan %dA", 32, 0},
		{"ifHCInOctets", "The total number of octets received on the interface - 1.3.6.1.2.1.31.1.1.1.6", "ifName", "GigabitEthernet1/0/%d", 96, 1e6},
		{"node_interrupts_total", "Interrupt details.", "type", "%d", 200, 3000},
	}
	var out []seriesOf
	for host := 0; ; host++ {
		for _, f := range families {
			typ := model.MetricTypeGauge
			if f.step > 0 {
				typ = model.MetricTypeCounter
			}
			for i := range f.count {
				if len(out) == n {
					return out
				}
				out = append(out, seriesOf{
					labels: labels.FromStrings(model.MetricNameLabel, f.name, f.label, fmt.Sprintf(f.value, i),
						"instance", fmt.Sprintf("host-%04d.example.com", host), "job", "host"),
					meta: metadata.Metadata{Type: typ, Help: f.help}, family: f.name, step: f.step,
				})
			}
		}
	}
}

// allocations counts what a benchmark allocates in all goroutines.
type allocations struct{ before runtime.MemStats }

func newAllocations() *allocations {
	m := &allocations{}
	runtime.ReadMemStats(&m.before)
	return m
}

func (m *allocations) perSample(b *testing.B, samples int) {
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	n := float64(samples)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/sample")
	b.ReportMetric(float64(after.TotalAlloc-m.before.TotalAlloc)/n, "B/sample")
	b.ReportMetric(float64(after.Mallocs-m.before.Mallocs)/n, "allocs/sample")
}

// BenchmarkPathSteady appends and commits 10,000 samples, and waits until the receiver has them: they fill a request.
func BenchmarkPathSteady(b *testing.B) {
	const series = 10_000 // as many as a request has: fewer would wait for the deadline
	p := newPath(b, series)
	for range 6 { // caches fill, buffers grow
		p.round(b)
		p.delivered()
	}
	bytes, m := p.sender.bytes.Load(), newAllocations()
	for b.Loop() {
		p.round(b)
		p.delivered()
	}
	m.perSample(b, b.N*series)
	b.ReportMetric(float64(p.sender.bytes.Load()-bytes)/float64(b.N*series), "wire-B/sample")
}

// BenchmarkPathCatchUp drains a backlog of a million samples; appending them is not timed.
// With 500 series a request holds four samples of each, which share its labels.
func BenchmarkPathCatchUp(b *testing.B) {
	for _, series := range []int{500, 5000, 10_000} {
		b.Run(fmt.Sprintf("series=%d", series), func(b *testing.B) {
			const backlog = 1_000_000
			p := newPath(b, series)
			p.round(b)
			p.round(b)
			p.delivered()
			bytes, m := p.sender.bytes.Load(), newAllocations()
			for b.Loop() {
				b.StopTimer()
				p.sender.slow.Lock()
				for range backlog / series {
					p.round(b)
				}
				p.sender.slow.Unlock()
				b.StartTimer()
				p.delivered()
			}
			m.perSample(b, b.N*backlog)
			b.ReportMetric(float64(p.sender.bytes.Load()-bytes)/float64(b.N*backlog), "wire-B/sample")
			b.ReportMetric(float64(b.N*backlog)/b.Elapsed().Seconds()/1e6, "Msamples/s")
		})
	}
}

// TestSteadyStateAllocatesNothing: the remaining allocations belong to commits and requests.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	const series = 10_000
	p := newPath(t, series)
	for range 10 {
		p.round(t)
		p.delivered()
	}
	requests := p.sender.requests.Load()
	const runs = 20
	n := testing.AllocsPerRun(runs, func() {
		p.round(t)
		p.delivered()
	})
	if got := p.sender.requests.Load() - requests; got < runs*series/10_000 {
		t.Errorf("%d requests, fewer than the rounds fill", got)
	}
	t.Logf("%.0f allocations for a commit of %d samples and its requests", n, series)
	if n > series/50 {
		t.Errorf("a commit of %d samples and its delivery allocate %.0f times", series, n)
	}
}
