package wal

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/tools/results"
	"hwsagent/internal/tools/tier"
)

// crashFlags registers the flags of the crash test.
func crashFlags() {
	flag.Uint64("crash.first", 0, "the first of the lives of TestCrashes; 0: as the tier has it")
	flag.Uint64("crash.seeds", 0, "how many lives TestCrashes lives; 0: as many as the tier has")
	flag.Uint64("crash.storms", 0, "how many lives TestCrashesInAStorm lives; 0: as many as it has")
	flag.Uint64("crash.part", 0, "1: these lives are a part of a run, which alone asks whether each kind of fault came")
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
		t.Skip("left out with -short; make test lives five hundred lives")
	default:
		n = tier.Of[uint64](500, 2000)
	}
	if asked := crashFlag("crash.seeds"); asked > 0 {
		n = asked
	}
	if asked := crashFlag("crash.first"); asked > 0 {
		first = asked
	}
	return first, n
}

// TestCrashesThatFoundFaults lives the lives again that once found a fault and are not among those that TestCrashes lives by default.
func TestCrashesThatFoundFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short, as TestCrashes is")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	dir := memTempDir(t)
	for _, seed := range []uint64{
		50002032,   // a start wrote over the newest savepoints, because a power cut had taken the records behind them
		2342, 3783, // a target that begins with the oldest data missed commits that were logged again
		3028124, 3074294, 3083276, 3033675, // a start took for durable what an earlier failed fsync had dropped
		3031852,    // what a power cut took counted as durable, and so as damage, when another one took the segment that said so
		3024679,    // the budget moved a target that had everything over numbers that stand for nothing
		3017295,    // a power cut brought removed segments back, one of them in part
		7042662,    // a power cut brought refused commits back, with the numbers of commits that were acknowledged since
		7078986,    // a power cut brought back a segment that the log had let go, of which another cut could have taken the commits
		7096035,    // a power cut took the end of a segment that repeats commits, and Prometheus' reader missed those of the earlier one
		9112101,    // behind commits that a power cut took, a target skipped good ones for their repetition, which another cut had damaged
		9176665,    // the header and the beginning of the oldest segment were damaged, and a new target skipped those commits in the next segment
		9200158,    // a start continued behind a torn repetition, though a segment before a destroyed header had more
		9436094,    // what a power cut took counted as damage, when another one took the segment that said so and not the next
		858367051,  // the samples of a refused commit that a power cut brought back, beside an acknowledged one that it took, count as lost to it
		2675747734, // the same beside a backlog: the account had more samples than the log
		3797847647, // where a failed fsync dropped what had been written since, a target got a refused commit that was there before
		4050657054, // the only commit that survived behind a lost one had been asked for before it, and had no answer
		828747815,  // the number at which a backlog ends belonged to a smaller commit: a power cut had taken the one before with that number
		9305784,    // a commit read from a repetition: what the header of that segment called lost to a power cut counted as damage
	} {
		if c := liveCrashes(t, seed, dir); c.broken != nil {
			t.Errorf("-crash.seed=%d: %v", seed, c.broken)
		}
	}
}

// TestCrashes lives many random lives of a log: several targets, several committers,
// small segments and budgets, a disk that fails now and then, and crashes in the middle
// of any operation of the disk, those of recovering from a crash included. What each
// life must keep is in oracle.
//
// On one processor a life is the same each time. So one process uses one, and where
// there are many lives, as many processes share them as there are processors.
func TestCrashes(t *testing.T) {
	first, n := crashSeeds(t)
	began := time.Now()
	sum, dir := newTally(), memTempDir(t)
	if n < manyLives {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		failures := 0
		for seed := first; seed < first+n && failures < 5; seed++ {
			c := liveCrashes(t, seed, dir)
			sum.add(c.tally)
			if c.broken != nil {
				failures++
				t.Errorf("-crash.seed=%d: %v", seed, c.broken)
			}
		}
	} else {
		sum = shareCrashes(t, first, n)
	}
	text, err := json.Marshal(sum)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("in %v %s%s", time.Since(began).Round(time.Millisecond), tallyMark, text)
	if !t.Failed() && n >= 500 && crashFlag("crash.part") == 0 {
		sum.fired(t, max(1, int(n/livesInOne)))
	}
	if os.Getenv("HWSAGENT_TORTURE") != "" && n > manyLives {
		results.Add(t, results.Line{
			What: "crash file system: lives with several crashes each", Count: sum.Lives, Lost: sum.Unforgiven, Seed: first,
			Figures: map[string]float64{
				"crashes": float64(sum.crashes()), "commits": float64(sum.Commits), "torn_files": float64(sum.Torn),
				"disk_errors": float64(sum.Faults), "sync_1s_loss_seconds_max": sum.Oldest.Seconds(),
			},
		})
	}
}

// manyLives is from how many lives on several processes share them. Each part of them is
// smaller.
const manyLives, livesInOne = 2000, 1000

// tallyMark comes before a tally in the output of a test.
const tallyMark = "tally="

