package split

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	modelSeed  = flag.Uint64("model.seed", 0, "replay this case of TestModel only")
	modelFrom  = flag.Uint64("model.from", 1, "the first case of TestModel")
	modelCases = flag.Int("model.cases", cases(), "how many cases TestModel runs; HWSAGENT_SPLIT_CASES in the environment sets it, too")
)

func cases() int {
	if n, err := strconv.Atoi(os.Getenv("HWSAGENT_SPLIT_CASES")); err == nil {
		return n
	}
	return 5000
}

// logged is a sample of the model's log.
type logged struct {
	Sample
	bad, poison bool // refused, or answered 500, whatever else
	late, twin  bool // another sender wrote something newer, or another value at this time
}

// receiver is a random receiver of the model. Its faults end.
type receiver struct {
	rnd      *rand.Rand
	keeps    bool // stores the good part of a refused request
	anyOrder bool // takes late samples
	tells    bool // in a database's words
	oldest   int64
	limit    int  // samples of a request
	limitBy  Kind // the answer to more
	backends int  // of which one refuses everything, in turn; 0: one healthy one
	saying   Kind // that one's answer
	percent  int  // of requests that are answered by randomly
	randomly Kind
	ill      [2]time.Duration // from when to when it answers everything by illness
	illness  Kind
	noDate   bool

	began  time.Time
	now    time.Time
	n      int
	newest map[uint64]int64
	has    map[*logged]bool
	fired  map[string]int
}

func (r *receiver) String() string {
	return fmt.Sprintf("keeps %t anyOrder %t tells %t oldest %d limit %d by %d backends %d saying %d random %d%% %d ill %v %d", r.keeps, r.anyOrder, r.tells, r.oldest, r.limit, r.limitBy, r.backends, r.saying, r.percent, r.randomly, r.ill, r.illness)
}

// kind hides what a database would say, if the receiver has none of the known ones.
func (r *receiver) kind(k Kind) Kind {
	if !r.tells && k.fromDatabase() {
		return Opaque
	}
	return k
}

// answer answers a request.
func (r *receiver) answer(samples []*logged) Answer {
	r.n++
	r.now = r.now.Add(5 * time.Millisecond)
	date := r.now.UnixMilli()
	if r.noDate {
		date = 0
	}
	a := func(k Kind, words string) Answer { return Answer{Kind: k, Words: words, Lost: k == Failed, Date: date} }
	since := r.now.Sub(r.began)
	switch {
	case since >= r.ill[0] && since < r.ill[1]:
		r.fired["ill"]++
		return a(r.illness, "ill")
	case r.backends > 0 && r.n%r.backends == 0:
		r.fired["backends"]++
		return a(r.saying, "of a backend")
	case r.percent > 0 && r.rnd.IntN(100) < r.percent:
		r.fired["random"]++
		return a(r.randomly, "random")
	case r.limit > 0 && len(samples) > r.limit:
		r.fired["limit"]++
		return a(r.limitBy, "too many")
	}
	worst, words := Taken, ""
	for _, s := range samples {
		k, w := r.one(s)
		if k == Failed {
			r.fired["poison"]++
			return a(k, w)
		}
		if k != Taken && (worst == Taken || k == Bad) {
			worst, words = k, w
		}
	}
	if worst != Taken && !r.keeps {
		return a(r.kind(worst), words)
	}
	for _, s := range samples {
		if k, _ := r.one(s); k == Taken {
			r.has[s] = true
			r.newest[s.Series] = max(r.newest[s.Series], s.T)
		}
	}
	if worst == Taken && r.rnd.IntN(50) == 0 && r.percent > 0 {
		r.fired["answer lost"]++
		return a(Failed, "the answer is lost")
	}
	return a(r.kind(worst), words)
}

// one returns what the receiver says to a sample.
func (r *receiver) one(s *logged) (Kind, string) {
	switch {
	case s.bad:
		return Bad, "bad"
	case s.poison:
		return Failed, "poison"
	case r.has[s]:
		if r.anyOrder || r.newest[s.Series] == s.T {
			return Taken, ""
		}
		return Late, "late"
	case s.twin:
		return Duplicate, "twin"
	case s.T < r.oldest:
		return TooOld, "old"
	case r.anyOrder:
		return Taken, ""
	case s.late || s.T <= r.newest[s.Series]:
		return Late, "late"
	}
	return Taken, ""
}

