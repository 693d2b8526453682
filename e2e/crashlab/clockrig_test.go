//go:build linux

package crashlab

import (
	"cmp"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
)

const (
	year = 365 * 24 * time.Hour

	// clockInterval is the probe's: a step by one makes a round say what the one before said.
	clockInterval = 500 * time.Millisecond
)

// chronicle is a receiver's memory of when samples say that they are of, in the order of
// their arrival, and its own clock.
type chronicle struct {
	mu    sync.Mutex
	ahead time.Duration     // of the receiver's clock, which the Date of its answers tells
	down  bool              // it answers 503 and stores nothing
	limit time.Duration     // a request with a sample that is further ahead of its clock is refused, as Prometheus does; 0: none is
	last  map[string]uint64 // by series: the greatest number so far
	seen  map[canaryID]bool
	late  int                  // samples that first came after a later one of their series
	times map[uint64]time.Time // by number, of the first series
}

type canaryID struct {
	series string
	number uint64
}

func newChronicle() *chronicle {
	return &chronicle{last: map[string]uint64{}, seen: map[canaryID]bool{}, times: map[uint64]time.Time{}}
}

// behave returns a receiver's behaviour.
func (c *chronicle) behave(r receiver.Request) receiver.Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	date := http.Header{"Date": {time.Now().Add(c.ahead).UTC().Format(http.TimeFormat)}}
	if c.down {
		return receiver.Reply{Status: http.StatusServiceUnavailable, Text: "down", Header: date}
	}
	for _, ts := range r.Series {
		if c.limit > 0 && ts.Samples[len(ts.Samples)-1].Timestamp > time.Now().Add(c.ahead+c.limit).UnixMilli() {
			return receiver.Reply{Status: http.StatusBadRequest, Text: "out of bounds", Header: date}
		}
	}
	for _, ts := range r.Series {
		c.note(ts)
	}
	return receiver.Reply{Stored: r.Series, Header: date}
}

func (c *chronicle) note(ts prompb.TimeSeries) {
	if receiver.Label(ts, "__name__") != receiver.CanaryName {
		return
	}
	id := receiver.Label(ts, "series")
	for _, s := range ts.Samples {
		if s.Value != s.Value {
			continue // a stale marker
		}
		n := uint64(s.Value)
		if n < c.last[id] && !c.seen[canaryID{id, n}] {
			c.late++
		}
		c.seen[canaryID{id, n}] = true
		c.last[id] = max(c.last[id], n)
		if id == "0" {
			c.times[n] = time.UnixMilli(s.Timestamp)
		}
	}
}

func (c *chronicle) set(down bool, ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down, c.ahead = down, ahead
}

// at returns what time the sample of that number says that it is of.
func (c *chronicle) at(n uint64) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.times[n]
	return t, ok
}

func (c *chronicle) outOfOrder() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.late
}

// stage is a stretch of an agent's life with a clock that stays.
type stage struct {
	shift
	down   bool          // the receiver is
	follow bool          // the receiver's clock goes with the agent's: it was right
	d      time.Duration // default: 3 s

	from, to time.Time // when it was, by this machine's clock
}

// timeLab is a lab whose agent's clock can be set.
type timeLab struct {
	*lab
	c      *chronicle
	tr     *traced
	stages []stage
}

// timeOptions configure the one target of a timeLab.
type timeOptions struct {
	future string        // future_limit; default 0s, a receiver that takes samples of any time
	limit  time.Duration // the receiver's own; default none
	age    string        // sample_age_limit; default none
	tls    *receiver.PKI
}

func newTimeLab(t *testing.T, o timeOptions) *timeLab {
	t.Helper()
	l := newLab(t, options{interval: clockInterval})
	if o.tls != nil {
		l.recv.Stop()
		l.recv = receiver.New(receiver.Options{TLS: o.tls.ServerTLS(), Sink: l.sink})
		if err := l.recv.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.recv.Stop)
	}
	entry := fmt.Sprintf(ownTarget, l.recv.URL())
	entry = strings.Replace(entry, "max_backoff", "sample_age_limit: "+cmp.Or(o.age, "0s")+", max_backoff", 1)
	entry += "\n    hwsagent: {future_limit: " + cmp.Or(o.future, "0s") + "}"
	if o.tls != nil {
		entry += fmt.Sprintf("\n    tls_config: {ca_file: %q, cert_file: %q, key_file: %q}", o.tls.CAFile, o.tls.CertFile, o.tls.KeyFile)
	}
	l.targets = entry
	l.configure(true)
	tl := &timeLab{lab: l, c: newChronicle()}
	tl.c.limit = o.limit
	l.behaviour = tl.c.behave
	l.recv.Behave(tl.c.behave)
	return tl
}

// start starts the agent with its clock set so.
func (l *timeLab) start(s shift) {
	l.t.Helper()
	s.Turn = 1
	l.tr = l.traceAs(tracerSpec{Shift: &s})
	l.ready()
}

