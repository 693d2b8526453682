package remotewrite

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/tools/tier"
	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

var (
	chaosSeed  = flag.Uint64("chaos.seed", 0, "replay this seed of TestChaos only")
	chaosSeeds = flag.Int("chaos.seeds", tier.Of(200, 800), "how many seeds TestChaos runs")
	chaosFrom  = flag.Uint64("chaos.from", 1, "the first of them")
)

// TestChaos runs random faults against random receivers. In every run the account adds up, the order of each series is
// kept, and a sample that the receiver does not have counts as lost. Without bad samples, no sample is lost. Series
// that are always refused cost good samples in few lives: the search among many of them can use up its requests
// (docs/remote-write.md, "Refused samples").
func TestChaos(t *testing.T) {
	seeds := *chaosSeeds
	if testing.Short() {
		seeds = min(seeds, 40)
	}
	fired := map[string]int{}
	// Seeds beyond the others: a receiver of 1.0 that accepts empty writes of 2.0, and refuses those of 1.0 and late
	// samples, was held for ever. An answer was lost and then the request was too large: the evidence of its second
	// half about the first was not used. Samples of series that the target had accepted overtook those of new series,
	// so these counted as stored after a kill.
	lives := []uint64{1214, 1930, 400126, 601967}
	for i := range seeds {
		lives = append(lives, *chaosFrom+uint64(i))
	}
	for _, seed := range lives {
		if *chaosSeed != 0 {
			seed = *chaosSeed
		}
		t.Run(fmt.Sprintf("chaos.seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, seed, fired) })
		})
		if *chaosSeed != 0 || t.Failed() {
			return
		}
	}
	if fired[mutedFired] == 0 {
		t.Error("no series was ever muted")
	}
	if fired[takesOldFired] == 0 {
		t.Error("no target was seen to take old samples")
	}
	if fired[splitFired] == 0 {
		t.Error("there never was a backlog beside what is fresh")
	}
	if t.Logf("%d of %d lives with refused series gave good samples up", fired[gaveUpGood], fired[seriesRefused]); 50*fired[gaveUpGood] > max(50, fired[seriesRefused]) {
		t.Errorf("more than 2 %% of the lives with refused series gave good samples up: %d of %d", fired[gaveUpGood], fired[seriesRefused])
	}
	for _, f := range faults {
		if fired[f.name] == 0 {
			t.Errorf("fault %q never fired", f.name)
		}
	}
}

func smpOf(s wal.Sample) smp { return smp{s.Series.Labels().Get("__name__"), s.T, s.V} }

// faults are answers instead of the receiver's.
var faults = []struct {
	name   string
	answer func(r *rand.Rand, q fakeRequest) (client.Answer, bool)
}{
	{"network", func(*rand.Rand, fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, true }},
	{"5xx", func(*rand.Rand, fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 503, Text: "busy"}, true
	}},
	{"5xx now and then", func(r *rand.Rand, _ fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 500}, r.IntN(3) == 0
	}},
	{"429", func(*rand.Rand, fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 429, RetryAfter: 3 * time.Second}, true
	}},
	{"401", func(*rand.Rand, fakeRequest) (client.Answer, bool) { return client.Answer{Status: 401}, true }},
	{"404", func(*rand.Rand, fakeRequest) (client.Answer, bool) { return client.Answer{Status: 404}, true }},
	{"proxy says 400", func(*rand.Rand, fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 400, Text: "<html>"}, true
	}},
	{"redirect", func(*rand.Rand, fakeRequest) (client.Answer, bool) { return client.Answer{Status: 307}, true }},
	{"415", func(*rand.Rand, fakeRequest) (client.Answer, bool) { return client.Answer{Status: 415}, true }},
	{"413", func(_ *rand.Rand, q fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 413}, len(q.samples) > 70
	}},
}

