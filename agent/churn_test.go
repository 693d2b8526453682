package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/agent/inputs"
	"hwsagent/remotewrite"
	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal"
)

// The load of TestChurn. In each round churnTurn of the short series begin, and as many end after two rounds.
const (
	churnLive     = 2000
	churnTurn     = 4000
	churnInterval = 30 * time.Second
)

// Bounds of TestChurn: how much larger the heap may be than with as many series that stay.
const (
	churnMore  = 20 << 20 // bytes, while series come and go
	churnAfter = 2 << 20  // an hour later
)

// offline is a sender whose receiver does not answer.
type offline struct{ tries int }

func (o *offline) Send(context.Context, client.Request) client.Answer {
	o.tries++
	return client.Answer{Err: errors.New("connection refused")}
}

// churn is an agent's way from an input to two targets, of which one is down. Rounds are of fake time.
type churn struct {
	t      *testing.T
	log    *wal.Log
	path   *inputs.Path
	input  *inputs.Input
	up     *discard
	reader *wal.Reader // of the target that is up
	down   *offline

	live  []*churned
	short [][]*churned // the series of the last rounds that end
	made  int          // series so far
}

type churned struct {
	ref    storage.SeriesRef
	labels labels.Labels
}

// newChurn must be called in a bubble of synctest.
func newChurn(t *testing.T) *churn {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := wal.Open(wal.Options{Dir: dir, Settings: wal.Settings{MaxBytes: 256 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	c := &churn{t: t, log: log, path: inputs.NewPath(log, slog.New(slog.DiscardHandler)), up: &discard{}, down: &offline{}}
	c.input = c.path.Input("scrape", "pods", inputs.Settings{Interval: churnInterval})
	c.reader = c.target("up", c.up)
	c.target("down", c.down)
	for range churnLive {
		c.live = append(c.live, c.newSeries())
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// target starts a target's queue.
func (c *churn) target(name string, sender remotewrite.Sender) *wal.Reader {
	c.t.Helper()
	reader, err := c.log.Reader(name, wal.ReaderOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	queue, err := remotewrite.New(remotewrite.Options{
		Name: name, Config: config.DefaultConfig(), ExternalLabels: labels.FromStrings("site", "fra1"), Source: reader, Sender: sender,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { queue.Run(ctx) })
	c.t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := reader.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return reader
}

// newSeries returns a series that has not been before, as a pod's.
func (c *churn) newSeries() *churned {
	c.made++
	return &churned{labels: labels.FromStrings(model.MetricNameLabel, "container_cpu_usage_seconds_total", "container", "worker", "instance", "node-017.fra1.example.net:10250",
		"job", "kubelet", "namespace", "batch", "pod", fmt.Sprintf("import-%09d-x7k2p", c.made))}
}

// round appends the samples of a round and lets the interval pass. With turn some of the series are new, and others end.
func (c *churn) round(turn bool) {
	if turn || len(c.short) < 2 {
		var begun []*churned
		for range churnTurn {
			begun = append(begun, c.newSeries())
		}
		c.short = append(c.short, begun)
	}
	app := c.input.AppenderV2(context.Background())
	add := func(all []*churned, v float64) {
		for _, s := range all {
			ref, err := app.Append(s.ref, s.labels, 0, time.Now().UnixMilli(), v, nil, nil,
				storage.AppendV2Options{Metadata: metadata.Metadata{Type: model.MetricTypeCounter, Help: "CPU time in seconds."}, MetricFamilyName: "container_cpu_usage_seconds_total"})
			if err != nil {
				c.t.Fatal(err)
			}
			s.ref = ref
		}
	}
	add(c.live, float64(c.made))
	if len(c.short) > 2 {
		add(c.short[0], math.Float64frombits(value.StaleNaN))
		c.short = slices.Delete(c.short, 0, 1)
	}
	for _, s := range c.short {
		add(s, float64(c.made))
	}
	if err := app.Commit(); err != nil {
		c.t.Fatal(err)
	}
	time.Sleep(churnInterval)
}

// kept is memory of this process.
type kept struct {
	heap    float64
	rss     int // with all memory returned that the heap does not need
	peak    int // of RSS since the start of the process
	of      map[string]float64
	series  int // in the log's table
	account int // in the inputs' path
}

func (c *churn) kept() kept {
	c.t.Helper()
	debug.FreeOSMemory()
	of, heap := keptByPackage(c.t)
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		c.t.Skip("needs /proc")
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		c.t.Fatal(err)
	}
	return kept{heap: heap, rss: pages * os.Getpagesize(), peak: peakRSS(c.t), of: of, series: c.log.Status().Series, account: c.path.Size()}
}

// peakRSS is the greatest resident memory that this process has had, in bytes.
func peakRSS(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	t.Fatal("no VmHWM in /proc/self/status")
	return 0
}

func (k kept) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(k.of)) {
		if k.of[name] > 1<<19 {
			parts = append(parts, fmt.Sprintf("%s %.1f", name, k.of[name]/1e6))
		}
	}
	return fmt.Sprintf("heap %.1f MB (%s), RSS %.1f MB, %.1f at most; the log has %d series, the inputs %d",
		k.heap/1e6, strings.Join(parts, ", "), float64(k.rss)/1e6, float64(k.peak)/1e6, k.series, k.account)
}

// TestChurn: the memory that is left of many series that came and went, with a target that is down all the time. HWSAGENT_CHURN says how
// many distinct series there are (10,000,000).
func TestChurn(t *testing.T) {
	distinct, _ := strconv.Atoi(os.Getenv("HWSAGENT_CHURN"))
	if distinct == 0 {
		t.Skip("takes minutes: run by hand, see internal/tools/README.md (HWSAGENT_CHURN)")
	}
	rounds := distinct / churnTurn
	hour := int(time.Hour / churnInterval)
	synctest.Test(t, func(t *testing.T) {
		c := newChurn(t)
		for range 2 * hour {
			c.round(false)
		}
		without := c.kept()
		t.Logf("%d series that stay, two hours: %v", c.made, without)
		for range rounds {
			c.round(true)
		}
		during := c.kept()
		t.Logf("%d series in %s, %d of them at a time: %v", c.made, time.Duration(rounds)*churnInterval, without.account, during)
		for range hour {
			c.round(false)
		}
		after := c.kept()
		t.Logf("an hour later: %v", after)

		if c.made < distinct || c.down.tries < 100 {
			t.Fatalf("%d series, and the target that is down was tried %d times", c.made, c.down.tries)
		}
		if sp, head := c.reader.Savepoint(), c.log.Status().Head; sp.Acked().Total != head.Total {
			t.Errorf("the target that is up has %d of %d samples", sp.Acked().Total, head.Total)
		}
		if more := during.heap - without.heap; more > churnMore {
			t.Errorf("the heap is %.1f MB larger while series come and go, want at most %.1f", more/1e6, churnMore/1e6)
		}
		if more := after.heap - without.heap; more > churnAfter {
			t.Errorf("the heap is %.1f MB larger an hour later, want at most %.1f", more/1e6, churnAfter/1e6)
		}
	})
}