// shareCrashes has other processes of this test live that many lives, and adds up what
// they found.
func shareCrashes(t *testing.T, first, n uint64) *tally {
	began, sum := time.Now(), newTally()
	var (
		mu      sync.Mutex // guards what follows
		next    = first
		told    = began
		workers sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for next < first+n && !t.Failed() {
				from, lives := next, min(livesInOne, first+n-next)
				next += lives
				mu.Unlock()
				part, out, err := crashProcess(t, from, lives)
				mu.Lock()
				if err != nil {
					t.Errorf("lives from %d on: %v\n%s", from, err, out)
				}
				sum.add(part)
				if time.Since(told) > 10*time.Second {
					told = time.Now()
					fmt.Printf("TestCrashes: %d of %d lives, %.0f/s\n", sum.Lives, n, float64(sum.Lives)/time.Since(began).Seconds())
				}
			}
		})
	}
	workers.Wait()
	return sum
}

// crashProcess lives so many lives in a process of its own.
func crashProcess(t *testing.T, first, n uint64) (*tally, []byte, error) {
	part := newTally()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashes$", "-test.v", "-test.timeout=10m",
		fmt.Sprintf("-crash.first=%d", first), fmt.Sprintf("-crash.seeds=%d", n), "-crash.part=1")
	out, err := cmd.CombinedOutput()
	if _, text, ok := bytes.Cut(out, []byte(tallyMark)); ok {
		text, _, _ = bytes.Cut(text, []byte("\n"))
		err = errors.Join(err, json.Unmarshal(text, part))
	}
	if err == nil && uint64(part.Lives) != n {
		err = fmt.Errorf("it tells of %d lives, not %d", part.Lives, n)
	}
	return part, out, err
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

// TestCrashesRepeat lives lives twice: a seed names one life, or a failure could not be looked at. Where the machine is so busy that
// Go's scheduler interrupts a goroutine for taking longer than 10 ms, two that wake at one moment can change places: then most of the
// further lives must be the same, and two of the forty seeds may be judged again.
func TestCrashesRepeat(t *testing.T) {
	tier.OnlyNightly(t, "a busy machine decides how many lives are the same")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	dir := memTempDir(t)
	var doubted []uint64
	for seed := range uint64(40) {
		if differences(t, seed, dir) != "" {
			doubted = append(doubted, seed)
		}
	}
	if len(doubted) > 2 {
		t.Errorf("%d of 40 lives are not the same each time: %v", len(doubted), doubted)
	}
	for _, seed := range doubted {
		if told := differences(t, seed, dir); told != "" {
			t.Errorf("life %d is not the same each time:\n%s", seed, told)
		}
	}
}

// differences describes the lives of one seed, unless the first two or most of six are the same.
func differences(t *testing.T, seed uint64, dir string) string {
	t.Helper()
	lives := []*crashLife{liveCrashes(t, seed, dir), liveCrashes(t, seed, dir)}
	if most, _ := mostAlike(lives); most == 2 {
		return ""
	}
	for range 4 {
		lives = append(lives, liveCrashes(t, seed, dir))
	}
	most, told := mostAlike(lives)
	if most >= 4 {
		return ""
	}
	return told
}

// mostAlike is how many of the lives are the same one at most. told has each of them, for people.
func mostAlike(lives []*crashLife) (most int, told string) {
	for _, a := range lives {
		same := 0
		for _, b := range lives {
			if a.trace == b.trace && reflect.DeepEqual(a.tally, b.tally) {
				same++
			}
		}
		most = max(most, same)
		told += fmt.Sprintf("%x %+v\n", a.trace, *a.tally)
	}
	return most, told
}

// fired fails if some kind of fault came fewer than so many times. A run of many lives asks for one in a thousand lives: the
// rarest kind comes eight times, so a single thousand has none of it now and then.
func (s *tally) fired(t *testing.T, times int) {
	t.Helper()
	segments := []string{"create", "write", "sync", "synced", "syncdir", "syncdired", "truncate", "remove"}
	saves := []string{"create", "write", "sync", "synced", "syncdir", "syncdired"}
	for _, kind := range []string{"cut in ", "kill in "} {
		for _, op := range slices.Concat(prefixed(segmentDir+"/", segments), prefixed(savepointDir+"/", saves)) {
			if n := s.Struck[kind+op]; n < times {
				t.Errorf("%s%s came %d times, fewer than %d", kind, op, n, times)
			}
		}
	}
	for _, what := range []string{"commit", "second end that waits", "kill", "power cut", "failed fsync", "failed write", "full disk"} {
		if n := s.Ended[what]; n < times {
			t.Errorf("%s while a segment that had ended was synced came %d times, fewer than %d", what, n, times)
		}
	}
	for what, n := range map[string]int{
		"a file was torn": s.Torn, "an error of the disk came": s.Faults, "a commit was lost": s.Lost, "a hole was left": s.Holes,
		"a commit without an answer survived": s.Survivors, "a series was forgotten": s.Forgotten,
		"a backlog was left by a crash": s.Gaps, "the newest came first": s.Splits,
	} {
		if n < times {
			t.Errorf("%s %d times, fewer than %d", what, n, times)
		}
	}
	if s.Stock < s.Lives {
		t.Errorf("Prometheus' reader read the log %d times in %d lives", s.Stock, s.Lives)
	}
}

func prefixed(prefix string, names []string) []string {
	var all []string
	for _, n := range names {
		all = append(all, prefix+n)
	}
	return all
}
