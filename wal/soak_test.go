package wal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/tools/results"
	"hwsagent/wal/internal/disk"
	"hwsagent/wal/queue"
)

// The soak's proportions. A step is one round of everything: a commit, and each target that is up reads to the head.
const (
	soakStep   = 10 * time.Minute
	soakHour   = int(time.Hour / soakStep)
	soakDay    = 24 * soakHour
	soakBudget = 160 << 10 // bytes of segments
	soakStable = 100       // series that are in every round
	soakChurn  = 100       // series that have other labels each hour
	soakJudged = 12        // days that are needed to see growth
	soakMost   = 6         // targets at a time, and members of the family
)

// TestSoak runs a log for weeks of virtual time, in which series, targets and members of a family come and go, targets are down for
// hours, the process is killed, the power is cut and the disk is full. Memory, descriptors and the disk must not grow. The small tier
// has two days, always the same ones: they show that all of it happens and that ledgers add up, not that nothing grows.
func TestSoak(t *testing.T) {
	days, seed := 2, uint64(1)
	switch percent, _ := strconv.Atoi(os.Getenv("HWSAGENT_TORTURE")); {
	case percent > 0:
		days, seed = max(soakJudged, 42*percent/100), testSeed(t)
		if percent == 1 { // all of it
			days = 42
		}
	case testing.Short():
		t.Skip("left out with -short; make test runs two days")
	}
	dir := memTempDir(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSoak(t, seed, dir)
		s.boot()
		defer func() { _ = s.l.Close() }() // after a failure; else it is closed already
		var usages []usage
		for range days {
			usages = append(usages, s.day())
		}
		if err := s.l.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("%d days, %+v; first day %+v, last day %+v", days, s.events, usages[0], usages[days-1])
		for what, n := range map[string]int{
			"kill": s.events.kills, "power cut": s.events.cuts, "full disk": s.events.full, "refused commit": s.events.refused,
			"target that came": s.events.came, "target that went": s.events.went, "loss by the budget": s.events.budget,
		} {
			if n == 0 {
				t.Errorf("no %s in %d days: the soak proves nothing about it", what, days)
			}
		}
		if days >= soakJudged {
			if err := flat(usages); err != nil {
				t.Error(err)
			}
		}
		last := usages[days-1]
		results.Add(t, results.Line{
			What: "virtual days of churn, kills, power cuts, full disks", Count: days, Seed: seed,
			Figures: map[string]float64{"heap_kib": float64(last.heap >> 10), "descriptors": float64(last.descriptors), "disk_kib": float64(last.disk >> 10), "crashes": float64(s.events.kills + s.events.cuts)},
		})
	})
}

// usage is what the log takes.
type usage struct {
	heap        int // bytes of the process, without the disk that is in memory
	goroutines  int
	descriptors int // open files
	disk        int // bytes of segments and savepoints
}

// flat compares the mean of the second third of the days with that of the last one: what grows all the time shows there, and what a
// start brings is over by then. A quarter more is allowed, since days differ.
func flat(days []usage) error {
	third := len(days) / 3
	mean := func(figure func(usage) int, days []usage) (sum int) {
		for _, u := range days {
			sum += figure(u)
		}
		return sum / len(days)
	}
	var errs []error
	for _, c := range []struct {
		what   string
		figure func(usage) int
	}{
		{"the heap", func(u usage) int { return u.heap }},
		{"the number of goroutines", func(u usage) int { return u.goroutines }},
		{"the number of open files", func(u usage) int { return u.descriptors }},
		{"the disk", func(u usage) int { return u.disk }},
	} {
		before, after := mean(c.figure, days[third:len(days)-third]), mean(c.figure, days[len(days)-third:])
		if after > before+before/4 {
			errs = append(errs, fmt.Errorf("%s grew from %d to %d in the mean", c.what, before, after))
		}
	}
	return errors.Join(errs...)
}

// TestFlatFindsGrowth gives it days of which one figure grows by five percent of the first day's each.
func TestFlatFindsGrowth(t *testing.T) {
	steady := usage{heap: 1 << 20, goroutines: 20, descriptors: 20, disk: 4 << 20}
	for what, figure := range map[string]func(*usage) *int{
		"the heap": func(u *usage) *int { return &u.heap }, "the number of goroutines": func(u *usage) *int { return &u.goroutines },
		"the number of open files": func(u *usage) *int { return &u.descriptors }, "the disk": func(u *usage) *int { return &u.disk },
	} {
		days := slices.Repeat([]usage{steady}, 42)
		if err := flat(days); err != nil {
			t.Errorf("days that are all the same: %v", err)
		}
		for i := range days {
			*figure(&days[i]) += i * *figure(&steady) / 20
		}
		if err := flat(days); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s grows: %v", what, err)
		}
	}
}