// chaosVersions picks the version that a target asks for, and the versions that it accepts.
func chaosVersions(seed uint64, to *fakeReceiver, cfg *config.Config) {
	rnd := rand.New(rand.NewPCG(seed, 101))
	cfg.ProtobufMessage = []string{config.MessageV1, config.MessageV2, config.MessageAuto}[rnd.IntN(3)]
	if to.keepsGood2, to.hidesWritten = to.keepsGood || rnd.IntN(2) == 0, rnd.IntN(3) == 0; cfg.AsksForV2() {
		to.speaks = speech(rnd.IntN(int(numSpeeches)))
	}
}

// fired counts these beside faults: requests during a backlog, lives in which series were always refused, and those of
// them in which good samples were given up as unconfirmed.
const (
	splitFired    = "backlog beside what is fresh"
	seriesRefused = "series refused for ever"

	takesOldFired = "target seen to take old samples"

	mutedFired = "muted series"
	gaveUpGood = "good samples given up beside refused series"
)

// chaosLanes decides whether a target gets fresh samples first, and the time between those and the slowest backlog. The
// target then accepts late data.
func chaosLanes(seed uint64, to *fakeReceiver, cfg *config.Config) bool {
	rnd := rand.New(rand.NewPCG(seed, 102))
	if rnd.IntN(3) > 0 {
		return false
	}
	to.anyOrder, cfg.Target.CatchUp = true, config.LiveFirst
	cfg.Target.CatchUpRateLimit = float64(rnd.IntN(3) * (50 + rnd.IntN(500)))
	return true
}

