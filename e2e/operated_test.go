package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// operated is the life of an agent that people operate while samples come: entries of its configuration are added, changed,
// removed, put back, renamed and paused, and get tenants and lose them, while receivers fail and the agent is stopped and
// killed.
type operated struct {
	*agent
	rnd    *rand.Rand
	to     *operatedReceiver
	write  string // address at which the agent receives
	series int

	entries []*operatedEntry
	names   int // how many names were used
	did     map[string]int

	mu    sync.Mutex
	tried int   // number of the last request
	acked []int // requests that the agent acknowledged
}

// operatedEntry is an entry of remote_write, under all its names.
type operatedEntry struct {
	names   []string // the present one is last
	url     int      // part of the path, which changes with the entry
	tenants bool
	had     bool // it had tenants once
	strict  bool // its receiver takes no late sample, and nothing of a request that has one
	live    bool
	message string
	batch   int
	shards  int
	absent  bool // at present
	since   int  // it must get the requests after this one
}

func (e *operatedEntry) name() string { return e.names[len(e.names)-1] }

// operatedReceiver is all receivers: a request names its entry in a header.
type operatedReceiver struct {
	*httptest.Server
	dice *rand.Rand // under mu

	mu     sync.Mutex
	answer map[string]string          // by entry: how its receiver fails; "": it does not
	has    map[string]map[sample]bool // by entry
	newest map[string]map[int]stamped // by strict entry and tenant, and by series
	fired  map[string]int             // how often a receiver failed, by how
	wrong  []string                   // samples that came for another tenant
	of     func(sample) string        // the tenant of a sample
}

// sample is one of the samples: the number of its request and of its series.
type sample struct{ request, series int }

// stamped is a sample with its time, in ms.
type stamped struct {
	sample
	t int64
}

// written is the header of remote write 2.0 that says how many samples a receiver wrote.
const written = "X-Prometheus-Remote-Write-Samples-Written"

// failures are how a receiver fails; "" is that it does not.
var failures = []string{"", "", "", "cut", "503", "429", "400", "401", "lose", "half"}

func newOperatedReceiver(seed uint64) *operatedReceiver {
	r := &operatedReceiver{dice: rand.New(rand.NewPCG(seed, 2)), answer: map[string]string{}, has: map[string]map[sample]bool{}, newest: map[string]map[int]stamped{}, fired: map[string]int{}}
	r.Server = httptest.NewServer(r)
	return r
}

func (r *operatedReceiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the agent was killed
	}
	name := q.Header.Get("X-Entry")
	r.mu.Lock()
	defer r.mu.Unlock()
	fails := r.answer[name]
	if fails == "half" {
		fails = []string{"", "503", "cut"}[r.dice.IntN(3)]
	}
	if fails != "" && fails != "lose" {
		r.fired[fails]++
	}
	switch fails {
	case "cut":
		panic(http.ErrAbortHandler)
	case "503", "429", "400", "401":
		w.Header().Set("Retry-After", "1")
		code, _ := strconv.Atoi(fails)
		http.Error(w, "no", code)
		return
	}
	got, err := samplesOf(body, strings.Contains(q.Header.Get("Content-Type"), "v2"))
	if err != nil {
		r.wrong = append(r.wrong, err.Error())
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.has[name] == nil {
		r.has[name] = map[sample]bool{}
	}
	tenant := q.Header.Get("X-Scope-OrgID")
	if q.Header.Get("X-Strict") != "" {
		if refusal := r.late(name+"/"+tenant, got); refusal != "" {
			w.Header().Set(written, "0")
			http.Error(w, refusal, http.StatusBadRequest)
			return
		}
	}
	for _, s := range got {
		if of := r.of(s.sample); tenant != "" && tenant != of && (of != "" || tenant != "rest") {
			r.wrong = append(r.wrong, fmt.Sprintf("%s: %v of tenant %q came for %q", name, s, of, tenant))
		}
		r.has[name][s.sample] = true
	}
	if fails == "lose" && r.dice.IntN(2) == 0 {
		r.fired[fails]++
		panic(http.ErrAbortHandler)
	}
	w.Header().Set(written, strconv.Itoa(len(got)))
	w.WriteHeader(http.StatusNoContent)
}