// soak is a log and its surroundings over many lives.
type soak struct {
	t               *testing.T
	rng             *rand.Rand
	options         Options
	segments, saves *memDir
	full            *atomic.Bool // the disk of the present process

	l       *Log
	steps   int
	made    int // names given to targets and members
	targets map[string]*soakTarget
	fullFor int // steps that the disk stays full
	events  soakEvents
}

// soakEvents counts what happened.
type soakEvents struct{ kills, cuts, full, refused, came, went, budget int }

// soakTarget is one target, or a member of the family "e".
type soakTarget struct {
	member string // "" for a target
	r      *Reader
	down   int    // steps for which it reads nothing
	lost   uint64 // samples, by the budget, that were seen
}

func newSoak(t *testing.T, seed uint64, dir string) *soak {
	s := &soak{t: t, rng: rand.New(rand.NewPCG(seed, 0)), segments: newMemDir(), saves: newMemDir(), targets: map[string]*soakTarget{"e": {}}}
	s.options = Options{Dir: dir, SegmentBytes: 16 << 10, wrap: func(name string, real disk.Directory) disk.Directory {
		_ = real.Close()
		if name == segmentDir {
			return s.segments
		}
		return s.saves
	}}
	s.options.MaxBytes, s.options.OrphanTTL, s.options.Retain = soakBudget, 6*time.Hour, time.Hour
	return s
}

// boot opens the log, and the readers of the targets that there are.
func (s *soak) boot() {
	full := &atomic.Bool{}
	for _, d := range []*memDir{s.segments, s.saves} {
		d.fault = func(op string) (int, error) {
			if full.Load() && (op == "create" || op == "write" && d.growing) {
				return 0, syscall.ENOSPC
			}
			return 0, nil
		}
	}
	s.full = full
	l, err := Open(s.options)
	if err != nil {
		s.t.Fatalf("step %d: open the log: %v", s.steps, err)
	}
	s.l = l
	s.enroll()
}

// enroll tells the log which targets there are, and opens their readers.
func (s *soak) enroll() {
	list := []Enrolment{{Name: "e", Family: true}}
	for _, name := range s.names() {
		if name != "e" && s.targets[name].member == "" {
			list = append(list, Enrolment{Name: name})
		}
	}
	if err := s.l.Enroll(list); err != nil {
		s.t.Fatalf("step %d: enrol %d targets: %v", s.steps, len(list), err)
	}
	for _, name := range s.names() {
		g := s.targets[name]
		if g.member != "" && g.r == nil {
			if _, err := s.l.EnrollMember("e", g.member, s.l.head()); err != nil {
				s.t.Fatalf("step %d: enrol member %s: %v", s.steps, g.member, err)
			}
		}
		if g.r != nil {
			continue
		}
		r, err := s.l.Reader(name, ReaderOptions{})
		if err != nil {
			s.t.Fatalf("step %d: open target %s: %v", s.steps, name, err)
		}
		g.r = r
	}
}

// step is one round, and what happens in it.
func (s *soak) step() {
	s.steps++
	s.weather()
	time.Sleep(soakStep) // also for the log to see that there is space again
	s.commit()
	for _, name := range s.names() {
		if g := s.targets[name]; g.down > 0 {
			g.down--
		} else {
			s.read(name, g)
		}
	}
	if s.full.Load() {
		return // targets neither come nor go: a reservation may need space
	}
	switch s.rng.IntN(60) {
	case 0:
		s.crash(s.segments.kill(), s.saves.kill())
		s.events.kills++
	case 1:
		luck := rand.New(rand.NewPCG(s.rng.Uint64(), 0)) // of its own: it is asked as often as there are writes
		s.crash(s.segments.cut(luck), s.saves.cut(luck))
		s.events.cuts++
	case 2, 3, 4, 5, 6, 7:
		s.come()
	case 8, 9, 10, 11, 12, 13:
		s.leave()
	}
}

// weather makes the disk full for some steps, and gives it space again.
func (s *soak) weather() {
	if s.fullFor > 0 {
		s.fullFor--
	} else if s.rng.IntN(100) == 0 {
		s.fullFor = 1 + s.rng.IntN(24)
		s.events.full++
	}
	s.full.Store(s.fullFor > 0)
}

