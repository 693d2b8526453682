package remotewrite

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/internal/tools/tier"
	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/metrics"
	"hwsagent/wal/queue"
)

var (
	featuresSeed  = flag.Uint64("features.seed", 0, "replay this seed of TestChaosOfFeatures only")
	featuresSeeds = flag.Int("features.seeds", tier.Of(100, 200), "how many seeds TestChaosOfFeatures runs")
	featuresFrom  = flag.Uint64("features.from", 1, "the first of them")
)

// TestChaosOfFeatures runs random faults against random receivers that refuse no sample of this agent for ever, with random
// combinations of features: native histograms, exemplars, zstd, both versions of the protocol, a backlog beside fresh samples,
// series that come and go, several samples of a series in one commit, and late samples. The receiver gets all samples, each
// series in order, no sample counts as lost, and each exemplar arrives or is counted.
func TestChaosOfFeatures(t *testing.T) {
	seeds := *featuresSeeds
	if testing.Short() {
		seeds = min(seeds, 20)
	}
	fired := map[string]int{}
	// Seeds beyond the others: a receiver that takes only 2.0, and failed at first, got one request after another, without a pause. Exemplars of a part of
	// a divided batch were neither sent nor counted when the target was held meanwhile. A commit that waited for the target's clock was delivered
	// twice, and counted twice, when the lane was split. A receiver of 1.0 that answers 500 to 2.0 was asked for its time as 2.0 only, for ever.
	// Samples whose outcome was withheld lost it when a reason for muting became known, so the target stood still. Exemplars of samples in doubt
	// that were given up unsent were not counted. A receiver that answered 500 to each body with zstd cost every batch a pause. A target that was held
	// for its clock was tested in 2.0 only, which it did not read. Exemplars of a batch that was being divided when the queue stopped were not counted.
	// Nor were those of a sample that a held target took as a test, if its window ended then.
	lives := []uint64{1908, 1398, 286, 155, 6196, 24986, 65687, 400808, 401208, 1002327, 2200169}
	for i := range seeds {
		lives = append(lives, *featuresFrom+uint64(i))
	}
	for _, seed := range lives {
		if *featuresSeed != 0 {
			seed = *featuresSeed
		}
		t.Run(fmt.Sprintf("features.seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newFeatures(t, seed, fired).live() })
		})
		if *featuresSeed != 0 {
			return
		}
	}
	t.Log(fired)
	if fired[wrongProof] > 1+seeds/2000 { // it was one in 20,000 lives; a second one in 200 would be a fault
		t.Errorf("%d samples were rejected because one of two backends refuses all", fired[wrongProof])
	}
	if testing.Short() || t.Failed() {
		return
	}
	for _, f := range featureFaults {
		if fired[f.name] == 0 {
			t.Errorf("fault %q never fired", f.name)
		}
	}
	for _, name := range []string{killFired, splitFired, zstdFired, exemplarFired, endedFired, skewFired, diskFired, seriesRefused, reloadFired, policyFired, twiceFired} {
		if fired[name] == 0 {
			t.Errorf("%s: never", name)
		}
	}
}

// Counted beside the faults.
const (
	killFired     = "kills with samples in doubt"
	zstdFired     = "requests of zstd"
	exemplarFired = "exemplars that arrived"
	endedFired    = "series that ended"
	wrongProof    = "good samples rejected because one of two backends refuses all"
	skewFired     = "requests accepted while the clock was wrong"
	diskFired     = "times in which the disk failed"
	reloadFired   = "starts with another configuration"
	twiceFired    = "requests that the client sent twice"
	policyFired   = "samples dropped because the entry says so"
)

// featureFault is an answer instead of the receiver's.
type featureFault struct {
	name   string
	answer func(r *rand.Rand, q fakeRequest) (client.Answer, bool)
}

var featureFaults = append(slices.Collect(func(yield func(featureFault) bool) {
	for _, f := range faults {
		if !yield(featureFault(f)) {
			return
		}
	}
}),
	featureFault{"a firewall answers 400 to all samples", func(_ *rand.Rand, q fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 400, Text: "blocked"}, len(q.samples) > 0
	}},
	featureFault{"413 to all samples", func(_ *rand.Rand, q fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 413, Text: "too large"}, len(q.samples) > 0
	}},
	featureFault{"422 to all samples", func(_ *rand.Rand, q fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 422}, len(q.samples) > 0
	}},
	featureFault{"a web page for everything", func(*rand.Rand, fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 200, Page: true, HTML: true, Text: "<html>"}, true
	}},
	featureFault{"one of two answers 400", func(r *rand.Rand, _ fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 400, Text: "bad request"}, r.IntN(2) == 0
	}},
	featureFault{"one of two answers 500", func(r *rand.Rand, _ fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 500}, r.IntN(2) == 0
	}},
	featureFault{"500 to one series", func(_ *rand.Rand, q fakeRequest) (client.Answer, bool) {
		return client.Answer{Status: 500, Text: "panic"}, slices.ContainsFunc(q.samples, func(s smp) bool { return strings.HasSuffix(s.series, "3") })
	}},
)

