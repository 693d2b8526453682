//go:build linux

package crashlab

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
)

// round is what stands at one moment in the series of one sender, or of one thing that the
// agent reads.
type round struct {
	values [parts]float64
	came   [parts]int // how often
	other  bool       // different values came for one moment
}

// whole returns the number of a round, which are all greater than 0, and false if a part of it is
// missing or differs. It is 0 where series end: that may be told of some of them again.
func (r *round) whole() (uint64, bool) {
	ended, same := true, !r.other
	for part := range parts {
		ended = ended && (r.came[part] == 0 || stale(r.values[part]))
		same = same && r.came[part] > 0 && r.values[part] == r.values[0]
	}
	if ended {
		return 0, !r.other
	}
	return uint64(r.values[0]), same && r.values[0] >= 1
}

func stale(v float64) bool { return math.Float64bits(v) == value.StaleNaN }

// intake is what the target was sent of the inputs: rounds by their time, of each source.
type intake struct {
	mu      sync.Mutex
	sources map[string]map[int64]*round

	ups   map[string][]prompb.Sample // of each job, as they came
	torn  map[sample]bool            // what was sent malformed and has come
	never map[sample]bool            // of that, what may not come
}

func newIntake() *intake {
	return &intake{sources: map[string]map[int64]*round{}, ups: map[string][]prompb.Sample{}, torn: map[sample]bool{}, never: map[sample]bool{}}
}

func (i *intake) add(all []prompb.TimeSeries) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, ts := range all {
		var source string
		switch receiver.Label(ts, "__name__") {
		case saidName:
			source = receiver.Label(ts, saidBy) + " " + receiver.Label(ts, saidWho)
		case toldName:
			source = receiver.Label(ts, "job")
		case "up":
			job := receiver.Label(ts, "job")
			i.ups[job] = append(i.ups[job], ts.Samples...)
			continue
		case tornName:
			for _, s := range ts.Samples {
				if !stale(s.Value) { // the end of a group, which no key of a map is equal to
					i.torn[sample{s.Timestamp, s.Value}] = true
				}
			}
			continue
		default:
			continue
		}
		part, err := strconv.Atoi(receiver.Label(ts, saidPart))
		if err != nil || part < 0 || part >= parts {
			source, part = "garbled", 0
		}
		rounds := i.sources[source]
		if rounds == nil {
			rounds = map[int64]*round{}
			i.sources[source] = rounds
		}
		for _, s := range ts.Samples {
			r := rounds[s.Timestamp]
			if r == nil {
				r = &round{}
				rounds[s.Timestamp] = r
			}
			if r.came[part] > 0 && math.Float64bits(r.values[part]) != math.Float64bits(s.Value) {
				r.other = true
			}
			r.values[part] = s.Value
			r.came[part]++
		}
	}
}

// up counts the rounds of a job since a time that were well, or were not.
func (i *intake) up(job string, since time.Time, well bool) (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range i.ups[job] {
		if s.Timestamp >= since.UnixMilli() && s.Value == map[bool]float64{true: 1, false: 0}[well] {
			n++
		}
	}
	return n
}

func source(s *sender) string { return string(s.way) + " " + strconv.Itoa(s.who) }

// shown returns the number of a group's newest round that came whole, 0 if it is marked stale or none came. The judgement names rounds of
// which a part came.
func (i *intake) shown(s *sender) uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	var number uint64
	newest := int64(math.MinInt64)
	for at, r := range i.sources[source(s)] {
		if n, whole := r.whole(); whole && at > newest {
			number, newest = n, at
		}
	}
	return number
}

// judgement is what the account of the inputs says.
type judgement struct {
	acked, lost int // samples that were answered with 2xx; of these, those that have not come
	twice       int // samples that came again
	pushed      int // pushes and deletions that were answered with 2xx
	undone      int // of these, those that later rounds do not show
	half        int // requests and rounds of which a part came
	refused     int // requests that were refused
	unasked     int // of these, those that were not asked to come again
	stored      int // of these, those that came all the same
	wrong       int // rounds that were never sent
	rounds      map[string]int
	cut         map[way]int               // requests that were sent and got no answer
	cutLives    map[int64]bool            // lives of the agent that ended with such a request
	told        map[string]map[int64]bool // lives in which a source was seen
}

// lives says which life of the agent a time, in milliseconds, belongs to; 0 for none.
type lives []struct{ from, to time.Time }

func (l lives) at(ms int64) int64 {
	for i, life := range l {
		if ms >= life.from.UnixMilli() && (life.to.IsZero() || ms <= life.to.UnixMilli()) {
			return int64(i) + 1
		}
	}
	return 0
}

