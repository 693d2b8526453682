//go:build linux

package crashlab

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
	"hwsagent/e2e/hostile"
	"hwsagent/internal/tools/results"
	"hwsagent/internal/tools/tier"
)

// TestHostileReceivers gives one agent a target for each behaviour of a hostile receiver,
// and one that is well. Thirty or so misbehave at the same time, then are well again, and
// the next ones misbehave. The well one notices nothing, memory stays bounded, the status
// says what is wrong, and no credential goes anywhere else; within a minute of its being
// well again each receiver has fresh data, and in the end everything, in order.
func TestHostileReceivers(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{"1.0": "prometheus.WriteRequest", "2.0": "io.prometheus.write.v2.Request"} {
		t.Run(name, func(t *testing.T) { // one after the other: each has 190 targets
			z := newZoo(t, message, hostile.Behaviours())
			z.run()
			z.settleIn()
			z.misbehave(amount(1, 3), 32, time.Duration(amount(4, 15))*time.Second)
			z.healed()
			z.stopAmidst()
			z.account(name)
		})
	}
}

// TestStopAmidstHostility stops the agent while twelve receivers hang, break off, refuse or
// ask for a pause: it is out within two seconds, and nothing is lost.
func TestStopAmidstHostility(t *testing.T) {
	t.Parallel()
	chosen := []string{
		"a hang before the answer", "a hang inside the body", "a handshake that hangs", "connected and never read", "no answer over HTTP/2",
		"a request read at a byte a second", "a body without end", "a reset after the request", "the port is closed",
		"429, Retry-After huge", "status 401", "a login page",
	}
	z := newZoo(t, "auto", slices.DeleteFunc(hostile.Behaviours(), func(b hostile.Behaviour) bool { return !slices.Contains(chosen, b.Name) }))
	if len(z.beasts) != len(chosen) {
		t.Fatalf("%d of %d behaviours are known", len(z.beasts), len(chosen))
	}
	z.run()
	z.settleIn()
	for range amount(2, 10) {
		if took, limit := z.stopAmidst(), 2*time.Second+2*z.witness.slippedBy(); took > tier.Within(limit) {
			t.Errorf("SIGTERM: it took %s, more than %s", took, limit)
		}
	}
	z.account("stopped amidst them")
}

// zoo is an agent with many hostile receivers.
type zoo struct {
	*lab
	beasts     []*beast
	well       *peer
	trap       *trap
	calmLag    time.Duration // the well target's p99 while nothing misbehaves
	worstLag   time.Duration // and meanwhile
	goroutines int
	slowest    time.Duration // until fresh data after the behaviours ended
	slowestOf  string
}

// beast is one hostile receiver.
type beast struct {
	hostile.Behaviour
	*hostile.Server
	target   string
	token    string
	oracle   *receiver.Oracle
	repaired time.Time // when it was last repaired
	again    bool      // it has misbehaved before

	mu   sync.Mutex
	came map[uint64]time.Time // when each number of series 0 came first
}

// trap is where redirects point to.
type trap struct {
	net.Listener
	caught atomic.Int64
}

func newZoo(t *testing.T, message string, behaviours []hostile.Behaviour) *zoo {
	t.Helper()
	endToEnd(t)
	z := &zoo{trap: newTrap(t)}
	certs, err := hostile.NewCerts()
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, certs.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	z.well = newPeer(t, func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })
	// Nobody ever finds this host: nothing else may suffer from that, either.
	targets := entryOf("well", "http://"+z.well.address()+"/api/v1/write", "100ms") +
		entryOf("unresolvable", "http://hwsagent-nowhere.invalid/api/v1/write", "1s")
	for i, b := range behaviours {
		e := &beast{Behaviour: b, target: fmt.Sprint("target-", i), token: fmt.Sprintf("secret-%d", i), oracle: receiver.NewOracle(), came: map[uint64]time.Time{}}
		o := hostile.Options{HTTP2: b.HTTP2, Sink: e.take, Elsewhere: z.trap.Addr().String()}
		if b.Secure {
			o.Certs = certs
		}
		if e.Server, err = hostile.Start(o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Stop)
		z.beasts = append(z.beasts, e)
		targets += entryOf(e.target, e.URL(), "1s") + fmt.Sprintf(`
    protobuf_message: %s
    bearer_token: %s`, message, e.token)
		if b.Secure {
			targets += fmt.Sprintf("\n    enable_http2: %t\n    tls_config: {ca_file: %q}", b.HTTP2, ca)
		}
	}
	z.lab = newLab(t, options{series: 5, interval: 500 * time.Millisecond, targets: targets, more: "web: {pprof: true}"})
	return z
}