// late returns why a receiver like Prometheus without an out-of-order window refuses a request, "" if it takes it.
func (r *operatedReceiver) late(where string, got []stamped) string {
	newest := maps.Clone(r.newest[where])
	if newest == nil {
		newest = map[int]stamped{}
	}
	for _, s := range got {
		switch last, known := newest[s.series]; {
		case known && s.t < last.t:
			return "out of order sample"
		case known && s.t == last.t && s.request != last.request:
			return "duplicate sample for timestamp"
		}
		newest[s.series] = s
	}
	r.newest[where] = newest
	return ""
}

// samplesOf decodes a request.
func samplesOf(body []byte, v2 bool) (all []stamped, err error) {
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		return nil, err
	}
	add := func(series string, t int64, value float64) error {
		i, err := strconv.Atoi(series)
		all = append(all, stamped{sample{int(value), i}, t})
		return err
	}
	if v2 {
		var wr writev2.Request
		if err := wr.Unmarshal(raw); err != nil {
			return nil, err
		}
		b := labels.NewScratchBuilder(0)
		for _, ts := range wr.Timeseries {
			ls, err := ts.ToLabels(&b, wr.Symbols)
			if err != nil {
				return nil, err
			}
			for _, s := range ts.Samples {
				if err := add(ls.Get("i"), s.Timestamp, s.Value); err != nil {
					return nil, err
				}
			}
		}
		return all, nil
	}
	var wr prompb.WriteRequest
	if err := wr.Unmarshal(raw); err != nil {
		return nil, err
	}
	for _, ts := range wr.Timeseries {
		series := ""
		for _, l := range ts.Labels {
			if l.Name == "i" {
				series = l.Value
			}
		}
		for _, s := range ts.Samples {
			if err := add(series, s.Timestamp, s.Value); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// tenantOf returns the tenant of a series, which never changes; "" is none.
func (o *operated) tenantOf(s sample) string { return []string{"", "a", "b", "c"}[s.series%4] }

// text returns the configuration.
func (o *operated) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wal: {max_bytes: 1GiB, min_free_bytes: 1MiB}\nprobes:\n  - {name: hwsagent, type: self, enabled: false}\nreceivers:\n  remote_write: {listen: %q}\nremote_write:\n", o.write)
	for _, e := range o.entries {
		if e.absent {
			continue
		}
		own := "catch_up: in_order"
		if e.live {
			own = "catch_up: live_first"
		}
		strict := ""
		if e.strict {
			strict = ", X-Strict: yes"
		}
		if e.tenants {
			own += ", tenant: {label: tenant, default: rest}"
		}
		fmt.Fprintf(&b, "  - name: %s\n    url: %s/%d/write\n    headers: {X-Entry: %q%s}\n    protobuf_message: %s\n    metadata_config: {send: false}\n    hwsagent: {%s}\n"+
			"    queue_config: {batch_send_deadline: 50ms, min_backoff: 20ms, max_backoff: 300ms, max_samples_per_send: %d, min_shards: %d}\n",
			e.name(), o.to.URL, e.url, e.names[0], strict, e.message, own, e.batch, e.shards)
	}
	return b.String()
}

// change changes an entry.
func (o *operated) change(e *operatedEntry) {
	r := o.rnd
	e.url++
	e.tenants, e.live = r.IntN(3) == 0, r.IntN(2) == 0 && !e.strict
	e.had = e.had || e.tenants
	e.message = []string{"prometheus.WriteRequest", "io.prometheus.write.v2.Request", "auto"}[r.IntN(3)]
	e.batch, e.shards = 5+r.IntN(200), 1<<r.IntN(3)
}

// add adds an entry.
func (o *operated) add() *operatedEntry {
	e := &operatedEntry{names: []string{o.newName()}, since: -1, strict: o.rnd.IntN(2) == 0}
	o.change(e)
	o.entries = append(o.entries, e)
	return e
}

func (o *operated) newName() string { o.names++; return fmt.Sprintf("entry%d", o.names) }

// load sends samples to the agent until stop is closed.
func (o *operated) load(stop <-chan struct{}) {
	client := httpClient(o.t)
	for {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond): // the pace of the load
		}
		o.mu.Lock()
		o.tried++
		n := o.tried
		o.mu.Unlock()
		wr := &prompb.WriteRequest{}
		now := time.Now().UnixMilli()
		for i := range o.series {
			ls := []prompb.Label{{Name: "__name__", Value: "m"}, {Name: "i", Value: strconv.Itoa(i)}}
			if id := o.tenantOf(sample{n, i}); id != "" {
				ls = append(ls, prompb.Label{Name: "tenant", Value: id})
			}
			wr.Timeseries = append(wr.Timeseries, prompb.TimeSeries{Labels: ls, Samples: []prompb.Sample{{Value: float64(n), Timestamp: now}}})
		}
		raw, err := wr.Marshal()
		if err != nil {
			o.t.Error(err)
			return
		}
		req, err := http.NewRequest(http.MethodPost, "http://"+o.write+"/api/v1/write", bytes.NewReader(snappy.Encode(nil, raw)))
		if err != nil {
			o.t.Error(err)
			return
		}
		req.Header.Set("Content-Type", "application/x-protobuf")
		req.Header.Set("Content-Encoding", "snappy")
		resp, err := client.Do(req)
		if err != nil {
			continue // it is not running
		}
		_ = resp.Body.Close()
		if resp.StatusCode/100 == 2 {
			o.mu.Lock()
			o.acked = append(o.acked, n)
			o.mu.Unlock()
		}
	}
}

