package agent

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/inputs"
	"hwsagent/probes"
)

// fixedProbe shows the same series in each round, as a BMC does, and counts its rounds.
type fixedProbe struct {
	families []*probes.Family
	series   int
	rounds   *atomic.Int64
}

func (p *fixedProbe) Collect(_ context.Context, r *probes.Round) error {
	n := p.rounds.Add(1)
	for i := range p.series {
		r.Add(p.families[i%len(p.families)], float64(n), "component", fmt.Sprint("psu/", i/24), "name", fmt.Sprintf("PSU %d Input", i/24),
			"location", "Power Supply Bay", "sensor", fmt.Sprint("sensor-", i/len(p.families)))
	}
	return nil
}

// BenchmarkSeriesMemory measures the memory per series of a probe, in bytes: its labels, and the state in each package
// on its way to the targets. 100 probes have 1,000 series each, and have run a few rounds. The memory profiler
// attributes memory to the innermost package of ours that allocated it; "heap" is everything, including Go's overhead.
func BenchmarkSeriesMemory(b *testing.B) {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1024
	for _, targets := range []int{1, 2, 20} {
		b.Run(fmt.Sprintf("targets=%d", targets), func(b *testing.B) {
			for b.Loop() {
				measureSeries(b, targets)
			}
		})
	}
}

func measureSeries(b *testing.B, targets int) {
	const count, each = 100, 1000
	before, heap := keptByPackage(b)
	p := newPath(b, 0)
	for i := range targets - 1 {
		p.target(b, fmt.Sprint("further-", i))
	}
	way := inputs.NewPath(p.log, slog.New(slog.DiscardHandler))
	var rounds atomic.Int64
	var specs []probes.Spec
	for i := range count {
		name := fmt.Sprintf("bmc-%03d", i)
		probe := &fixedProbe{series: each, rounds: &rounds}
		for f := range 12 {
			probe.families = append(probe.families, &probes.Family{Name: fmt.Sprintf("hw_power_supply_state_%d", f), Type: model.MetricTypeGauge, Help: "State."})
		}
		specs = append(specs, probes.Spec{
			Name: name, Type: "ipmi", Probe: probe, Interval: 2 * time.Second, Timeout: 2 * time.Second, MaxSamples: 10 * each,
			Labels: labels.FromStrings("instance", fmt.Sprintf("192.0.2.%d:623", i), "job", "bmcs"), Out: way.Input("probe", name, inputs.Settings{}),
		})
	}
	runner := probes.NewRunner(nil, slog.New(slog.DiscardHandler))
	runner.Apply(specs)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- runner.Run(ctx) }()
	for rounds.Load() < 4*count {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	p.total = p.log.Status().Head.Total
	p.delivered()
	after, all := keptByPackage(b)
	n := float64(way.Size())
	if n < count*each {
		b.Fatalf("%v series, want at least %d", n, count*each)
	}
	for _, name := range []string{"labels", "probes", "inputs", "wal", "remotewrite"} {
		b.ReportMetric((after[name]-before[name])/n, name+"-B/series")
	}
	b.ReportMetric((all-heap)/n, "heap-B/series")
	runtime.KeepAlive(runner)
}

// keptByPackage returns how many bytes of the heap each package keeps, by its own allocations, and how many there are in all.
func keptByPackage(b testing.TB) (kept map[string]float64, heap float64) {
	b.Helper()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var records []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, false); !ok; {
		records = make([]runtime.MemProfileRecord, n+100)
		if n, ok = runtime.MemProfile(records, false); ok {
			records = records[:n]
		}
	}
	kept = map[string]float64{}
	for i := range records {
		r := &records[i]
		if r.InUseObjects() == 0 {
			continue
		}
		// The profiler samples: one of this size is in it by this chance.
		size := float64(r.InUseBytes()) / float64(r.InUseObjects())
		kept[owner(r.Stack())] += float64(r.InUseBytes()) / (1 - math.Exp(-size/float64(runtime.MemProfileRate)))
	}
	return kept, float64(m.HeapAlloc)
}

// owner returns the innermost of our packages in a stack, by the first part of its name, or "labels" where it let Prometheus'
// package make labels.
func owner(stack []uintptr) string {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "/model/labels.") {
			return "labels"
		}
		if rest, ok := strings.CutPrefix(frame.Function, "hwsagent/"); ok && !strings.HasPrefix(rest, "internal/refs.") {
			return strings.TrimPrefix(rest, "internal/")[:strings.IndexAny(strings.TrimPrefix(rest, "internal/"), "./")]
		}
		if !more {
			return "other"
		}
	}
}
