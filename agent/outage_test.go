package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/tools/results"
	"hwsagent/remotewrite"
	"hwsagent/remotewrite/client"
	remoteconfig "hwsagent/remotewrite/config"
	"hwsagent/wal"
)

// outageReceiver is away until a time, and afterwards keeps the values of each series.
type outageReceiver struct {
	back time.Time

	mu     sync.Mutex
	next   map[string]uint64 // by series: the value that must come
	got    uint64            // samples
	wrong  []string
	knocks int // requests while it was away
}

func (o *outageReceiver) Send(_ context.Context, r client.Request) client.Answer {
	time.Sleep(5 * time.Millisecond) // virtual, as all time here
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Now().Before(o.back) {
		o.knocks++
		return client.Answer{Err: errors.New("connection refused")}
	}
	raw, err := snappy.Decode(nil, r.Body)
	var w prompb.WriteRequest
	if err == nil {
		err = w.Unmarshal(raw)
	}
	if err != nil {
		return client.Answer{Status: 400, Text: err.Error()}
	}
	for _, ts := range w.Timeseries {
		var name string
		for _, l := range ts.Labels {
			if l.Name == "n" {
				name = l.Value
			}
		}
		for _, s := range ts.Samples {
			v := uint64(s.Value)
			if v+1 == o.next[name] || v < o.next[name] && len(w.Timeseries) == 1 { // sent again: it tests the receiver
				continue
			}
			if v != o.next[name] && len(o.wrong) < 10 {
				o.wrong = append(o.wrong, fmt.Sprintf("series %s: value %d, want %d", name, v, o.next[name]))
			}
			o.next[name]++
			o.got++
		}
	}
	return client.Answer{Status: 204, Date: time.Now()}
}

func (o *outageReceiver) received() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.got
}

// quickDir returns a directory whose files are in memory, where there is such a file system:
// the disk's time is the only one that is not virtual.
func quickDir(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	parent := t.TempDir()
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		parent = memory
	}
	dir, err := os.MkdirTemp(parent, "hwsagent-outage-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// heap returns how much memory is in use after a collection, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestThreeDaysOutage: a receiver is away for 72 hours while samples come in each 15
// seconds, through the real log on disk and the real queue. All of them arrive, each once
// and in order; meanwhile the account adds up and memory stays as it was.
func TestThreeDaysOutage(t *testing.T) {
	const (
		series   = 20
		interval = 15 * time.Second
	)
	outage := 72 * time.Hour
	if testing.Short() {
		outage = 6 * time.Hour
	}
	found := results.Line{What: fmt.Sprintf("a target away for %s, virtual time", outage), Count: 1, Figures: map[string]float64{}}
	dir := quickDir(t)
	synctest.Test(t, func(t *testing.T) {
		log, err := wal.Open(wal.Options{Dir: dir, Settings: wal.Settings{Sync: time.Hour, MaxBytes: 1 << 30}}) // its time is the machine's
		if err != nil {
			t.Fatal(err)
		}
		reader, err := log.Reader("away", wal.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		to := &outageReceiver{back: time.Now().Add(outage), next: map[string]uint64{}}
		cfg := remoteconfig.DefaultConfig()
		cfg.Queue.MaxBackoff = model.Duration(20 * time.Second) // the test's own time: fewer knocks
		queue, err := remotewrite.New(remotewrite.Options{Name: "away", Config: cfg, Source: reader, Sender: to})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); queue.Run(ctx) }()

		var all []labels.Labels
		for i := range series {
			all = append(all, labels.FromStrings("__name__", "outage", "n", fmt.Sprint(i)))
		}
		refs := make([]storage.SeriesRef, series)
		appended, rounds := uint64(0), 0
		collect := func() {
			t.Helper()
			app := log.AppenderV2(ctx)
			for i := range all {
				if refs[i], err = app.Append(refs[i], all[i], 0, time.Now().UnixMilli(), float64(rounds), nil, nil, storage.AOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
			appended, rounds = appended+series, rounds+1
		}
		balanced := func() {
			t.Helper()
			l := reader.Ledger()
			if !l.Balanced() || l.Appended != appended || l.GivenUp() != 0 {
				t.Fatalf("after %d rounds: %+v, want %d appended", rounds, l, appended)
			}
		}

		var early, most uint64
		for began := time.Now(); time.Since(began) < outage; time.Sleep(interval) {
			collect()
			if rounds%240 != 0 { // each hour
				continue
			}
			balanced()
			switch h := heap(); {
			case rounds == 240:
				early = h
			case h > early:
				most = max(most, h-early)
			}
		}
		if to.received() != 0 || to.knocks < int(outage/time.Minute) {
			t.Errorf("%d samples arrived, %d requests in the outage", to.received(), to.knocks)
		}
		if l := reader.Ledger(); l.Pending != appended {
			t.Errorf("%d samples wait, want all %d", l.Pending, appended)
		}
		began := time.Now()
		for to.received() < appended && time.Since(began) < 5*time.Minute {
			if time.Since(began)%interval == 0 {
				collect() // it goes on
			}
			time.Sleep(time.Second)
		}
		took := time.Since(began)
		time.Sleep(10 * time.Second) // the rest, and what should not come
		balanced()
		cancel()
		<-done
		if l := reader.Ledger(); l.Delivered != appended || l.Pending != 0 {
			t.Errorf("%d appended: %+v", appended, l)
		}
		if to.received() != appended || len(to.wrong) > 0 {
			t.Errorf("%d of %d samples arrived; in the wrong order: %v", to.received(), appended, to.wrong)
		}
		if took > time.Minute {
			t.Errorf("it took %s until the receiver had everything", took)
		}
		if most > 4<<20 {
			t.Errorf("the heap grew by %d bytes in the outage", most)
		}
		found.Lost = int(appended - to.received())
		found.Figures["samples"], found.Figures["drain_seconds"], found.Figures["heap_growth_bytes_max"] = float64(appended), took.Seconds(), float64(most)
		t.Logf("%d samples in %d rounds, all there %s after the receiver was back; %d requests while it was away; the heap grew by %d KiB at most",
			appended, rounds, took, to.knocks, most>>10)
		if err := errors.Join(reader.Close(), log.Close()); err != nil {
			t.Error(err)
		}
	})
	results.Add(t, found)
}