// model drives machines as the queue does, and judges.
type model struct {
	t        *testing.T
	r        *receiver
	facts    Facts
	mutes    Mutes
	control  *logged
	rejected map[uint64]uint8 // samples in a row, by series
	stuck    bool             // held for good
}

// TestModel runs random batches against random receivers. Every sample gets one outcome; a delivered one is stored; no good sample
// is rejected; a sample is given up unconfirmed only if it may be stored or the receiver fails at it; and each batch ends
// within fixed bounds of requests and time once the receiver's faults have ended.
func TestModel(t *testing.T) {
	fired := map[string]int{}
	n := *modelCases
	if testing.Short() {
		n = min(n, 1000)
	}
	for i := range n {
		seed := *modelFrom + uint64(i)
		if *modelSeed != 0 {
			seed = *modelSeed
		}
		modelCase(t, seed, fired)
		if t.Failed() {
			t.Fatalf("seed: go test -run TestModel -model.seed=%d", seed)
		}
		if *modelSeed != 0 {
			return
		}
	}
	t.Log(fired)
	for _, what := range []string{"ill", "backends", "random", "limit", "poison", "answer lost", "held", "rejected", "late", "too old", "unconfirmed", "muted", "muted new", "smaller"} {
		if fired[what] == 0 && n >= 1000 {
			t.Errorf("%s: never", what)
		}
	}
}

func newReceiver(rnd *rand.Rand, fired map[string]int) *receiver {
	began := time.Unix(1_700_000_000, 0)
	r := &receiver{
		rnd: rnd, keeps: rnd.IntN(2) == 0, anyOrder: rnd.IntN(3) == 0, tells: rnd.IntN(3) > 0, noDate: rnd.IntN(4) == 0,
		began: began, now: began, newest: map[uint64]int64{}, has: map[*logged]bool{}, fired: fired,
	}
	kinds := []Kind{Opaque, Bad, Late, Failed}
	switch rnd.IntN(7) {
	case 0:
		r.backends, r.saying = 2+rnd.IntN(2), kinds[rnd.IntN(4)]
	case 1:
		r.percent, r.randomly = 10+rnd.IntN(40), Failed
	case 2:
		r.limit, r.limitBy = 100+rnd.IntN(100), []Kind{TooLarge, Failed}[rnd.IntN(2)]
	case 3:
		from := time.Duration(rnd.IntN(200)) * time.Millisecond
		r.ill, r.illness = [2]time.Duration{from, from + time.Duration(rnd.IntN(600))*time.Second}, []Kind{Opaque, Failed, TooLarge}[rnd.IntN(3)]
	}
	return r
}

func modelCase(t *testing.T, seed uint64, fired map[string]int) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	r := newReceiver(rnd, fired)
	m := &model{t: t, r: r, rejected: map[uint64]uint8{}}
	series := uint64(1 + rnd.IntN(250))
	percent := map[string]int{}
	if r.backends == 0 && r.percent == 0 && r.ill[1] == 0 && r.limit == 0 {
		for _, what := range []string{"bad", "poison", "late", "twin"} {
			if rnd.IntN(3) == 0 {
				percent[what] = []int{1, 5, 30}[rnd.IntN(3)]
			}
		}
	}
	is := func(what string, n uint64) bool { return (n*2654435761+uint64(len(what)))%100 < uint64(percent[what]) }
	base := r.now.UnixMilli()
	if rnd.IntN(4) == 0 && len(percent) == 0 {
		r.oldest = base - int64(rnd.IntN(5000))
		base -= 3 * 3_600_000 * int64(rnd.IntN(2))
	}
	doubt := rnd.IntN(3) == 0
	for batch := range 1 + rnd.IntN(6) {
		rounds := 1
		if r.anyOrder {
			rounds += rnd.IntN(3)
		}
		var points []*logged
		for round := range rounds {
			for s := range series {
				p := &logged{Sample: Sample{Series: s, T: base + int64(batch*10+round)*1000, New: is("new", s) || s%3 == 0}}
				p.bad, p.poison = is("bad", s), is("poison", s+1000)
				p.late, p.twin = is("late", s*7+uint64(batch)) && !r.anyOrder, is("twin", s*13+uint64(batch))
				points = append(points, p)
			}
		}
		if doubt && batch == 0 { // a process sent this before it was killed
			for _, p := range points {
				p.Doubt = true
			}
			r.answer(points)
		}
		m.deliver(points, percent)
		if m.stuck {
			return
		}
		if t.Failed() {
			t.Logf("batch %d: %d samples, %d series, %v, %v", batch, len(points), series, percent, r)
			return
		}
	}
}