func entryOf(name, url, deadline string) string {
	return fmt.Sprintf(`
  - name: %s
    url: %s
    remote_timeout: %s
    queue_config: {batch_send_deadline: %s, min_backoff: 30ms, max_backoff: %s}`, name, url, remoteTimeout, deadline, maxBackoff)
}

func newTrap(t *testing.T) *trap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &trap{Listener: l}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.caught.Add(1)
			c.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return p
}

// take is given what a hostile receiver stores.
func (e *beast) take(series []prompb.TimeSeries) {
	e.oracle.Add(series)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ts := range series {
		if receiver.Label(ts, "__name__") != receiver.CanaryName || receiver.Label(ts, "series") != "0" {
			continue
		}
		for _, s := range ts.Samples {
			if n := uint64(s.Value); e.came[n].IsZero() {
				e.came[n] = time.Now()
			}
		}
	}
}

// freshAfter returns when the first number came that was tried after since; false if none has.
func (e *beast) freshAfter(w *witness, since time.Time) (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := time.Duration(-1)
	for n, at := range e.came {
		if tried, _, _ := w.at(n); tried.After(since) && (first < 0 || at.Sub(since) < first) {
			first = at.Sub(since)
		}
	}
	return first, first >= 0
}

// settleIn waits until every receiver has data, and measures how things are then.
func (z *zoo) settleIn() {
	z.t.Helper()
	from := time.Now()
	for _, e := range z.beasts {
		e.repaired = from
	}
	z.allFresh(3*time.Minute, func(*beast) bool { return true })
	z.slowest, from = 0, time.Now()
	time.Sleep(3 * time.Second) // the time that is measured
	z.calmLag = p99(z.well.lags(z.witness, from, time.Now()))
	z.goroutines = z.running()
	z.t.Logf("while all is well: p99 of the lag %s, %d goroutines, %d KiB", z.calmLag.Round(time.Millisecond), z.goroutines, z.procStatus("VmHWM"))
}

// allFresh waits until each of these receivers has a number that was tried after it was
// made well, within the limit of that.
func (z *zoo) allFresh(limit time.Duration, which func(*beast) bool) {
	z.t.Helper()
	left := slices.DeleteFunc(slices.Clone(z.beasts), func(e *beast) bool { return !which(e) })
	eventually(z.t, limit, func() string {
		if z.gone() {
			z.t.Fatalf("the agent ended by itself: %s\n%s", z.cmd.ProcessState, z.tail(20))
		}
		left = slices.DeleteFunc(left, func(e *beast) bool {
			took, ok := e.freshAfter(z.witness, e.repaired)
			if ok && took > z.slowest {
				z.slowest, z.slowestOf = took, e.Name
			}
			if ok && took > tier.Within(limit) {
				z.t.Errorf("%s: fresh data %s after it was well", e.Name, took)
			}
			return ok
		})
		if len(left) > 0 {
			return fmt.Sprintf("%d receivers have nothing new, %q for one", len(left), left[0].Name)
		}
		return ""
	})
}

func (z *lab) byName() map[string]target {
	z.t.Helper()
	var body string
	eventually(z.t, 30*time.Second, func() string { // there are many, and the machine may be busy
		text, err := z.get("/api/v1/status")
		if err != nil {
			return err.Error()
		}
		body = text
		return ""
	})
	all := map[string]target{}
	for _, tg := range z.checked(body).Targets {
		all[tg.Name] = tg
	}
	return all
}

// running returns how many goroutines the agent has.
func (z *lab) running() int {
	z.t.Helper()
	body, err := z.get("/debug/pprof/goroutine?debug=1")
	if err != nil {
		z.t.Fatal(err)
	}
	n := 0
	if _, err := fmt.Sscanf(body, "goroutine profile: total %d", &n); err != nil {
		z.t.Fatalf("goroutines: %v", err)
	}
	return n
}

func (z *zoo) play(on bool, beasts ...*beast) {
	z.t.Helper()
	for _, e := range beasts {
		b := &e.Behaviour
		if !on {
			b, e.repaired, e.again = nil, time.Now(), true
		}
		if err := e.Play(b); err != nil {
			z.t.Fatal(err)
		}
	}
}