// features is one life of TestChaosOfFeatures.
type features struct {
	*rig
	rnd   *rand.Rand
	dice  *rand.Rand // the receiver's, under to.mu
	mu    sync.Mutex // of fired
	fired map[string]int

	histograms int // one series in so many has histograms; 0: none
	series     int
	churn      bool
	several    bool
	late       bool
	liveFirst  bool
	refused    seriesLimit   // series that the receiver refuses for ever
	skew       time.Duration // the receiver's clock minus the host's, in its answers; under to.mu
	dated      bool          // the answers have a date
	diskFails  bool
	balanced   bool       // one of two backends refused everything at times
	more       *rand.Rand // of the features that only one life in two has
	twice      *rand.Rand // of the requests that the client sends twice, under to.mu
	reload     *rand.Rand // of the entry that each start has; nil: it stays the same
	fault      int        // under to.mu; -1: none
	loses      int        // one answer in so many is lost; 0: none
	arrived    map[smp]bool
	generation int
	registry   *prometheus.Registry
}

func newFeatures(t *testing.T, seed uint64, fired map[string]int) *features {
	rnd := rand.New(rand.NewPCG(seed, 201))
	to := &fakeReceiver{
		keepsGood: rnd.IntN(3) == 0, anyOrder: rnd.IntN(3) == 0, oneValue: rnd.IntN(3) == 0, refuseEmpty: rnd.IntN(4) == 0,
		hidesWritten: rnd.IntN(3) == 0, latency: time.Duration(rnd.IntN(50)) * time.Millisecond,
	}
	to.keepsGood2 = to.keepsGood || rnd.IntN(2) == 0
	if rnd.IntN(5) == 0 {
		to.maxSamples = 5 + rnd.IntN(200)
	}
	f := &features{rig: newRig(t, to), rnd: rnd, dice: rand.New(rand.NewPCG(seed, 202)), fired: fired, fault: -1, arrived: map[smp]bool{}, registry: prometheus.NewRegistry()}
	if rnd.IntN(2) == 0 {
		f.timed()
	}
	if seed%3 > 0 {
		f.old()
	}
	c := &f.cfg
	c.ProtobufMessage = []string{config.MessageV1, config.MessageV2, config.MessageAuto}[rnd.IntN(3)]
	if c.AsksForV2() {
		to.speaks = speech(rnd.IntN(int(numSpeeches)))
	}
	c.SendNativeHistograms = true
	c.SendExemplars = rnd.IntN(2) == 0
	c.Target.Compression = []config.Compression{config.CompressionZstd, config.CompressionSnappy, config.CompressionZstd}[rnd.IntN(3)]
	c.Queue.MinShards, c.Queue.MaxShards = 1<<rnd.IntN(3), 8
	c.Queue.MaxSamplesPerSend, c.Queue.Capacity = 20+rnd.IntN(300), 100+rnd.IntN(3000)
	f.log.exemplars = rnd.IntN(2) == 0
	f.histograms = []int{0, 0, 2, 5}[rnd.IntN(4)]
	f.series, f.churn, f.several = 3+rnd.IntN(80), rnd.IntN(3) == 0, rnd.IntN(4) == 0
	if f.late = to.anyOrder && rnd.IntN(3) == 0; f.late {
		to.oneValue = false
	}
	f.liveFirst = chaosLanes(seed, to, c)
	m, err := metrics.New(f.registry, "test", "")
	if err != nil {
		t.Fatal(err)
	}
	f.metrics = m
	f.receive()
	if f.more = rand.New(rand.NewPCG(seed, 203)); f.more.IntN(2) == 0 {
		f.enrich()
	}
	f.configure(rand.New(rand.NewPCG(seed, 204)))
	if f.twice = rand.New(rand.NewPCG(seed, 205)); f.twice.IntN(2) == 0 {
		to.sentAgain = f.sendsTwice
	}
	return f
}