// live goes through a stage and proves by the agent's own word that its clock is so.
func (l *timeLab) live(s stage) {
	l.t.Helper()
	ahead := time.Duration(0)
	if s.follow {
		ahead = s.Wall
	}
	l.c.set(s.down, ahead)
	l.tr.set(s.shift)
	s.from = time.Now()
	st := l.status()
	if off := st.Now.Sub(s.from) - s.Wall; off.Abs() > 3*time.Second+l.witness.slippedBy() {
		l.t.Fatalf("the agent's clock is %s off the %s that it was set to", off, s.Wall)
	}
	end := s.from.Add(cmp.Or(s.d, 3*time.Second))
	for time.Now().Before(end) && !l.gone() {
		time.Sleep(10 * time.Millisecond) // the stage's own time
	}
	s.to = time.Now()
	l.stages = append(l.stages, s)
}

// steady fails the test if the cadence stumbled in or between stages: in any stretch of
// time a round is tried, later by one interval at most.
func (l *timeLab) steady() time.Duration {
	l.t.Helper()
	gap, slip := l.witness.gap(l.stages[0].from, l.stages[len(l.stages)-1].to), l.witness.slippedBy()
	if most := 2*l.interval + 2*slip + 100*time.Millisecond; gap > most {
		l.t.Errorf("no round for %s, at an interval of %s; at most %s is allowed on this machine", gap, l.interval, most)
	}
	return gap
}

// carried fails the test if samples do not carry the time that the agent's clock said,
// which also proves that the shifts took effect. It counts those of each stage.
func (l *timeLab) carried() {
	l.t.Helper()
	j := l.journal()
	margin := 100*time.Millisecond + 2*l.witness.slippedBy()
	for _, s := range l.stages {
		seen := 0
		for _, n := range j.Acked {
			tried, _, _ := l.witness.at(n)
			at, came := l.c.at(n)
			if !came || tried.Before(s.from.Add(margin)) || tried.After(s.to) {
				continue
			}
			seen++
			if off := at.Sub(tried) - s.Wall; off.Abs() > time.Second+margin {
				l.t.Errorf("round %d says %s, which is %s off the agent's clock, %s ahead", n, at, off, s.Wall)
			}
		}
		l.t.Logf("%s ahead: %d rounds carry that time", s.Wall, seen)
		if seen == 0 {
			l.t.Errorf("no round carries the time %s ahead: the clock was not set", s.Wall)
		}
	}
}

// told fails the test unless the agent tells of so many steps and suspends, everywhere.
func (l *timeLab) told(forward, back, suspends uint64) {
	l.t.Helper()
	var missing string
	eventually(l.t, 10*time.Second, func() string {
		c := l.status().Clock
		if c.Steps != forward+back || c.Suspends != suspends {
			return fmt.Sprintf("the status tells of %d steps and %d suspends, want %d and %d", c.Steps, c.Suspends, forward+back, suspends)
		}
		return ""
	})
	metrics, err := l.get("/metrics")
	if err != nil {
		l.t.Fatal(err)
	}
	for line, n := range map[string]uint64{
		`hwsagent_clock_steps_total{direction="forward"}`: forward,
		`hwsagent_clock_steps_total{direction="back"}`:    back,
		`hwsagent_clock_suspends_total`:                   suspends,
	} {
		if want := fmt.Sprintf("\n%s %d\n", line, n); !strings.Contains(metrics, want) {
			missing += want
		}
	}
	text, err := exec.Command(l.args[0], "status", "--storage.path", l.storage).CombinedOutput()
	if want := "Note clock: this host's clock was set "; forward+back > 0 && !strings.Contains(string(text), want) {
		missing += want
	}
	if want := "Note clock: this host was suspended for "; suspends > 0 && !strings.Contains(string(text), want) {
		missing += want
	}
	if missing != "" {
		l.t.Errorf("not told: %s\n%s (%v)", missing, text, err)
	}
}

// settleAll ends the load, waits until everything is delivered, and fails the test for results that no clock excuses: a
// sample twice or in the wrong order, or one that was never sent.
func (l *timeLab) settleAll() (receiver.Result, ledger) {
	l.t.Helper()
	l.c.set(false, l.aheadNow())
	r, g := l.settle()
	if late := l.c.outOfOrder(); late != 0 || r.Garbled != 0 || r.Ghosts != 0 {
		l.t.Errorf("in the wrong order %d, garbled %d, never tried %d; want none of each", late, r.Garbled, r.Ghosts)
	}
	l.fewTwice(r)
	return r, g
}

// aheadNow returns how far the receiver's clock is ahead in the last stage.
func (l *timeLab) aheadNow() time.Duration {
	if s := l.stages[len(l.stages)-1]; s.follow {
		return s.Wall
	}
	return 0
}

// clockStatus is what the lab reads of the status about clocks.
type clockStatus struct {
	Steps, Suspends uint64
	LastStep        float64 `json:"last_step_seconds"`
}

func sinceNow(t time.Time) time.Duration { return time.Until(t).Round(time.Second) }
