package wal

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/e2e/results"
)

// crashFlags registers the flags of the crash test.
func crashFlags() {
	flag.Uint64("crash.seeds", 0, "how many lives TestCrashes lives; 0: as many as the tier has")
	flag.Uint64("crash.seed", 0, "the one life that TestCrashes repeats, operation by operation with -v; 0: all")
}

func crashFlag(name string) uint64 {
	n, _ := strconv.ParseUint(flag.Lookup(name).Value.String(), 10, 64)
	return n
}

// crashSeeds are the lives of this run. Those of the small tier are always the same.
func crashSeeds(t *testing.T) (first, n uint64) {
	percent, _ := strconv.ParseUint(os.Getenv("HWSAGENT_TORTURE"), 10, 64)
	first = 1
	switch one := crashFlag("crash.seed"); {
	case one > 0:
		return one, 1
	case percent > 0:
		if n = 100_000; percent > 1 {
			n = n * percent / 100
		}
		if os.Getenv("HWSAGENT_SEED") != "" {
			first = testSeed(t)%math.MaxUint32 + 1
		}
	case testing.Short():
		// The life's goroutines share values without a mutex, since no two of them ever wake
		// together; the race detector, which make race runs with -short, cannot know that.
		t.Skip("left out with -short; make test lives two thousand lives")
	default:
		n = 2000
	}
	if asked := crashFlag("crash.seeds"); asked > 0 {
		n = asked
	}
	return first, n
}

// TestCrashes lives many random lives of a log: several targets, several committers,
// small segments and budgets, a disk that fails now and then, and crashes in the middle
// of any operation of the disk, those of recovering from a crash included. What each
// life must keep is in oracle.
func TestCrashes(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // half of the time would be the collector's
	first, n := crashSeeds(t)
	var (
		mu       sync.Mutex
		next     = first
		sum      = newTally()
		failures int
		workers  sync.WaitGroup
		began    = time.Now()
		told     = began
	)
	dir := t.TempDir()
	for w := range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for next < first+n && failures < 5 {
				seed := next
				next++
				mu.Unlock()
				c := liveCrashes(t, seed, filepath.Join(dir, strconv.Itoa(w)))
				mu.Lock()
				sum.add(c.tally)
				if c.broken != nil {
					failures++
					t.Errorf("-crash.seed=%d: %v", seed, c.broken)
				}
				if time.Since(told) > 10*time.Second {
					told = time.Now()
					t.Logf("%d of %d lives, %.0f/s", sum.lives, n, float64(sum.lives)/time.Since(began).Seconds())
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%v: %+v", time.Since(began).Round(time.Millisecond), *sum)
	if !t.Failed() && n >= 2000 {
		sum.fired(t)
	}
	if os.Getenv("HWSAGENT_TORTURE") != "" {
		results.Add(t, results.Line{
			What: "crash file system: lives with several crashes each", Count: sum.lives, Lost: sum.unforgiven, Seed: first,
			Figures: map[string]float64{
				"crashes": float64(sum.crashes()), "commits": float64(sum.commits), "torn_files": float64(sum.torn),
				"disk_errors": float64(sum.faults), "sync_1s_loss_seconds_max": sum.oldest.Seconds(),
			},
		})
	}
}

// liveCrashes lives one life.
func liveCrashes(t *testing.T, seed uint64, dir string) (c *crashLife) {
	synctest.Test(t, func(t *testing.T) {
		c = newCrashLife(seed, dir)
		if crashFlag("crash.seed") > 0 && testing.Verbose() {
			c.out = os.Stdout
		}
		c.run(t)
	})
	return c
}

// TestCrashesRepeat lives lives twice: a seed names one life, or a failure could not be
// looked at. What differs in one of a hundred is which of two committers the log serves
// first that wake at the same instant after an error: that is the scheduler's choice.
func TestCrashesRepeat(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short, see crashSeeds")
	}
	dir := t.TempDir()
	const lives = 40
	var others []uint64
	for seed := range uint64(lives) {
		a, b := liveCrashes(t, seed, dir), liveCrashes(t, seed, dir)
		if a.trace != b.trace || !reflect.DeepEqual(a.tally, b.tally) {
			others = append(others, seed)
		}
	}
	if len(others) > lives/10 {
		t.Errorf("lives %v were others the second time", others)
	}
}

// fired fails if some kind of fault has never come.
func (s *tally) fired(t *testing.T) {
	t.Helper()
	segments := []string{"create", "write", "sync", "synced", "syncdir", "syncdired", "truncate", "remove"}
	saves := []string{"create", "write", "sync", "synced", "syncdir", "syncdired", "rename"}
	for _, kind := range []string{"cut in ", "kill in "} {
		for _, op := range slices.Concat(prefixed(segmentDir+"/", segments), prefixed(savepointDir+"/", saves)) {
			if s.struck[kind+op] == 0 {
				t.Errorf("there was no %s%s", kind, op)
			}
		}
	}
	for what, n := range map[string]int{
		"file was torn": s.torn, "error of the disk came": s.faults, "commit was lost": s.lost, "hole was left": s.holes,
		"slot of a savepoint was torn": s.doubts, "commit without an answer survived": s.survivors,
	} {
		if n == 0 {
			t.Errorf("no %s", what)
		}
	}
}

func prefixed(prefix string, names []string) []string {
	var all []string
	for _, n := range names {
		all = append(all, prefix+n)
	}
	return all
}