// now is the number of the last request that was begun.
func (o *operated) now() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tried
}

// apply has the agent use the present configuration, and sometimes kills it meanwhile.
func (o *operated) apply() {
	if o.rnd.IntN(5) == 0 {
		o.count("kill in a reload")
		o.configure(o.text())
		after := time.Duration(o.rnd.IntN(30)) * time.Millisecond
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = o.ask(http.MethodPost, "/-/reload")
		}()
		time.Sleep(after)
		o.kill()
		<-done
		o.run()
	} else {
		o.reload(o.text())
	}
	o.enrolled()
}

// enrolled notes from which request on new entries must get all samples.
func (o *operated) enrolled() {
	for _, e := range o.entries {
		if e.since < 0 && !e.absent {
			e.since = o.now()
		}
	}
}

func (o *operated) count(what string) { o.did[what]++ }

// step lets one thing happen.
func (o *operated) step() {
	r := o.rnd
	e := o.entries[r.IntN(len(o.entries))]
	switch r.IntN(9) {
	case 0:
		o.count("kill")
		o.kill()
		o.run()
	case 1:
		o.count("stop")
		if _, code := o.terminate(10 * time.Second); code != exitOK {
			o.t.Errorf("a stop ended with %d", code)
		}
		o.run()
	case 2:
		if len(o.entries) < 4 {
			o.count("entry added")
			o.add()
			o.apply()
		}
	case 3:
		o.count(map[bool]string{true: "entry put back", false: "entry removed"}[e.absent])
		e.absent = !e.absent
		o.apply()
	case 4:
		if !e.absent && e.tenants == e.had { // else the queues of its former tenants keep their names
			o.adopt(e)
		}
	case 5:
		if !e.absent {
			o.pause(e.name())
		}
	default:
		if !e.absent {
			o.count("entry changed")
			o.change(e)
			o.apply()
		}
	}
}

// adopt renames an entry.
func (o *operated) adopt(e *operatedEntry) {
	from := e.name()
	e.names = append(e.names, o.newName())
	o.configure(o.text())
	o.count("entry renamed")
	if _, stderr, code := hwsagent(o.t, "targets", "adopt", from, e.name(), "--storage.path", o.storage, "--config.file", o.config); code != exitOK {
		o.t.Fatalf("adopt %s %s: %d %s", from, e.name(), code, stderr)
	}
}

// pause pauses a target for a moment.
func (o *operated) pause(name string) {
	o.count("target paused")
	for _, action := range []string{"pause", "resume"} {
		if _, stderr, code := hwsagent(o.t, "targets", action, name, "--storage.path", o.storage); code != exitOK {
			o.t.Fatalf("%s %s: %d %s", action, name, code, stderr)
		}
		time.Sleep(time.Duration(o.rnd.IntN(300)) * time.Millisecond)
	}
}

func (r *operatedReceiver) set(name, answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer[name] = answer
}