// enrich adds features that one life in two has: a receiver that tells the time, which is wrong at times, series that it refuses for ever,
// metadata, and a disk that keeps no reservation at times.
func (f *features) enrich() {
	if f.more.IntN(2) == 0 {
		f.dated, f.sender = true, f
		f.timed()
	}
	if f.more.IntN(2) == 0 {
		f.log.meta = metadata.Metadata{Type: model.MetricTypeGauge, Help: "help"}
	}
	if !f.liveFirst && !f.late && f.more.IntN(3) == 0 {
		f.refused.percent = []uint32{3, 10, 30}[f.more.IntN(3)]
		f.to.poison = func(s smp) bool { return f.refused.bad(s.series) }
		f.to.says = []string{"", limitWords}[f.more.IntN(2)]
	}
	f.diskFails = f.more.IntN(3) == 0
}

// configure makes one life in three change its entry at each start, and one in eight drop what a receiver refuses. With a backlog of its
// own such an entry keeps that where the receiver refuses all of it: it may be too late.
func (f *features) configure(rnd *rand.Rand) {
	if rnd.IntN(8) == 0 && !f.liveFirst {
		f.cfg.Target.OnRefusal = config.RefusalDrop
	}
	if rnd.IntN(3) == 0 {
		f.reload = rnd
	}
}

// sendsTwice makes the client send one request in six twice.
func (f *features) sendsTwice(fakeRequest) bool {
	if f.twice.IntN(6) > 0 {
		return false
	}
	f.count(twiceFired, 1)
	return true
}

// drops reports whether the entry says to drop refused samples.
func (f *features) drops() bool { return f.cfg.Target.OnRefusal == config.RefusalDrop }

// restart starts the queue again, with another entry in lives that change it.
func (f *features) restart() {
	if f.reload != nil {
		f.count(reloadFired, 1)
		c, r := &f.cfg, f.reload
		if r.IntN(2) == 0 && (f.to.speaks == speaksBoth || c.AsksForV2()) {
			c.ProtobufMessage = []string{config.MessageV2, config.MessageAuto}[r.IntN(2)]
			if f.to.speaks == speaksBoth && r.IntN(2) == 0 {
				c.ProtobufMessage = config.MessageV1
			}
		}
		c.Target.Compression = []config.Compression{config.CompressionZstd, config.CompressionSnappy, config.CompressionZstd}[r.IntN(3)]
		c.Queue.MinShards = 1 << r.IntN(3)
		c.Queue.MaxSamplesPerSend, c.Queue.Capacity = 20+r.IntN(300), 100+r.IntN(3000)
		if f.to.anyOrder && !f.drops() {
			c.Target.CatchUp = []config.CatchUp{config.LiveFirst, config.InOrder}[r.IntN(2)]
		}
	}
	f.start()
}

// Send implements [Sender]: the receiver's answer with its time.
func (f *features) Send(ctx context.Context, r client.Request) client.Answer {
	a := f.to.Send(ctx, r)
	f.to.set(func() {
		if a.Status != 0 {
			a.Date = time.Now().Add(f.skew)
		}
		if f.skew < -10*time.Minute && a.Accepted() {
			f.count(skewFired, 1)
		}
	})
	return a
}

// worsen begins a phase of the features of enrich.
func (f *features) worsen() {
	if f.dated {
		skew := []time.Duration{0, 0, 30 * time.Second, 11 * time.Minute, -11 * time.Minute, -3 * time.Hour}[f.more.IntN(6)]
		f.to.set(func() { f.skew = skew })
	}
	if f.diskFails {
		f.failing([]error{nil, errors.New("input/output error")}[f.more.IntN(2)])
	}
}

// failing makes the disk keep reservations again if err is nil, and fail otherwise.
func (f *features) failing(err error) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	if f.log.failing = err; err != nil {
		f.count(diskFired, 1)
	}
}