// judge compares what was said with what came. The senders have ended.
func (in *inputs) judge(l lives) judgement {
	in.t.Helper()
	in.account.mu.Lock()
	defer in.account.mu.Unlock()
	v := judgement{rounds: map[string]int{}, cut: map[way]int{}, cutLives: map[int64]bool{}, told: map[string]map[int64]bool{}}
	shows := 0
	complain := func(format string, args ...any) {
		if shows++; shows <= 20 {
			in.t.Errorf(format, args...)
		}
	}
	for name, rounds := range in.account.sources {
		v.rounds[name], v.told[name] = len(rounds), map[int64]bool{}
		for at, r := range rounds {
			v.told[name][l.at(at)] = true
			for _, times := range r.came {
				v.twice += max(0, times-1)
			}
			if _, whole := r.whole(); !whole {
				v.half++
				complain("%s: at %d a part came only, or another value: %+v", name, at, *r)
			}
		}
	}
	known := map[string]bool{}
	for _, s := range in.senders {
		known[source(s)] = true
		for _, st := range s.said {
			if st.written && st.answer.status == 0 {
				v.cut[s.way]++
				v.cutLives[st.life] = true
			}
			if st.answer.status != 0 && !st.answer.ok() {
				v.refused++
				if !st.answer.retry {
					v.unasked++
				}
			}
		}
		if s.way == byPush {
			in.judgePushes(s, &v, complain)
		} else {
			in.judgeSaid(s, &v, complain)
		}
	}
	for _, job := range []string{"exec", "files", "scraped"} {
		known[job] = true
		last := uint64(0)
		rounds := in.account.sources[job]
		for _, at := range slices.Sorted(maps.Keys(rounds)) {
			if n, whole := rounds[at].whole(); whole && n > 0 {
				if n < last || n > in.teller.n.Load() {
					v.wrong++
					complain("%s: at %d it said %d, after %d", job, at, n, last)
				}
				last = n
			}
		}
		if len(rounds) == 0 {
			in.t.Errorf("nothing of %s has come", job)
		}
	}
	for name := range in.account.sources {
		if !known[name] {
			v.wrong++
			complain("series of %q have come, which does not exist", name)
		}
	}
	return v
}

// judgeSaid is the account of a sender whose requests have times.
func (in *inputs) judgeSaid(s *sender, v *judgement, complain func(string, ...any)) {
	rounds := in.account.sources[source(s)]
	for _, st := range s.said {
		r := rounds[st.at]
		switch {
		case st.answer.ok():
			v.acked += parts
			for part := range parts {
				if r == nil || r.came[part] == 0 {
					v.lost++
					complain("%s, sender %d: number %d was answered with %d and has not come", s.way, s.who, st.n, st.answer.status)
				}
			}
		case st.answer.status != 0 && r != nil:
			v.stored++
			complain("%s, sender %d: number %d was answered with %d (%s) and has come", s.way, s.who, st.n, st.answer.status, st.answer.text)
		}
	}
	at := map[int64]uint64{}
	for _, st := range s.said {
		at[st.at] = st.n
	}
	for t, r := range rounds {
		if n, whole := r.whole(); whole && at[t] != n {
			v.wrong++
			complain("%s, sender %d: %d came for %d, want %d", s.way, s.who, n, t, at[t])
		}
	}
}

// judgePushes is the account of a group: each round shows what was pushed last, at least
// what was answered before it began, and nothing older than another round did.
func (in *inputs) judgePushes(s *sender, v *judgement, complain func(string, ...any)) {
	for _, st := range s.said {
		if st.answer.ok() {
			v.pushed++
		}
	}
	// A round has the time that it was due; where the machine is late, it reads later.
	late := (100*time.Millisecond + in.noise()).Milliseconds()
	rounds := in.account.sources[source(s)]
	newest := uint64(0)
	for _, at := range slices.Sorted(maps.Keys(rounds)) {
		n, whole := rounds[at].whole()
		if !whole || n == 0 {
			continue
		}
		if n > uint64(len(s.said)) || s.said[n-1].ends || s.said[n-1].began.UnixMilli() > at+late {
			v.wrong++
			complain("sender %d: the group shows %d at %d, which was not pushed by then", s.who, n, at)
			continue
		}
		if st := s.said[n-1].answer; st.status != 0 && !st.ok() {
			v.stored++
			complain("sender %d: the group shows %d, which was refused: %d %s", s.who, n, st.status, st.text)
		}
		for _, later := range s.said[n:] {
			if later.answer.ok() && later.ended.UnixMilli() < at {
				v.undone++
				complain("sender %d: the group shows %d at %d, although %d (deleted: %t) was answered %d ms before",
					s.who, n, at, later.n, later.ends, at-later.ended.UnixMilli())
				break
			}
		}
		if n < newest {
			v.undone++
			complain("sender %d: the group shows %d at %d, after it showed %d", s.who, n, at, newest)
		}
		newest = max(newest, n)
	}
}

// holds fails the test for what no fault excuses, and says what was found.
func (in *inputs) holds(v judgement, r receiver.Result, g ledger) {
	in.t.Helper()
	in.t.Logf("inputs: %d samples acknowledged, %d lost, %d came twice; %d pushes and deletions acknowledged, %d undone; half stored %d, wrong %d; %d requests refused, %d of them stored; sent and not answered: %v; rounds %v",
		v.acked, v.lost, v.twice, v.pushed, v.undone, v.half, v.wrong, v.refused, v.stored, v.cut, v.rounds)
	if v.lost+v.undone+v.half+v.stored+v.wrong > 0 {
		in.t.Error("the account of the inputs is wrong")
	}
	for _, w := range ways() {
		ok := 0
		for _, s := range in.senders {
			if s.way == w {
				ok += len(slices.DeleteFunc(slices.Clone(s.said), func(st statement) bool { return !st.answer.ok() }))
			}
		}
		if ok == 0 {
			in.t.Errorf("nothing was taken by %s", w)
		}
	}
	if r.Missing != 0 || g.Lost != 0 {
		in.t.Errorf("of the probe %d samples are missing; the ledger: %+v", r.Missing, g)
	}
	in.sound(r, g)
	if least := uint64(v.acked) + uint64(r.Appended); g.Appended < least {
		in.t.Errorf("the ledger counts %d appended samples, %d were acknowledged", g.Appended, least)
	}
}

// figures returns those of a judgement for the results.
func (v judgement) figures(more map[string]float64) map[string]float64 {
	all := map[string]float64{
		"samples_acknowledged": float64(v.acked), "pushes_acknowledged": float64(v.pushed), "came_twice": float64(v.twice),
		"half_stored": float64(v.half), "garbled": float64(v.wrong),
	}
	maps.Copy(all, more)

	return all
}