// live lives the life, and checks what came of it.
func (o *operated) live() {
	for range 1 + o.rnd.IntN(3) {
		o.add()
	}
	o.configure(o.text())
	o.run()
	o.enrolled()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		o.load(stop)
	}()
	for range 6 + o.rnd.IntN(8) {
		for _, e := range o.entries {
			o.to.set(e.names[0], failures[o.rnd.IntN(len(failures))])
		}
		time.Sleep(time.Duration(100+o.rnd.IntN(600)) * time.Millisecond) // the life's own schedule
		o.step()
		if o.t.Failed() {
			break
		}
	}
	close(stop)
	<-stopped
	for _, e := range o.entries {
		o.to.set(e.names[0], "")
		e.absent, e.tenants = false, e.had // queues of tenants send only while the entry has tenants
	}
	o.reload(o.text())
	o.enrolled()
	o.check()
}

// check waits until no target has anything pending, and checks that each entry has got each sample.
func (o *operated) check() {
	eventually(o.t, 2*time.Minute, func() string {
		var waits []string
		for _, t := range o.status().Targets {
			if t.PendingSamples > 0 {
				waits = append(waits, fmt.Sprintf("%s: %d pending, %s %s %s", t.Name, t.PendingSamples, t.State, t.Why, t.LastError))
			}
		}
		return strings.Join(waits, "\n")
	})
	for _, t := range o.status().Targets {
		if l := t.Ledger; l.Lost > 0 || !l.Balanced {
			o.t.Errorf("the account of %s: %+v", t.Name, l)
		}
	}
	o.to.mu.Lock()
	defer o.to.mu.Unlock()
	for _, e := range o.entries {
		missing := map[string]int{}
		var first []sample
		for _, n := range o.acked {
			for i := range o.series {
				s := sample{n, i}
				if n <= e.since || o.to.has[e.names[0]][s] {
					continue
				}
				if missing[o.tenantOf(s)]++; len(first) < 5 {
					first = append(first, s)
				}
			}
		}
		if len(missing) > 0 {
			o.t.Errorf("%v lacks samples, by tenant: %v; such as %v; it must have those after request %d of %d", e.names, missing, first, e.since, o.tried)
		}
	}
	if len(o.to.wrong) > 0 {
		o.t.Errorf("%d wrong requests, such as %s", len(o.to.wrong), o.to.wrong[0])
	}
}

// TestOperatedAtRandom lives several such lives: each entry gets each sample that was acknowledged since it was there, under
// whatever name, and none counts as lost. HWSAGENT_LIVES is how many.
func TestOperatedAtRandom(t *testing.T) {
	endToEnd(t)
	rnd := seeded(t)
	lives, _ := strconv.Atoi(os.Getenv("HWSAGENT_LIVES"))
	var mu sync.Mutex
	did := map[string]int{}
	t.Run("lives", func(t *testing.T) {
		for range cmp.Or(lives, 4) {
			seed := rnd.Uint64N(1 << 32)
			if lives == 1 {
				seed, _ = strconv.ParseUint(os.Getenv("HWSAGENT_SEED"), 10, 64)
			}
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				o := &operated{rnd: rand.New(rand.NewPCG(seed, 1)), to: newOperatedReceiver(seed), write: fmt.Sprintf("127.0.0.1:%d", freePort(t)), did: map[string]int{}}
				t.Cleanup(o.to.Close)
				o.to.of, o.series = o.tenantOf, 5+o.rnd.IntN(40)
				o.agent = newAgent(t, "")
				t.Cleanup(func() {
					if o.cmd != nil {
						o.kill()
					}
					if t.Failed() {
						t.Logf("the agent said:\n%s\nwith\n%s", o.tail(120), o.text())
					}
				})
				o.live()
				mu.Lock()
				defer mu.Unlock()
				for what, n := range o.did {
					did[what] += n
				}
				o.to.mu.Lock()
				for how, n := range o.to.fired {
					did["answer "+how] += n
				}
				o.to.mu.Unlock()
				did["samples"] += len(o.acked) * o.series
			})
		}
	})
	for _, what := range slices.Sorted(maps.Keys(did)) {
		t.Logf("%s: %d", what, did[what])
	}
	if did["samples"] < 1000 {
		t.Error("the load did nothing")
	}
	want := []string{"answer cut", "answer 503", "answer 429", "answer 400", "answer 401", "answer lose", "kill", "kill in a reload", "stop",
		"entry added", "entry changed", "entry removed", "entry put back", "entry renamed", "target paused"}
	missing := slices.DeleteFunc(want, func(what string) bool { return did[what] > 0 })
	if most := 5; lives >= 50 && len(missing) > 0 || len(missing) > most { // four lives do not live through everything
		t.Errorf("never: %v", missing)
	}
}