// misbehave has all receivers misbehave, so many at a time, for so long at least, in random
// order. Each is well, and has fresh data, before its next turn.
func (z *zoo) misbehave(rounds, many int, d time.Duration) {
	z.t.Helper()
	rnd, from := seeded(z.t), time.Now()
	for round := range rounds {
		order := slices.Clone(z.beasts)
		if round > 0 { // a pause that it was told to make lasts for longer than a round
			order = slices.DeleteFunc(order, func(e *beast) bool { return e.Long() })
			z.allFresh(time.Minute, func(e *beast) bool { return !e.Long() })
		}
		rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for some := range slices.Chunk(order, many) {
			began := time.Now()
			z.play(true, some...)
			time.Sleep(d) // the duration of the fault
			z.judge(some, began)
			z.play(false, some...)
		}
	}
	// Samples of the last second may be in flight.
	z.worstLag = p99(z.well.lags(z.witness, from, time.Now().Add(-time.Second)))
	if limit := 2*z.calmLag + 100*time.Millisecond + 4*z.witness.slippedBy(); z.worstLag > tier.Within(limit) {
		z.t.Errorf("the well target's lag is %s, more than %s", z.worstLag, limit)
	}
	told := z.byName()
	if w := told["well"]; w.State != "ok" {
		z.t.Errorf("the well target is %s: %s", w.State, w.Why)
	}
	if w := told["unresolvable"]; w.State != "retrying" || !strings.Contains(w.Why, "hwsagent-nowhere.invalid") {
		z.t.Errorf("the target without an address is %s: %s", w.State, w.Why)
	}
}

// judge compares what the targets' status says, and what their receivers saw, with what
// should be. On a busy machine the status may say for a while that there was no answer in
// time.
func (z *zoo) judge(some []*beast, from time.Time) {
	z.t.Helper()
	left := slices.Clone(some)
	for end := time.Now().Add(15 * time.Second); len(left) > 0; time.Sleep(250 * time.Millisecond) {
		told := z.byName()
		left = slices.DeleteFunc(left, func(e *beast) bool {
			why := told[e.target].Why
			wrong := e.wrong(z.witness, told[e.target], from)
			if wrong != "" && time.Now().Before(end) {
				return false
			}
			if wrong != "" {
				z.t.Errorf("%s: %s", e.Name, wrong)
			}
			if strings.ContainsFunc(why, func(r rune) bool { return !unicode.IsPrint(r) }) || len(why) > 1500 {
				z.t.Errorf("%s: the status is not fit to be read: %q", e.Name, why)
			}
			if g := told[e.target].Ledger; len(g.Dropped) > 0 || g.Lost > 0 {
				z.t.Errorf("%s: something was dropped: %+v", e.Name, g)
			}
			return true
		})
	}
	for _, e := range some {
		c := e.Counts()
		if e.Unseen && c.Seen > 0 {
			z.t.Errorf("%s: %d requests came through", e.Name, c.Seen)
		}
		// One request opens three connections at most, and pauses grow to maxBackoff.
		if most := 40 + int(10*time.Since(from).Seconds()); c.Opened > most {
			z.t.Errorf("%s: %d connections in %s, more than %d", e.Name, c.Opened, time.Since(from).Round(time.Second), most)
		}
		if c.Early > 100*time.Millisecond {
			z.t.Errorf("%s: a request came %s before the time", e.Name, c.Early)
		}
	}
}

// wrong says what is not yet as it should be while a receiver misbehaves, "" if nothing.
func (e *beast) wrong(w *witness, told target, from time.Time) string {
	if e.Counts().Fired == 0 {
		return "it did not fire"
	}
	if e.State == "" {
		if _, ok := e.freshAfter(w, from); !ok && !e.Swallows || told.State == "held" {
			return fmt.Sprintf("data does not come through: %s, %s", told.State, told.Why)
		}
		return ""
	}
	state := e.State
	if e.again && e.Again != "" {
		state = e.Again
	}
	if told.State != state || told.Why == "" || !strings.Contains(told.Why, e.Says) {
		return fmt.Sprintf("the status says %s, %q; want %s, %q", told.State, told.Why, state, e.Says)
	}
	return ""
}