// deliver delivers a batch, as the queue does.
func (m *model) deliver(points []*logged, percent map[string]int) {
	var left []*logged
	for _, p := range points {
		if fate, _ := m.mutes.Meet(p.Series, m.r.now); fate == Deliver {
			left = append(left, p)
			continue
		}
		m.r.fired["muted"]++
		if !p.bad && !p.poison && (m.r.tells || percent["late"]+percent["twin"] == 0 && m.r.oldest == 0) {
			m.t.Errorf("the good sample %+v was muted", p.Sample)
		}
	}
	began, n := m.r.now, m.r.n
	for round := 0; len(left) > 0; round++ {
		taken := func(p *logged) bool { k, _ := m.r.one(p); return k == Taken }
		if round > 50 && m.control == nil && !slices.ContainsFunc(left, taken) {
			m.stuck = true // no sample was ever taken, and none that waits would be: the target is held, or retried
			return
		}
		if round > 3000 {
			m.t.Errorf("no end: %d samples left after %v and %d requests", len(left), m.r.now.Sub(began), m.r.n-n)
			return
		}
		limit := m.facts.Limit(1000, m.r.now)
		if limit < 1000 {
			m.r.fired["smaller"]++
		}
		part := left[:min(limit, len(left))]
		left = append(m.patient(part), left[len(part):]...)
	}
	if m.stuck {
		return
	}
	spent, took := m.r.n-n, m.r.now.Sub(began)
	if most := 16*len(points) + 400 + 50*int(m.r.ill[1].Seconds()); spent > most && m.r.percent == 0 && m.r.backends == 0 && percent["poison"] == 0 && m.r.tells {
		m.t.Errorf("%d requests for %d samples, at most %d are due", spent, len(points), most)
	}
	if most := 25*len(points) + 1000 + 50*int(m.r.ill[1].Seconds()); spent > most && m.r.percent == 0 && m.r.backends == 0 {
		m.t.Errorf("%d requests for %d samples, at most %d are due", spent, len(points), most)
	}
	if most := m.r.ill[1] + 30*time.Minute; took > most {
		m.t.Errorf("a batch took %v", took)
	}
}

// patient sends a batch until something is known about it. It returns the samples that are left.
func (m *model) patient(points []*logged) []*logged {
	samples := make([]Sample, len(points))
	for i, p := range points {
		samples[i] = p.Sample
		samples[i].Rejected = m.rejected[p.Series]
	}
	mc := New(&m.facts, Config{Extras: m.r.rnd.IntN(4) == 0}, samples)
	if m.facts.TooOld() {
		mc.AskNewest()
		return m.drive(mc, points)
	}
	for failures := 0; ; {
		a := m.r.answer(points)
		if a.Kind.refusal() && !a.Kind.aboutTime() && m.facts.Contradictory(m.r.now) {
			a.Kind = Failed
		}
		switch {
		case a.Kind == Taken:
			m.facts.Took(len(points))
			for _, p := range points {
				m.delivered(p)
			}
			return nil
		case a.Kind != Failed:
			mc.Refused(a, m.r.now)
			return m.drive(mc, points)
		}
		for i := range points {
			points[i].Doubt = points[i].Doubt || a.Lost
		}
		if failures++; failures == 3 {
			mc.Failing(a, m.r.now)
			return m.drive(mc, points)
		}
		m.r.now = m.r.now.Add(time.Duration(m.r.rnd.IntN(1000)) * time.Millisecond)
	}
}

func (m *model) delivered(p *logged) {
	if !m.r.has[p] {
		m.t.Errorf("%+v counts as delivered, and is not stored", p.Sample)
	}
	m.control = p
	delete(m.rejected, p.Series)
}

