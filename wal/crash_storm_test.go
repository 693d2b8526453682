package wal

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// storm makes the disk of a crash life fail much more often: in a start, while the log is used, and while it is closed. Errors come
// close to one another, and a crash often follows within a few operations.
type storm struct {
	rng    *rand.Rand
	spells []map[string]int // which operations fail, and how often of 8

	// These are of the present spell of errors.
	dir  string         // "" is both
	odds map[string]int // of 8, by operation, with which one fails
	left int            // how many more fail

	hits int // errors since the process began
}

// stormOdds are the spells of a disk that refuses changes.
var stormOdds = []map[string]int{
	{"sync": 8},
	{"write": 8},
	{"sync": 4, "write": 4},
	{"create": 8, "write": 3},
	{"create": 4, "write": 4, "sync": 4, "truncate": 8, "syncdir": 4},
	{"truncate": 8, "write": 6},
	{"truncate": 8, "sync": 6},
	{"syncdir": 8},
	{"syncdir": 5, "sync": 2, "truncate": 4},
	{"create": 2, "write": 2, "sync": 2, "truncate": 2, "syncdir": 2},
}

// readOdds are the spells of a disk that refuses reads as well.
var readOdds = []map[string]int{
	{"read": 8},
	{"read": 2},
	{"read": 4, "write": 2, "sync": 2},
	{"read": 4, "create": 4, "syncdir": 4},
	{"read": 2, "write": 6, "truncate": 8},
}

// begin begins a spell.
func (s *storm) begin(m *machine) {
	s.odds, s.dir = s.spells[s.rng.IntN(len(s.spells))], pick(s.rng, "", segmentDir, segmentDir, savepointDir)
	s.left = 1 + s.rng.IntN(pick(s.rng, 2, 4, 12))
	m.full, m.brokenErr = false, pick(s.rng, syscall.EIO, syscall.ENOSPC, syscall.EROFS)
	longest := pick(s.rng, 50*time.Millisecond, 400*time.Millisecond, 1500*time.Millisecond)
	m.brokenUntil = time.Now().Add(time.Duration(s.rng.Int64N(int64(longest))))
}

// breaks is machine.breaks.
func (s *storm) breaks(m *machine, dir, op string) (int, error) {
	if op == "read" && s.odds[op] == 0 { // no read takes part in the random decisions of lives where none fails
		return 0, nil
	}
	if s.left == 0 || !time.Now().Before(m.brokenUntil) || s.dir != "" && s.dir != dir || s.rng.IntN(8) >= s.odds[op] {
		return 0, nil
	}
	s.left--
	s.hits++
	if s.rng.IntN(4) == 0 && m.fuse.n > 0 { // the crash follows soon
		m.fuse = fuse{power: s.rng.IntN(3) > 0, n: 1 + s.rng.IntN(8)}
	}
	return pick(s.rng, 0, s.rng.IntN(300), s.rng.IntN(3000)), m.brokenErr
}

// hits is how many operations the storm has failed since the process began.
func (m *machine) hits() int {
	if m.storm == nil {
		return 0
	}
	return m.storm.hits
}

// hit reports whether the storm has failed an operation since the process began.
func (m *machine) hit() bool { return m.hits() > 0 }

// rage begins one spell after the other until ctx ends.
func (c *crashLife) rage(ctx context.Context) {
	for pause(ctx, c.storm.rng, 250*time.Millisecond) {
		c.storm.begin(c.machine)
	}
}

// newStormyLife is newCrashLife with a storm.
func newStormyLife(seed uint64, dir string, spells []map[string]int) *crashLife {
	c := newCrashLife(seed, dir)
	c.faulty, c.storm = true, &storm{rng: rand.New(rand.NewPCG(seed, 6)), spells: spells}
	return c
}

// TestCrashesInAStorm lives lives as TestCrashes does, in which the disk fails far more often: in a start, too, and several times in a row.
func TestCrashesInAStorm(t *testing.T) { liveStorms(t, stormOdds) }

// TestCrashesWhereReadsFail does the same with a disk that refuses reads, too.
func TestCrashesWhereReadsFail(t *testing.T) {
	sum := liveStorms(t, readOdds)
	if opening := sum.Failed["opening"]; sum.Lives > 1 && (opening == 0 || opening == sum.Failed["read"]) {
		t.Errorf("of the reads that failed, %d of %d were of a log that was being opened", opening, sum.Failed["read"])
	}
}

func liveStorms(t *testing.T, spells []map[string]int) *tally {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short, as TestCrashes is")
	}
	first, n := max(crashFlag("crash.first"), 1), cmp.Or(crashFlag("crash.storms"), 300)
	if one := crashFlag("crash.seed"); one > 0 {
		first, n = one, 1
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	began, failures, sum, dir := time.Now(), 0, newTally(), memTempDir(t)
	for seed := first; seed < first+n && failures < 20; seed++ {
		c := liveStorm(t, seed, dir, spells)
		sum.add(c.tally)
		if c.broken != nil {
			failures++
			t.Errorf("-crash.seed=%d: %v", seed, c.broken)
		}
	}
	t.Logf("in %v %+v", time.Since(began).Round(time.Millisecond), *sum)
	if sum.Faults < int(n) && n > 1 {
		t.Error("the disk hardly failed")
	}
	for _, odds := range spells {
		for op := range odds {
			if sum.Failed[op] == 0 && n > 1 {
				t.Errorf("the disk never failed to %s", op)
			}
		}
	}
	return sum
}

// TestStormsThatFoundFaults lives the lives of TestCrashesInAStorm and TestCrashesWhereReadsFail again that once found a fault.
func TestStormsThatFoundFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short, as TestCrashes is")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	dir := memTempDir(t)
	for _, seed := range []uint64{
		12686, 13662, 19554, // a start did not make durable what the start before could not: it was not in the newest two segments
		42680,                  // a refused commit that a power cut brought back hid one that was durable
		902775,                 // the samples of one, beyond what a target had read at its place, counted as damage
		31721, 42744, 53000205, // a power cut took the header that said what an earlier one had taken, which then counted as damage
	} {
		if c := liveStorm(t, seed, dir, stormOdds); c.broken != nil {
			t.Errorf("-crash.seed=%d: %v", seed, c.broken)
		}
	}
	for _, seed := range []uint64{
		104364, // an fsync that failed late dropped bytes of the segment that had begun anew in the same file
		107659, // as 31721
	} {
		if c := liveStorm(t, seed, dir, readOdds); c.broken != nil {
			t.Errorf("-crash.seed=%d: %v", seed, c.broken)
		}
	}
}

// liveStorm lives one life.
func liveStorm(t *testing.T, seed uint64, dir string, spells []map[string]int) (c *crashLife) {
	synctest.Test(t, func(t *testing.T) {
		c = newStormyLife(seed, dir, spells)
		if crashFlag("crash.seed") > 0 && testing.Verbose() {
			c.out = t.Output()
		}
		c.run(t)
	})
	return c
}