func chaos(t *testing.T, seed uint64, fired map[string]int) {
	rnd := rand.New(rand.NewPCG(seed, 99))
	to := &fakeReceiver{
		keepsGood:   rnd.IntN(3) == 0,
		anyOrder:    rnd.IntN(4) == 0,
		refuseEmpty: rnd.IntN(4) == 0,
		latency:     time.Duration(rnd.IntN(50)) * time.Millisecond,
	}
	r := newRig(t, to)
	if seed%2 == 0 {
		r.timed()
	}
	if seed%3 > 0 {
		r.old()
	}
	chaosVersions(seed, to, &r.cfg)
	r.cfg.Queue.MinShards = 1 << rnd.IntN(3)
	r.cfg.Queue.MaxShards = 8
	r.cfg.Queue.MaxSamplesPerSend = 50 + rnd.IntN(500)
	r.cfg.Queue.Capacity = 100 + rnd.IntN(5000)
	poisons := rnd.IntN(2) * rnd.IntN(4)
	series := 5 + rnd.IntN(150)
	start := r.time
	var limit seriesLimit
	to.poison = func(s smp) bool {
		if limit.bad(s.series) {
			return true
		}
		// A few samples, scattered.
		h := uint64(s.t-start)*31 + uint64(s.v)%1000
		return poisons > 0 && h%7919 < uint64(poisons)
	}
	// The receiver's, under to.mu.
	fault, loses := -1, false
	dice := rand.New(rand.NewPCG(seed, 100))
	set := func(f int, l bool) {
		to.mu.Lock()
		defer to.mu.Unlock()
		fault, loses = f, l
	}
	// The scheduler decides which goroutine that waits for the same moment runs first, and nearly always picks the same
	// one: the seed moves them slightly apart.
	turns, reads := rand.New(rand.NewPCG(seed, 102)), rand.New(rand.NewPCG(seed, 103))
	jitter := time.Duration(turns.IntN(3)) * 10 * time.Microsecond
	to.pace = func(time.Time) time.Duration { return to.latency + jitter*time.Duration(turns.IntN(5)) }
	if lag := reads.IntN(4); lag > 1 {
		r.log.slow = func() time.Duration { return time.Duration(reads.IntN(1<<(5*lag))) * time.Microsecond }
	}
	to.loseAnswer = func(fakeRequest) bool { return loses && dice.IntN(4) == 0 }
	to.script = func(q fakeRequest) (client.Answer, bool) {
		if fault < 0 {
			return client.Answer{}, false
		}
		a, ok := faults[fault].answer(dice, q)
		if ok {
			fired[faults[fault].name]++
		}
		return a, ok
	}
	live := chaosLanes(seed, to, &r.cfg)
	if !live { // three refused series look like a backlog that is too old
		limit.percent = []uint32{0, 0, 3, 10, 30}[rand.New(rand.NewPCG(seed, 104)).IntN(5)]
	}
	if limit.percent > 0 && poisons == 0 && seed%4 > 0 {
		to.says = limitWords
	}
	for range rnd.IntN(2) * rnd.IntN(100) {
		r.round(series)
	}
	crashes := 0
	r.start()
	for range 3 + rnd.IntN(6) {
		f := -1
		if rnd.IntN(3) > 0 {
			f = rnd.IntN(len(faults))
		}
		set(f, rnd.IntN(3) == 0)
		for range 1 + rnd.IntN(40) {
			r.round(series)
			time.Sleep(time.Duration(rnd.IntN(2000)) * time.Millisecond)
			if r.q.live.takesOld.Load() { // until the backlog is sent
				to.set(func() { fired[takesOldFired]++ })
			}
			if live { // outages are longer, with samples during them
				time.Sleep(time.Duration(rnd.IntN(5000)) * time.Millisecond)
				r.time = max(r.time, time.Now().UnixMilli())
				if r.q.Status().Missed > 0 {
					to.set(func() { fired[splitFired]++ })
				}
			}
		}
		switch rnd.IntN(6) {
		case 0: // stopped and started
			r.end()
			r.start()
		case 1: // killed
			r.end()
			r.log.crash()
			crashes++
			r.start()
		case 2:
			r.q.CredentialsChanged()
		}
		if len(r.q.Status().Muted) > 0 {
			to.set(func() { fired[mutedFired]++ })
		}
	}
	set(-1, false)
	r.drained(2 * time.Hour)
	r.end()

	o := r.log.outcome()
	if crashes == 0 && o.Sum() != r.log.Head().Total {
		t.Errorf("%d appended, %d accounted for", r.log.Head().Total, o.Sum())
	}
	var missing, good uint64
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			x := smpOf(s)
			if to.has[x] {
				continue
			}
			if missing++; !to.poison(x) {
				if good++; good < 4 && limit.percent == 0 {
					t.Errorf("receiver does not have %+v", x)
				}
			}
		}
	}
	t.Logf("%d %% of the series are refused, %d good samples are given up; %+v; %d requests", limit.percent, good, o, len(to.requests))
	if limit.percent > 0 {
		fired[seriesRefused]++
		fired[gaveUpGood] += int(min(good, 1))
	}
	if good > 0 && o.Dropped[queue.Unconfirmed] < good {
		t.Errorf("%d good samples are missing; %+v", good, o)
	}
	// One letter may stand for many samples of refused series, so the test cannot know which samples it excuses.
	if crashes == 0 && limit.percent == 0 && missing > o.GivenUp() {
		t.Errorf("%d samples are missing, %d were given up", missing, o.GivenUp())
	}
	if poisons == 0 && limit.percent == 0 && o.GivenUp() > 0 {
		t.Errorf("outcomes %+v without a bad sample", o)
	}
	for name, have := range to.stored {
		for i := 1; i < len(have); i++ {
			if have[i].t <= have[i-1].t && !to.anyOrder {
				t.Errorf("series %s is stored out of order", name)
			}
		}
	}
	if t.Failed() {
		for _, l := range r.letters.all() {
			t.Logf("letter %s %+v", time.UnixMilli(l.Timestamp).UTC().Format("04:05"), l)
		}
		t.Log(r.to.dump())
		t.Logf("receiver %+v shards=%d poisons=%d series=%d crashes=%d", []any{to.keepsGood, to.keepsGood2, to.anyOrder, to.refuseEmpty, to.speaks, to.hidesWritten, r.cfg.ProtobufMessage}, r.cfg.Queue.MinShards, poisons, series, crashes)
	}
}