// commit commits a round. Only a full disk may refuse it.
func (s *soak) commit() {
	now := time.Now().UnixMilli()
	app := s.l.AppenderV2(context.Background())
	add := func(v float64, ls labels.Labels) {
		if _, err := app.Append(0, ls, 0, now, v, nil, nil, storage.AppendV2Options{}); err != nil {
			s.t.Fatal(err)
		}
	}
	for i := range soakStable {
		add(float64(s.steps), labels.FromStrings("__name__", "stable", "i", strconv.Itoa(i)))
	}
	hour := s.steps * int(soakStep) / int(time.Hour)
	for i := range soakChurn {
		add(s.rng.Float64(), labels.FromStrings("__name__", "churn", "i", strconv.Itoa(i), "pod", strconv.Itoa(hour)))
		if s.steps%int(time.Hour/soakStep) == 0 && i%2 == 0 { // half of those that ended are marked
			add(math.Float64frombits(value.StaleNaN), labels.FromStrings("__name__", "churn", "i", strconv.Itoa(i), "pod", strconv.Itoa(hour-1)))
		}
	}
	if err := app.Commit(); err != nil {
		if !s.full.Load() {
			s.t.Fatalf("step %d: commit: %v", s.steps, err)
		}
		s.events.refused++
	}
}

// read delivers what a target has before it.
func (s *soak) read(name string, g *soakTarget) {
	sp := g.r.Savepoint()
	for last := sp.Acked().Commit; last < s.l.head().Commit; {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		e, err := g.r.Next(ctx)
		cancel()
		if err != nil {
			s.t.Fatalf("step %d: target %s after commit %d, head %+v: %v", s.steps, name, last, s.l.head(), err)
		}
		last = e.End.Commit
		o := e.Missing
		o.Delivered += e.Count()
		g.r.Advance(e.End, o)
	}
	ledger := g.r.Ledger()
	if !ledger.Balanced() {
		s.t.Errorf("step %d: the ledger of %s does not add up: %+v", s.steps, name, ledger)
	}
	if n := ledger.Dropped[queue.Budget]; n > g.lost {
		g.lost = n
		s.events.budget++
	}
	if s.rng.IntN(40) == 0 {
		g.down = 1 + s.rng.IntN(3*soakDay/2)
	}
}

// crash ends the process without a word; another one finds these disks.
func (s *soak) crash(segments, saves *memDir) {
	s.segments.switchOff()
	s.saves.switchOff()
	for _, g := range s.targets {
		_ = g.r.Close() // tells of the crash
		g.r = nil
	}
	_ = s.l.Close() // likewise
	s.segments, s.saves = segments, saves
	s.boot()
}

// come adds a target, or a member of the family.
func (s *soak) come() {
	if len(s.targets) > 2*soakMost {
		return
	}
	s.made++
	name := fmt.Sprintf("t%d", s.made)
	g := &soakTarget{}
	if s.rng.IntN(2) == 0 {
		g.member, name = name, queue.Member("e", name)
	}
	s.targets[name] = g
	s.enroll()
	s.events.came++
}

// leave ends a target: its entry is gone from the configuration, and its queue goes when it has been an orphan for long enough. A
// member is released.
func (s *soak) leave() {
	for _, name := range s.names() {
		g := s.targets[name]
		if name == "e" || len(s.targets) <= soakMost {
			continue
		}
		if err := g.r.Close(); err != nil {
			s.t.Fatalf("step %d: close target %s: %v", s.steps, name, err)
		}
		delete(s.targets, name)
		if g.member != "" {
			if err := s.l.Release("e", g.member); err != nil {
				s.t.Fatalf("step %d: %v", s.steps, err)
			}
		}
		s.enroll()
		s.events.went++
		return
	}
}

// names are those of the targets, in the same order in each run.
func (s *soak) names() []string { return slices.Sorted(maps.Keys(s.targets)) }

// day lives a day. It returns the mean of what the log takes at the end of each hour: one moment depends on which targets are there.
func (s *soak) day() (mean usage) {
	for range 24 {
		for range soakHour {
			s.step()
		}
		u := s.usage()
		mean.heap += u.heap
		mean.goroutines += u.goroutines
		mean.descriptors += u.descriptors
		mean.disk += u.disk
	}
	return usage{mean.heap / 24, mean.goroutines / 24, mean.descriptors / 24, mean.disk / 24}
}

// usage is what the log takes now.
func (s *soak) usage() usage {
	synctest.Wait()
	runtime.GC()
	runtime.GC() // the first one only ends what sync.Pools hold
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{heap: int(m.HeapAlloc), goroutines: runtime.NumGoroutine()}
	for _, d := range []*memDir{s.segments, s.saves} {
		d.mu.Lock()
		u.descriptors += d.handles
		for _, i := range d.entries {
			u.disk += i.data.size
		}
		u.heap -= d.memory()
		d.mu.Unlock()
	}
	return u
}
