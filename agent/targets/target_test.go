package targets

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal"
)

// The status of a paused target tells how old the oldest sample is, also of a backlog that
// was left behind, and as the log lets it go.
func TestOldestOfAPausedTarget(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := wal.Open(wal.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r, err := log.Reader("a", wal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	commit := func(second int64) {
		app := log.AppenderV2(t.Context())
		if _, err := app.Append(0, labels.FromStrings("__name__", "up"), 0, second*1000, 1, nil, nil, storage.AppendV2Options{}); err != nil {
			t.Fatal(err)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	for second := range int64(4) {
		if commit(second + 1); second == 1 {
			if !r.Split() {
				t.Fatal("nothing was split")
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); (&Target{reader: r}).watchOldest(ctx) }()
	oldest := func(second int64) {
		t.Helper()
		until(t, fmt.Sprintf("second %d is the oldest", second), func() bool { return r.OldestPending().Equal(time.UnixMilli(second * 1000)) })
	}
	oldest(1)
	for second := range int64(3) {
		s, err := log.Before(t.Context(), "a", time.UnixMilli((second+1)*1000+1), func(_, _ int64) {})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := log.Skip("a", s.End); err != nil || n != 1 {
			t.Fatalf("skipped %d, %v", n, err)
		}
		oldest(second + 2)
	}
	cancel()
	<-done
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
