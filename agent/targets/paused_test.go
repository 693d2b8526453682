package targets

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal"
)

// TestPausedTargetHoldsNoSeries: a paused target knows the age of its oldest sample, and keeps no series in memory for that.
func TestPausedTargetHoldsNoSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		log, err := wal.Open(wal.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		open := func(name string) *wal.Reader {
			r, err := log.Reader(name, wal.ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		other, paused := open("other"), open("paused")
		began := time.Now()
		app := log.AppenderV2(t.Context())
		for i := range 100 {
			if _, err := app.Append(0, labels.FromStrings("__name__", "m", "n", strconv.Itoa(i)), 0, began.UnixMilli(), 1, nil, nil, storage.AppendV2Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
		e, err := other.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen := e.Samples
		ctx, cancel := context.WithCancel(t.Context())
		var resting sync.WaitGroup
		resting.Go(func() { (&Target{reader: paused}).watchOldest(ctx) })
		time.Sleep(10 * time.Second)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		for _, s := range seen {
			if !s.Series.Gone() {
				t.Fatalf("%s is in memory", s.Series.Labels())
			}
		}
		if oldest := paused.OldestPending(); !oldest.Equal(began.Truncate(time.Millisecond)) {
			t.Errorf("the oldest sample is of %v, want %v", oldest, began)
		}
		cancel()
		resting.Wait()
		if err := paused.Close(); err != nil {
			t.Error(err)
		}
	})
}
