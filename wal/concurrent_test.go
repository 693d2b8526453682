package wal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/tools/tier"
	"hwsagent/wal/queue"
)

// testSeed is 1, in the nightly and the full tier random, or what HWSAGENT_SEED says; it is printed.
func testSeed(t *testing.T) uint64 {
	seed := uint64(1)
	if tier.Nightly() {
		seed = rand.Uint64()
	}
	if s := os.Getenv("HWSAGENT_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("HWSAGENT_SEED=%d replays", seed)
	return seed
}

// TestCommittersOnAFailingDisk lets several goroutines commit at once on a slow disk
// that fails now and then, and reads along: what was acknowledged arrives once and in
// each committer's order, and nothing else does.
func TestCommittersOnAFailingDisk(t *testing.T) {
	seed := testSeed(t)
	fired := 0
	for round := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			fired += committersOnAFailingDisk(t, rand.New(rand.NewPCG(seed, round)))
			if t.Failed() {
				t.Logf("in round %d", round)
			}
		})
	}
	if fired < 60 {
		t.Errorf("only %d operations failed", fired)
	}
}

func committersOnAFailingDisk(t *testing.T, rnd *rand.Rand) int {
	const committers, commits = 4, 40
	d := newMemDir()
	o := memOptions(t, d, newMemDir())
	o.SegmentBytes = 500
	if rnd.IntN(2) == 0 {
		o.Sync = SyncAlways
	}
	truncates, fired := rnd.IntN(2) == 0, 0
	d.linger = func(string) {
		for range 20 {
			runtime.Gosched()
		}
	}
	faults := rand.New(rand.NewPCG(rnd.Uint64(), 2))
	healthy := false
	d.fault = func(op string) (int, error) {
		switch {
		case healthy:
			return 0, nil
		case op == "truncate" && !truncates, faults.IntN(12) == 0:
			fired++
			return faults.IntN(4000), syscall.EIO
		}
		return 0, nil
	}
	l := openLog(t, o)
	r, err := l.Reader("live", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()

	acked := make([][]float64, committers)
	var wg sync.WaitGroup
	for c := range committers {
		pauses := rand.New(rand.NewPCG(rnd.Uint64(), uint64(c)))
		wg.Go(func() {
			for i := range commits {
				app := l.AppenderV2(t.Context())
				ls := labels.FromStrings("__name__", "m", "c", fmt.Sprint(c))
				if _, err := app.Append(0, ls, 0, int64(i), float64(i), nil, nil, storage.AppendV2Options{}); err != nil {
					t.Error(err)
				}
				if app.Commit() == nil {
					acked[c] = append(acked[c], float64(i))
				}
				time.Sleep(time.Duration(pauses.IntN(200)) * time.Millisecond)
			}
		})
	}
	wg.Wait()
	d.mu.Lock()
	healthy = true
	d.mu.Unlock()
	time.Sleep(2 * time.Second)

	check := func(what string, l *Log, r *Reader) {
		got := make([][]float64, committers)
		sp := r.Savepoint()
		for last := sp.Acked().Commit; last < l.head().Commit; {
			e, err := r.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			last = e.End.Commit
			if e.Missing != (queue.Outcome{}) {
				t.Errorf("%s: missing %+v", what, e.Missing)
			}
			for _, s := range e.Samples {
				c := int(s.Series.Labels().Get("c")[0] - '0')
				got[c] = append(got[c], s.V)
			}
		}
		for c := range committers {
			if !slices.Equal(got[c], acked[c]) {
				t.Errorf("%s: committer %d: read %v, acknowledged %v", what, c, got[c], acked[c])
			}
		}
	}
	check("live", l, r)
	after := openLog(t, memOptions(t, d.crash(), newMemDir()))
	defer after.Close()
	ra, err := after.Reader("new", ReaderOptions{StartAt: StartOldest})
	if err != nil {
		t.Fatal(err)
	}
	defer ra.Close()
	check("after a power cut", after, ra)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	return fired
}