// healed waits for fresh data everywhere, and looks at what the agent has taken.
func (z *zoo) healed() {
	z.t.Helper()
	z.allFresh(time.Minute, func(e *beast) bool { return !e.Long() })
	z.t.Logf("meanwhile the well target's p99 %s, %d KiB; fresh data everywhere within %s (%s)", z.worstLag.Round(time.Millisecond), z.procStatus("VmHWM"), z.slowest.Round(time.Millisecond), z.slowestOf)
	const most = 256 << 10 // KiB, of this many targets
	if peak := z.procStatus("VmHWM"); peak > most {
		z.t.Errorf("the agent took %d KiB of memory, more than %d", peak, most)
	}
	eventually(z.t, 20*time.Second, func() string {
		if n := z.running(); n > z.goroutines+10 {
			return fmt.Sprintf("%d goroutines, %d before", n, z.goroutines)
		}
		return ""
	})
}

// stopAmidst stops the agent while all receivers misbehave, and starts it when they are well.
func (z *zoo) stopAmidst() (took time.Duration) {
	z.t.Helper()
	z.play(true, z.beasts...)
	z.acked(4)
	took = z.terminate()
	code := z.cmd.ProcessState.ExitCode()
	z.t.Logf("SIGTERM: exit code %d after %s", code, took)
	if code != 0 {
		z.t.Errorf("SIGTERM: exit code %d", code)
	}
	z.play(false, z.beasts...)
	z.lab.run()
	z.acked(2)
	return took
}

// account ends the load, and fails the test unless every receiver has everything.
func (z *zoo) account(name string) {
	z.t.Helper()
	z.quiet()
	var told map[string]target
	eventually(z.t, time.Minute, func() string {
		told = z.byName()
		for _, e := range z.beasts {
			if tg := told[e.target]; tg.Ledger.Pending > 0 {
				return fmt.Sprintf("%s: %d samples pending, %s: %s", e.Name, tg.Ledger.Pending, tg.State, tg.Why)
			}
		}
		return ""
	})
	j := z.journal()
	var twice uint64
	for _, e := range z.beasts {
		r, c, g := e.oracle.Verify(j, z.series), e.Counts(), told[e.target].Ledger
		if r.OutOfOrder != 0 || r.Garbled != 0 || r.Ghosts != 0 || r.Missing != 0 && !e.Swallows {
			z.t.Errorf("%s: %+v", e.Name, r)
		}
		if g.Lost != 0 || len(g.Dropped) != 0 {
			z.t.Errorf("%s: the ledger says that something was lost: %+v", e.Name, g)
		}
		// Connections were cut, in the middle of a request perhaps.
		if cuts := uint64(2*amount(1, 3) + 2); r.Duplicated > c.Unsure+cuts*10*uint64(z.series) {
			z.t.Errorf("%s: %d samples came twice, only %d were in doubt", e.Name, r.Duplicated, c.Unsure)
		}
		twice += r.Duplicated
		delete(c.Authorizations, "Bearer "+e.token)
		if len(c.Authorizations) > 0 || c.Cookies > 0 || c.Wrong != "" {
			z.t.Errorf("%s: it got %d cookies, %v, %s", e.Name, c.Cookies, slices.Collect(maps.Keys(c.Authorizations)), c.Wrong)
		}
	}
	if n := z.trap.caught.Load(); n > 0 {
		z.t.Errorf("%d connections came to where a redirect pointed", n)
	}
	if g := told["unresolvable"].Ledger; g.Pending != g.Appended || g.Pending == 0 {
		z.t.Errorf("the target without an address: %+v", g)
	}
	z.readable()
	results.Add(z.t, results.Line{
		What: "hostile receivers, " + name, Count: len(z.beasts) * amount(1, 3), Seed: seed(z.t),
		Figures: map[string]float64{
			"fresh_data_after_ms_at_most": float64(z.slowest.Milliseconds()), "other_targets_p99_ms_at_most": float64(z.worstLag.Milliseconds()),
			"other_targets_p99_ms_before": float64(z.calmLag.Milliseconds()), "came_twice": float64(twice),
		},
	})
}

// readable fails the test unless all that the agent said are lines of its log, in which no
// receiver could write, and no token is in it.
func (z *lab) readable() {
	z.t.Helper()
	b, err := os.ReadFile(z.log())
	if err != nil {
		z.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "time=") && !json.Valid([]byte(line)) || strings.Contains(line, "secret-") || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' }) {
			z.t.Errorf("the agent said: %q", line)
		}
	}
}
