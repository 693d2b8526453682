package remotewrite

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal"
)

// TestTargetThatIsDownHoldsNoSeries: the only target of a log goes down. After some minutes, not before, its reader and its cache hold
// no series; when it is back, it gets every sample.
func TestTargetThatIsDownHoldsNoSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, err := wal.Open(wal.Options{Dir: memoryDir(t)})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		const series = 200
		commit := func() {
			app := log.AppenderV2(t.Context())
			for i := range series {
				ls := labels.FromStrings("__name__", "m"+strconv.Itoa(i))
				if _, err := app.Append(0, ls, 0, time.Now().UnixMilli(), float64(i), nil, nil, storage.AppendV2Options{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		other, err := log.Reader("other", wal.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		reader, err := log.Reader("down", wal.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		back := time.Now().Add(10 * time.Minute)
		to := &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) {
			return client.Answer{Err: errDown}, time.Now().Before(back)
		}}
		queue, err := New(Options{Name: "down", Config: config.DefaultConfig(), Source: reader, Sender: to})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { queue.Run(ctx) })

		commit()
		e, err := other.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var seen []*wal.Series
		for _, s := range e.Samples {
			seen = append(seen, s.Series)
		}
		time.Sleep(time.Second)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if gone := countGone(seen); gone != 0 || len(seen) != series {
			t.Fatalf("%d of %d series are gone while the target reads", gone, len(seen))
		}
		time.Sleep(keepSeries / 2)
		if w := queue.live.window.Load(); w != nil || countGone(seen) != 0 {
			t.Errorf("%d of %d series are gone during a short outage, want none; window %p, want none", countGone(seen), series, w)
		}
		time.Sleep(keepSeries/2 + 2*dataEvery)
		if gone := countGone(seen); gone != series {
			t.Errorf("%d of %d series are gone, want all", gone, series)
		}
		synctest.Wait()
		for slot := range queue.live.cache.forSlot.All() {
			t.Fatalf("the cache holds a series in slot %d", slot)
		}
		for range 3 {
			commit()
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Minute)
		if sp := reader.Savepoint(); sp.Acked() != log.Status().Head || sp.Outcome.Delivered != 4*series {
			t.Errorf("acknowledged up to %+v of %+v, %+v", sp.Acked(), log.Status().Head, sp.Outcome)
		}
		cancel()
		running.Wait()
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	})
}

func countGone(all []*wal.Series) (n int) {
	for _, s := range all {
		if s.Gone() {
			n++
		}
	}
	return n
}

// TestCacheForgetsSeriesThatEnd: series that the log does not use any more leave the cache with the entry that says so, whatever the
// target does with them, and a slot that another series has by then is left alone.
func TestCacheForgetsSeriesThatEnd(t *testing.T) {
	c := newSeriesCache(labels.EmptyLabels(), rules(t, `[{source_labels: [__name__], regex: removed, action: drop}]`))
	sent := wal.NewSeries(1, labels.FromStrings("__name__", "sent"), nil)
	removed := wal.NewSeries(2, labels.FromStrings("__name__", "removed"), nil)
	for range 2 {
		if c.get(sent).dropped() || !c.get(removed).dropped() {
			t.Fatal("the series are not as the rules make them")
		}
		c.end(sent)
		c.end(removed)
		if c.forSlot.Get(1) != nil || c.removals.Get(2) != nil {
			t.Error("a series that ended is in the cache")
		}
	}
	next := wal.NewSeries(1, labels.FromStrings("__name__", "next"), nil)
	to := c.get(next)
	c.end(sent)
	if c.get(next) != to {
		t.Error("the end of a series took another one out of its slot")
	}
}