// drive runs a machine. It returns the samples that are left.
func (m *model) drive(mc *Machine, points []*logged) (left []*logged) {
	for {
		step := mc.Next(m.r.now)
		m.settle(mc.Verdicts(), points)
		switch step.Do {
		case Send:
			if len(step.Samples) == 0 {
				m.t.Error("a request without samples")
				return nil
			}
			var ps []*logged
			for _, i := range step.Samples {
				if mc.samples[i].state != open {
					m.t.Errorf("%+v is sent after its outcome", points[i].Sample)
				}
				ps = append(ps, points[i])
			}
			a := m.r.answer(ps)
			if a.Kind == Failed {
				m.r.now = m.r.now.Add(time.Duration(m.r.rnd.IntN(100)) * time.Millisecond)
			}
			mc.Tell(a, m.r.now)
		case Control:
			if m.control == nil {
				mc.Tell(Answer{Kind: None}, m.r.now)
				continue
			}
			a := m.r.answer([]*logged{m.control})
			if a.Kind == Failed {
				m.r.now = m.r.now.Add(time.Duration(m.r.rnd.IntN(100)) * time.Millisecond)
			}
			mc.Tell(a, m.r.now)
		case Wait:
			if !step.Until.After(m.r.now) {
				m.t.Errorf("wait until %v, now is %v", step.Until, m.r.now)
				return nil
			}
			m.r.now = step.Until
		default:
			for _, i := range mc.Open() {
				points[i].Doubt = mc.Doubt(i)
				left = append(left, points[i])
			}
			if step.Do == Done && len(left) > 0 {
				m.t.Errorf("%d samples are left at the end", len(left))
			}
			if step.Do == Whole {
				m.r.now = m.r.now.Add(time.Duration(m.r.rnd.IntN(1000)) * time.Millisecond)
			}
			if step.Do == Hold && !m.hold(left) {
				return nil
			}
			return left
		}
		m.settle(mc.Verdicts(), points)
	}
}

// hold tests a held target until it takes a sample. It reports whether one is taken: if the receiver would take none of those that
// are left, and took none before, the target is held for good, which is right.
func (m *model) hold(points []*logged) bool {
	m.r.fired["held"]++
	for n := 0; ; n++ {
		m.r.now = m.r.now.Add(15 * time.Second)
		p := points[n/2%len(points)]
		if n%2 == 1 && m.control != nil {
			p = m.control
		}
		if a := m.r.answer([]*logged{p}); a.Kind == Taken || a.Kind.fromDatabase() {
			if a.Kind == Taken {
				m.control = p
			}
			return true
		}
		if n <= 1000 {
			continue
		}
		if m.control != nil || slices.ContainsFunc(points, func(p *logged) bool { k, _ := m.r.one(p); return k == Taken }) {
			m.t.Error("held without end")
		}
		m.stuck = true
		return false
	}
}

// settle judges verdicts.
func (m *model) settle(verdicts []Verdict, points []*logged) {
	r := m.r
	for _, v := range verdicts {
		for _, i := range v.Samples {
			p := points[i]
			k, _ := r.one(p)
			switch v.Outcome {
			case Delivered:
				m.delivered(p)
			case Rejected:
				r.fired["rejected"]++
				m.rejected[p.Series] = min(m.rejected[p.Series]+1, MostRejected)
				if k == Taken || r.has[p] || k == Failed {
					m.t.Errorf("%+v was rejected: %v", p, strings.TrimSpace(r.String()))
				}
				if k == Late {
					r.fired["late"]++
				}
			case Old:
				r.fired["too old"]++
				if k != TooOld {
					m.t.Errorf("%+v counts as too old", p)
				}
			case Unconfirmed:
				r.fired["unconfirmed"]++
				if k == Taken && !r.has[p] {
					m.t.Errorf("%+v was given up: %v", p, r)
				}
			}
			if v.Mute {
				if slices.Index(v.Samples, i) > 0 {
					r.fired["muted new"]++
				}
				m.mutes.Put(p.Series, Reason{Name: "x", Failed: v.Outcome == Unconfirmed}, "words", func() string { return "" }, r.now)
			}
		}
	}
}