// receive makes the receiver misbehave as f.fault and f.loses say.
func (f *features) receive() {
	to := f.to
	if victoria := f.rnd.IntN(3); victoria > 0 {
		since, until := time.Now(), time.Duration(f.rnd.IntN(200))*time.Second
		is := func(fakeRequest) bool { return victoria == 1 || time.Since(since) < until }
		stores := f.rnd.IntN(4)
		to.victoria = is
		to.tellsZstd = func(q fakeRequest) (client.Answer, bool) {
			f.count(zstdFired, 1)
			return []client.Answer{{Status: 204}, {Status: 400, Text: "snappy: corrupt input"}, {Status: 415}, {Status: 500}}[stores], !is(q)
		}
	}
	to.loseAnswer = func(fakeRequest) bool { return f.loses > 0 && f.dice.IntN(f.loses) == 0 }
	to.script = func(q fakeRequest) (client.Answer, bool) {
		if f.fault < 0 {
			return client.Answer{}, false
		}
		a, ok := featureFaults[f.fault].answer(f.dice, q)
		if ok {
			f.count(featureFaults[f.fault].name, 1)
			f.balanced = f.balanced || featureFaults[f.fault].name == "one of two answers 400"
		}
		return a, ok
	}
}

// count counts what fired.
func (f *features) count(what string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fired[what] += n
}

// name returns the name of a series.
func (f *features) name(i int) string {
	i += f.generation
	if f.histograms > 0 && i%f.histograms == 0 {
		return fmt.Sprintf("histogram%04d", i)
	}
	return fmt.Sprintf("m%04d", i)
}

// commit appends a round of samples.
func (f *features) commit() {
	f.time += 1000
	var ss []smp
	add := func(i int, t int64) { ss = append(ss, smp{f.name(i), t, float64(t) + float64(i)}) }
	for i := range f.series {
		if f.several && i%7 == 0 {
			add(i, f.time-500)
		}
		if f.late && f.rnd.IntN(50) == 0 {
			add(i, f.time-int64(f.rnd.IntN(20))*1000-300)
			continue
		}
		add(i, f.time)
	}
	f.log.append(ss...)
	if f.churn && f.rnd.IntN(4) == 0 {
		f.endSeries(f.rnd.IntN(5))
	}
}

// endSeries makes the next commit say that n of the series have ended: they come no more, and others come.
func (f *features) endSeries(n int) {
	m := f.log
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range n {
		if s := m.series[f.name(i)]; s != nil {
			m.ended = append(m.ended, s)
			f.count(endedFired, 1)
		}
	}
	f.generation += n
}

func (f *features) live() {
	for range f.rnd.IntN(2) * f.rnd.IntN(60) {
		f.commit()
	}
	f.start()
	for range 3 + f.rnd.IntN(6) {
		fault := -1
		if f.rnd.IntN(3) > 0 {
			fault = f.rnd.IntN(len(featureFaults))
		}
		loses := []int{0, 0, 4, 1}[f.rnd.IntN(4)]
		f.to.set(func() { f.fault, f.loses = fault, loses })
		f.worsen()
		for range 1 + f.rnd.IntN(40) {
			f.commit()
			time.Sleep(time.Duration(f.rnd.IntN(2000)) * time.Millisecond)
			if f.liveFirst {
				time.Sleep(time.Duration(f.rnd.IntN(5000)) * time.Millisecond)
				f.time = max(f.time, time.Now().UnixMilli())
				if f.q.Status().Missed > 0 {
					f.count(splitFired, 1)
				}
			}
		}
		switch f.rnd.IntN(6) {
		case 0:
			f.end()
			f.restart()
		case 1:
			f.end()
			if f.log.durable.High.Commit > f.log.durable.Acked().Commit {
				f.count(killFired, 1)
			}
			f.log.crash()
			f.restart()
		case 2:
			f.q.CredentialsChanged()
		case 3:
			f.q.Poke()
		}
	}
	f.to.set(func() { f.fault, f.loses, f.skew = -1, 0, 0 })
	f.failing(nil)
	defer f.explain()
	f.drained(2 * time.Hour)
	f.end()
	f.check()
}

// explain logs what a failed life was.
func (f *features) explain() {
	if t := f.t.(*testing.T); t.Failed() {
		c := f.cfg
		for _, l := range f.letters.all() {
			t.Logf("letter %s %+v", time.UnixMilli(l.Timestamp).UTC().Format("04:05"), l)
		}
		t.Log(f.to.dump())
		t.Logf("drops %t, reloads %t, keeps %t %t, anyOrder %t, oneValue %t, refuseEmpty %t, hides %t, max %d, speaks %d; message %s, compression %v, exemplars %t %t, histograms %d, churn %t, several %t, late %t, live %t, series %d, shards %d, batch %d, capacity %d",
			f.drops(), f.reload != nil, f.to.keepsGood, f.to.keepsGood2, f.to.anyOrder, f.to.oneValue, f.to.refuseEmpty, f.to.hidesWritten, f.to.maxSamples, f.to.speaks, c.ProtobufMessage, c.Target.Compression, c.SendExemplars, f.log.exemplars, f.histograms, f.churn, f.several, f.late, f.liveFirst, f.series, c.Queue.MinShards, c.Queue.MaxSamplesPerSend, c.Queue.Capacity)
	}
}

// check checks the promises at the end of a life.
func (f *features) check() {
	f.t.Helper()
	o := f.log.outcome()
	missing, bad, twins := 0, uint64(0), uint64(0)
	type at struct {
		series string
		t      int64
	}
	values := map[at]bool{}
	for x := range f.to.has {
		values[at{x.series, x.t}] = true
	}
	lacks := func(x smp) {
		switch {
		case f.refused.bad(x.series):
			bad++
			return
		case values[at{x.series, x.t}]: // another value at its time went in the same window
			twins++
			return
		}
		if missing++; missing < 4 && f.refused.percent == 0 && !f.balanced && !f.drops() {
			f.t.Errorf("the receiver does not have %+v", x)
		}
	}
	for _, e := range f.log.entries {
		for _, s := range e.Samples {
			if x := smpOf(s); !f.to.has[x] {
				lacks(x)
			}
		}
		for _, h := range e.Histograms {
			if x := (smp{h.Series.Labels().Get("__name__"), h.T, h.H.Sum}); !f.to.has[x] {
				lacks(x)
			}
		}
	}
	switch {
	case f.drops():
		f.count(policyFired, int(o.GivenUp()))
		if crashed := o.Sum() < f.log.Head().Total; uint64(missing)+bad > o.GivenUp() && !crashed {
			f.t.Errorf("%d samples are missing: %+v", uint64(missing)+bad, o)
		}
	case f.balanced && missing == 1 && o.GivenUp() == 1 && o.Dropped[queue.Rejected] == 1: // less than one proof in 8,000 is wrong (split.FullTurns)
		f.count(wrongProof, 1)
	case twins > 0 && o.GivenUp() == twins && o.Dropped[queue.Rejected] == twins && missing == 0:
	case f.several && o.GivenUp() == o.Dropped[queue.Unconfirmed] && missing == 0 && bad == 0:
		// An earlier sample of a series in one commit is late when a window is read again, and may be stored: it is.
	case f.refused.percent == 0 && o.GivenUp() > 0, o.Dropped[queue.Rejected] > bad, o.Dropped[queue.Future] > 0, o.Dropped[queue.TooOld] > 0:
		f.t.Errorf("samples count as lost: %+v; %d are bad", o, bad)
	case f.refused.percent == 0 && missing > 0:
		f.t.Errorf("the receiver does not have %d samples", missing)
	case missing > 0 && uint64(missing) > o.Dropped[queue.Unconfirmed]:
		f.t.Errorf("the receiver does not have %d good samples: %+v", missing, o)
	}
	if f.refused.percent > 0 {
		f.count(seriesRefused, 1)
		f.count(gaveUpGood, min(missing, 1))
	}
	for name, have := range f.to.stored {
		for i := 1; i < len(have); i++ {
			if have[i].t <= have[i-1].t && !f.to.anyOrder {
				f.t.Errorf("series %s is stored out of order", name)
			}
		}
	}
	f.checkExemplars()
}

// checkExemplars checks that each exemplar came with samples that the receiver has, or was counted.
func (f *features) checkExemplars() {
	f.t.Helper()
	if !f.cfg.SendExemplars || !f.log.exemplars {
		return
	}
	for _, q := range f.to.log() {
		if q.status != 204 && q.status != 0 || slices.ContainsFunc(q.samples, func(s smp) bool { return !f.to.has[s] }) {
			continue
		}
		for _, x := range q.exemplars {
			f.arrived[x] = true
		}
	}
	f.count(exemplarFired, len(f.arrived))
	lost := map[smp]bool{}
	for _, e := range f.log.entries {
		for _, x := range e.Exemplars {
			if s := (smp{x.Series.Labels().Get("__name__"), x.T, x.V}); !f.arrived[s] {
				lost[s] = true
			}
		}
	}
	if failed := failedExemplars(f.t.(*testing.T), f.registry); len(lost) > failed {
		some := slices.Collect(maps.Keys(lost))
		f.t.Errorf("%d exemplars did not arrive, and %d are counted; such as %+v", len(lost), failed, some[:min(3, len(some))])
	}
}
