package remotewrite

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/tenant"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// memLog is a log in memory with one target's cursor: the Source of the tests. It keeps the promises that source.go
// demands, and checks those that the queue must keep.
type memLog struct {
	t testing.TB

	mu      sync.Mutex
	entries []*wal.Entry
	series  map[string]*wal.Series
	more    chan struct{} // closed and replaced at each append
	next    int           // entry that Next returns
	sp      queue.Savepoint
	gaps    []memGap        // samples that Split left behind; sp covers the live ones only
	durable queue.Savepoint // the state after a crash
	left    []memGap        // of gaps
	ledger  queue.Outcome
	syncs   int
	records int                  // Advance was called so often
	failing error                // of Reserve
	slow    func() time.Duration // how long an entry takes to be read; nil: no time
	meta    metadata.Metadata

	exemplars bool          // each sample of an entry has one, of its time and value
	ended     []*wal.Series // of the next entry: the log does not use them any more
}

func newMemLog(t testing.TB) *memLog {
	return &memLog{t: t, series: map[string]*wal.Series{}, more: make(chan struct{})}
}

func markAt(n, total uint64) wal.Mark {
	return wal.Mark{Position: wal.Position{Offset: int64(n)}, Commit: n, Total: total}
}

// smp is a sample of the tests: the series' name, a time in ms and a value.
type smp struct {
	series string
	t      int64
	v      float64
}

// isHistogram reports by its name whether a series has native histograms, whose value is their sum.
func isHistogram(series string) bool { return strings.HasPrefix(series, "histogram") }

// append commits samples, and returns the commit's mark.
func (m *memLog) append(samples ...smp) wal.Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := &wal.Entry{MinT: math.MaxInt64, MaxT: math.MinInt64}
	for _, s := range samples {
		ws := m.series[s.series]
		if ws == nil {
			ws = wal.NewSeries(len(m.series), labels.FromStrings("__name__", s.series, "job", "test"), &wal.About{Meta: m.meta})
			m.series[s.series] = ws
		}
		if isHistogram(s.series) {
			e.Histograms = append(e.Histograms, wal.Histogram{Series: ws, T: s.t, H: &histogram.Histogram{Sum: s.v}})
		} else {
			e.Samples = append(e.Samples, wal.Sample{Series: ws, T: s.t, V: s.v})
		}
		e.MinT, e.MaxT = min(e.MinT, s.t), max(e.MaxT, s.t)
	}
	if m.exemplars {
		for _, s := range e.Samples {
			e.Exemplars = append(e.Exemplars, wal.Exemplar{Series: s.Series, T: s.T, V: s.V, Labels: labels.FromStrings("trace_id", "x")})
		}
	}
	e.Ended, m.ended = m.ended, nil
	head := m.head()
	e.End = markAt(head.Commit+1, head.Total+uint64(len(samples)))
	m.entries = append(m.entries, e)
	close(m.more)
	m.more = make(chan struct{})
	return e.End
}

func (m *memLog) head() wal.Mark {
	if len(m.entries) == 0 {
		return wal.Mark{}
	}
	return m.entries[len(m.entries)-1].End
}

func (m *memLog) Next(ctx context.Context) (*wal.Entry, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.mu.Lock()
		m.next = max(m.next, int(m.sp.Acked().Commit)) // samples left behind are not live
		if m.next < len(m.entries) {
			e := m.entry(m.next)
			m.next++
			var wait time.Duration
			if m.slow != nil {
				wait = m.slow()
			}
			m.mu.Unlock()
			if wait > 0 {
				if err := gate.Sleep(ctx, wait); err != nil {
					m.mu.Lock()
					m.next--
					m.mu.Unlock()
					return nil, err
				}
			}
			return e, nil
		}
		more := m.more
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-more:
		}
	}
}

// entry returns a copy of an entry that is valid only until the next call, so that a queue which keeps it fails. The
// caller holds m.mu.
func (m *memLog) entry(i int) *wal.Entry {
	e := *m.entries[i]
	e.Samples = slices.Clone(e.Samples)
	return &e
}

func (m *memLog) Rewind() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = int(m.sp.Acked().Commit)
}

// Release has the log hold no series: those that are read again are others, as after [wal.Lane.Release].
func (m *memLog) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := map[*wal.Series]*wal.Series{}
	for name, old := range m.series {
		made := wal.NewSeries(old.Slot(), old.Labels(), old.About)
		now[old], m.series[name] = made, made
	}
	for i, e := range m.entries {
		e := *e
		e.Samples, e.Histograms, e.Exemplars = slices.Clone(e.Samples), slices.Clone(e.Histograms), slices.Clone(e.Exemplars)
		for j := range e.Samples {
			e.Samples[j].Series = now[e.Samples[j].Series]
		}
		for j := range e.Histograms {
			e.Histograms[j].Series = now[e.Histograms[j].Series]
		}
		for j := range e.Exemplars {
			e.Exemplars[j].Series = now[e.Exemplars[j].Series]
		}
		m.entries[i] = &e
	}
}

func (m *memLog) Reserve(high wal.Mark) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing != nil {
		return m.failing
	}
	if high.Commit > m.sp.High.Commit {
		m.sp.High = high
		m.save()
	}
	return nil
}

// save makes the present state durable. The caller holds m.mu.
func (m *memLog) save() {
	m.durable, m.left = m.clone(), slices.Clone(m.gaps)
	m.syncs++
}

func (m *memLog) clone() queue.Savepoint {
	sp := m.sp
	sp.Done = slices.Clone(sp.Done)
	return sp
}

func (m *memLog) Advance(to wal.Mark, o queue.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records++
	acked := m.sp.Acked()
	if to.Commit <= acked.Commit {
		m.t.Errorf("Advance to commit %d, which is behind %d", to.Commit, acked.Commit)
	}
	if got, want := o.Sum(), to.Total-acked.Total; got != want {
		m.t.Errorf("Advance to commit %d accounts for %d samples, want %d", to.Commit, got, want)
	}
	m.sp.Done = []queue.Range{{From: m.sp.Start, To: to}}
	if m.sp.High.Commit < to.Commit {
		m.sp.High = to
	}
	m.ledger.Add(o)
}

func (m *memLog) Reach() (queue.Reach, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return queue.Reach{Acked: m.sp.Acked(), High: m.sp.High}, true
}

func (m *memLog) Head() wal.Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head()
}

// crash restores the durable state, like a process kill after the last Reserve saved the savepoint.
func (m *memLog) crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sp = m.durable
	m.sp.Done = slices.Clone(m.durable.Done)
	m.gaps = slices.Clone(m.left)
	m.next = int(m.sp.Acked().Commit)
	m.ledger = queue.Outcome{}
}

func (m *memLog) pending() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.head().Total - m.sp.Acked().Total
	for _, g := range m.gaps {
		n += g.to.Total - g.from.Total
	}
	return n
}

func (m *memLog) outcome() queue.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger
}

// fakeReceiver is a remote-write receiver. It is strict about the order of each series,
// as Prometheus without an out-of-order window is, unless anyOrder is set.
type fakeReceiver struct {
	keepsGood   bool                              // stores the good part of a request that it refuses
	keepsAll    bool                              // stores all of it, including bad samples
	refuses     int                               // the status of a refusal; 0: 400
	says        string                            // the text that refuses poison; "": one with the series' name
	anyOrder    bool                              // takes late samples
	oneValue    bool                              // has one value for a time, as Prometheus: see keep
	floatsOnly  bool                              // of these, no histograms
	windowSays  string                            // of those; "": too old sample
	window      time.Duration                     // takes nothing older than so long before its newest sample; 0: everything
	refuseEmpty bool                              // answers an empty write with 400
	maxSamples  int                               // answers 413 to more
	latency     time.Duration                     // of each answer
	pace        func(now time.Time) time.Duration // latency of an answer sent now; nil: latency
	poison      func(smp) bool

	speaks       speech // which versions of the protocol it takes
	keepsGood2   bool   // keepsGood for requests of 2.0
	hidesWritten bool   // does not say how much it wrote when it refuses

	// victoria reports whether the answer has the header of VictoriaMetrics; nil: never. tellsZstd answers requests of
	// zstd without reading them; nil: they are read.
	victoria  func(r fakeRequest) bool
	tellsZstd func(r fakeRequest) (client.Answer, bool)

	// script answers instead of the receiver when it returns true. n counts requests
	// from 0.
	script func(r fakeRequest) (client.Answer, bool)
	// loseAnswer stores and then answers with a network error.
	loseAnswer func(r fakeRequest) bool
	// sentAgain reports whether the first answer to a request is lost with its kept connection, so that the client sends
	// the request once more by itself; nil: never.
	sentAgain func(r fakeRequest) bool

	mu       sync.Mutex
	requests []fakeRequest
	stored   map[string][]smp // by series, in the order of arrival
	has      map[smp]bool
	newest   int64 // newest stored timestamp, ms
	tooOld   int   // samples that were refused for the window
	again    int   // samples that came although they were stored
	metas    int   // TimeSeries with metadata
	flying   int
	maxFly   int
}

// limitWords is the text of a receiver whose limit of series is reached.
const limitWords = "per-user series limit of 150000 exceeded, please contact administrator to raise it (per-ingester local limit: 1000)"

// speech says which versions a receiver takes, and what it answers to the other.
type speech uint8

const (
	speaksBoth      speech = iota
	speaksOne              // 415 to 2.0
	speaksOneSilent        // 204 to 2.0, and stores nothing
	speaksOne400           // 400 to 2.0
	speaksOne500           // 500 to 2.0
	speaksTwo              // 415 to 1.0
	numSpeeches
)

// notTaken returns the answer to a request of a version that the receiver does not accept.
func (s speech) notTaken(v wire.Version) (client.Answer, bool) {
	switch {
	case s == speaksBoth, v == wire.V1 && s != speaksTwo, v == wire.V2 && s == speaksTwo:
		return client.Answer{}, false
	case s == speaksOneSilent:
		return client.Answer{Status: 204}, true
	case s == speaksOne400:
		return client.Answer{Status: 400, Text: "cannot decode"}, true
	case s == speaksOne500:
		return client.Answer{Status: 500, Text: "cannot decode"}, true
	}
	return client.Answer{Status: 415, Text: "not this message"}, true
}

type fakeRequest struct {
	n           int
	version     wire.Version
	compression wire.Compression
	at          time.Time
	attempt     int
	fresh       bool  // on a new connection
	samples     []smp // grouped as in the request
	series      int   // TimeSeries in the request
	metas       int   // of these, those with metadata
	status      int

	exemplars []smp
}

func (r *fakeReceiver) Send(ctx context.Context, req client.Request) client.Answer {
	q := readFake(req)
	r.mu.Lock()
	q.n = len(r.requests)
	r.requests = append(r.requests, q)
	r.flying++
	r.maxFly = max(r.maxFly, r.flying)
	latency := r.latency
	if r.pace != nil {
		latency = r.pace(q.at)
	}
	r.mu.Unlock()
	if latency > 0 {
		if err := gate.Sleep(ctx, latency); err != nil {
			r.mu.Lock()
			r.flying--
			r.mu.Unlock()
			return client.Answer{Err: err}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying--
	a := r.answer(q)
	if r.sentAgain != nil && r.sentAgain(q) {
		a = r.answer(q)
		a.Again = true
	}
	if r.victoria != nil && a.Status != 0 {
		a.VictoriaMetrics = r.victoria(q)
	}
	a.Took = time.Since(q.at)
	r.requests[q.n].status = a.Status
	return a
}

// readFake decodes a request.
func readFake(req client.Request) fakeRequest {
	raw, err := decompress(req)
	if err != nil {
		panic(err)
	}
	q := fakeRequest{version: req.Version, compression: req.Compression, at: time.Now(), attempt: req.Attempt, fresh: req.Fresh}
	if req.Version == wire.V2 {
		var wr writev2.Request
		if err := wr.Unmarshal(raw); err != nil {
			panic(err)
		}
		q.series = len(wr.Timeseries)
		b := labels.NewScratchBuilder(0)
		for _, ts := range wr.Timeseries {
			ls, err := ts.ToLabels(&b, wr.Symbols)
			if err != nil {
				panic(err)
			}
			if ts.Metadata.Type != 0 {
				q.metas++
			}
			for _, s := range ts.Samples {
				q.samples = append(q.samples, smp{ls.Get(model.MetricNameLabel), s.Timestamp, s.Value})
			}
			for _, h := range ts.Histograms {
				q.samples = append(q.samples, smp{ls.Get(model.MetricNameLabel), h.Timestamp, h.Sum})
			}
			for _, x := range ts.Exemplars {
				q.exemplars = append(q.exemplars, smp{ls.Get(model.MetricNameLabel), x.Timestamp, x.Value})
			}
		}
		return q
	}
	var wr prompb.WriteRequest
	if err := wr.Unmarshal(raw); err != nil {
		panic(err)
	}
	q.series = len(wr.Timeseries)
	for _, ts := range wr.Timeseries {
		name := ""
		for _, l := range ts.Labels {
			if l.Name == model.MetricNameLabel {
				name = l.Value
			}
		}
		for _, s := range ts.Samples {
			q.samples = append(q.samples, smp{name, s.Timestamp, s.Value})
		}
		for _, h := range ts.Histograms {
			q.samples = append(q.samples, smp{name, h.Timestamp, h.Sum})
		}
		for _, x := range ts.Exemplars {
			q.exemplars = append(q.exemplars, smp{name, x.Timestamp, x.Value})
		}
	}
	return q
}

// decompress reads a body as its header says, and in no other way.
func decompress(req client.Request) ([]byte, error) {
	if req.Compression == wire.Snappy {
		return snappy.Decode(nil, req.Body)
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(req.Body, nil)
}

// set changes state that the scripts use; they run under the same lock.
func (r *fakeReceiver) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *fakeReceiver) answer(q fakeRequest) client.Answer {
	if q.compression == wire.Zstd && r.tellsZstd != nil {
		if a, ok := r.tellsZstd(q); ok {
			return a
		}
	}
	if r.script != nil {
		if a, ok := r.script(q); ok {
			return a
		}
	}
	r.metas += q.metas
	return r.stores(q)
}

// stores is the receiver's own answer.
func (r *fakeReceiver) stores(q fakeRequest) client.Answer {
	if a, not := r.speaks.notTaken(q.version); not {
		return a
	}
	if len(q.samples) == 0 {
		if r.refuseEmpty {
			return client.Answer{Status: 400, Text: "empty write"}
		}
		return client.Answer{Status: 204}
	}
	if r.maxSamples > 0 && len(q.samples) > r.maxSamples {
		return client.Answer{Status: 413, Text: "too large"}
	}
	if r.stored == nil {
		r.stored, r.has = map[string][]smp{}, map[smp]bool{}
	}
	var refusal string
	var fresh []smp // stored by this request
	written := uint64(len(q.samples))
	for _, s := range q.samples {
		if r.keepsAll && r.poison != nil && r.poison(s) {
			refusal = badSample(s)
			r.keep(s)
			continue
		}
		text, added := r.store(s)
		if text != "" {
			refusal = text
			written--
		}
		if added {
			fresh = append(fresh, s)
		}
	}
	keeps := r.keepsGood
	if q.version == wire.V2 {
		keeps = r.keepsGood2
	}
	if refusal != "" {
		if !keeps && !r.keepsAll {
			written = 0
			for _, s := range slices.Backward(fresh) {
				have := r.stored[s.series]
				r.stored[s.series] = have[:len(have)-1]
				delete(r.has, s)
			}
			fresh = nil
		}
		r.noteNewest(fresh)
		a := client.Answer{Status: cmp.Or(r.refuses, 400), Text: refusal}
		if q.version == wire.V2 && !r.hidesWritten {
			a.Written = client.Written{Known: true, Samples: written}
		}
		return a
	}
	if r.loseAnswer != nil && r.loseAnswer(q) {
		return cut
	}
	r.noteNewest(fresh)
	return client.Answer{Status: 204, Written: client.Written{Known: q.version == wire.V2, Samples: written}}
}

// noteNewest moves the end of the window: after a request, not during it.
func (r *fakeReceiver) noteNewest(stored []smp) {
	for _, s := range stored {
		r.newest = max(r.newest, s.t)
	}
}

// store stores a sample, or says why not.
func (r *fakeReceiver) store(s smp) (refusal string, added bool) {
	if r.poison != nil && r.poison(s) {
		return cmp.Or(r.says, badSample(s)), false
	}
	return r.keep(s)
}

func badSample(s smp) string { return fmt.Sprintf("bad sample %s@%d", s.series, s.t) }

// keep stores a sample that is not bad, unless it is late.
func (r *fakeReceiver) keep(s smp) (refusal string, added bool) {
	if r.window > 0 && s.t < r.newest-r.window.Milliseconds() {
		r.tooOld++
		return cmp.Or(r.windowSays, "too old sample"), false
	}
	have, anyOrder := r.stored[s.series], r.anyOrder && !(r.floatsOnly && isHistogram(s.series))
	if r.has[s] {
		r.again++
		if !anyOrder && have[len(have)-1] != s {
			return "out of order sample", false
		}
		return "", false
	}
	if n := len(have); n > 0 && have[n-1].t >= s.t && !anyOrder && !(r.oneValue && have[n-1].t == s.t) {
		return "out of order sample", false
	}
	if at := slices.IndexFunc(have, func(x smp) bool { return x.t == s.t }); r.oneValue && at >= 0 {
		if !slices.ContainsFunc(have, func(x smp) bool { return x.t > s.t }) {
			return fmt.Sprintf("duplicate sample for timestamp %d; overrides not allowed: existing %v, new value %v for series {__name__=%q, job=\"test\"}", s.t, have[at].v, s.v, s.series), false
		}
		return "", false // dropped in silence, as the head's out-of-order part does
	}
	r.stored[s.series] = append(have, s)
	r.has[s] = true
	return "", true
}

func (r *fakeReceiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

func (r *fakeReceiver) log() []fakeRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// from names the first and the last sample.
func (q fakeRequest) from() string {
	if len(q.samples) == 0 {
		return ""
	}
	a, b := q.samples[0], q.samples[len(q.samples)-1]
	at := func(s smp) string { return s.series + "@" + time.UnixMilli(s.t).UTC().Format("04:05") }
	return ": " + at(a) + " .. " + at(b)
}

func (r *fakeReceiver) dump() string {
	var b strings.Builder
	for _, q := range r.log() {
		fmt.Fprintf(&b, "%4d %s %v %v attempt %d: %d samples in %d series (%d exemplars) -> %d%s\n", q.n, q.at.Format("15:04:05.000"), q.version, q.compression, q.attempt, len(q.samples), q.series, len(q.exemplars), q.status, q.from())
	}
	return b.String()
}

// memLetters is a dead-letter store in memory.
type memLetters struct {
	mu      sync.Mutex
	letters []Letter
	memory  []byte // as in Memory
}

func (m *memLetters) Remember(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.memory = slices.Clone(b)
	return nil
}

func (m *memLetters) Recall() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.memory), nil
}

func (m *memLetters) Put(ls []Letter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.letters = append(m.letters, ls...)
	return nil
}

func (m *memLetters) List() ([]Letter, error) { return m.all(), nil }

func (m *memLetters) all() []Letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.letters)
}

// rig is a queue between a log and a receiver.
type rig struct {
	t       testing.TB
	log     *memLog
	to      *fakeReceiver
	sender  Sender // nil: to
	letters *memLetters
	cfg     config.Config
	splay   time.Duration
	q       *Queue
	stop    context.CancelFunc
	done    chan struct{} // closed when Run has returned
	time    int64         // of the last sample, ms
	rand    func() float64
	metrics *metrics.Target
	logger  *slog.Logger
	tenants *tenant.Registry
}

func newRig(t testing.TB, to *fakeReceiver) *rig {
	cfg := config.DefaultConfig()
	cfg.Queue.BatchSendDeadline = model.Duration(time.Second)
	cfg.Target.FutureLimit = 0 // so that the first request has data; see timed
	return &rig{t: t, log: newMemLog(t), to: to, letters: &memLetters{}, cfg: cfg, time: time.Now().UnixMilli(), rand: func() float64 { return 0.5 }}
}

// timed makes the queue ask for the target's time before it sends data, which is the default.
func (r *rig) timed() *rig {
	r.cfg.Target.FutureLimit = config.DefaultConfig().Target.FutureLimit
	return r
}

// old has rounds that begin an hour ago: they are the backlog of a target that was away.
func (r *rig) old() *rig {
	r.time -= time.Hour.Milliseconds()
	return r
}

func (r *rig) start() {
	r.t.Helper()
	sender := r.sender
	if sender == nil {
		sender = r.to
	}
	q, err := New(Options{Name: "test", Config: r.cfg, Source: r.log, Backlog: &memBacklog{m: r.log}, Split: r.log.Split, Sender: sender, DeadLetters: r.letters, Metrics: r.metrics, Logger: r.logger, Tenants: r.tenants, Splay: r.splay, Rand: r.rand})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r.q, r.stop, r.done = q, cancel, done
	go func() { defer close(done); q.Run(ctx) }()
	r.t.Cleanup(func() { cancel(); <-done }) // of a test that failed
}

// end stops the queue and returns how long that took.
func (r *rig) end() time.Duration {
	r.t.Helper()
	at := time.Now()
	r.stop()
	<-r.done
	return time.Since(at)
}

// round commits one sample of each of n series.
func (r *rig) round(n int) {
	r.time += 1000
	ss := make([]smp, 0, n)
	for i := range n {
		ss = append(ss, smp{fmt.Sprintf("m%04d", i), r.time, float64(r.time) + float64(i)})
	}
	r.log.append(ss...)
}

// until waits, in virtual time, until ok, at most so long.
func (r *rig) until(what string, most time.Duration, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(most); !ok(); {
		if time.Now().After(end) {
			r.t.Fatalf("%s: not within %v; status %+v\n%s", what, most, r.q.Status(), r.to.dump())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r *rig) drained(most time.Duration) {
	r.t.Helper()
	r.until("everything has its outcome", most, func() bool { return r.log.pending() == 0 })
}

// verify checks that the account adds up, and that the receiver has every sample except the lost ones, once, in the
// order of each series.
func (r *rig) verify(lost ...smp) {
	r.t.Helper()
	o := r.log.outcome()
	head, pending := r.log.Head().Total, r.log.pending()
	if o.Sum()+pending != head {
		r.t.Errorf("%d appended, %d accounted for, %d pending", head, o.Sum(), pending)
	}
	r.to.mu.Lock()
	defer r.to.mu.Unlock()
	gone := map[smp]bool{}
	for _, s := range lost {
		gone[s] = true
	}
	want, missing := 0, 0
	for _, e := range r.log.entries {
		if e.End.Commit > r.log.sp.Acked().Commit {
			break
		}
		for _, s := range e.Samples {
			x := smp{s.Series.Labels().Get("__name__"), s.T, s.V}
			switch {
			case gone[x]:
			case r.to.has[x]:
				want++
			default:
				if missing++; missing < 4 {
					r.t.Errorf("receiver does not have %+v", x)
				}
			}
		}
	}
	for name, have := range r.to.stored {
		if !slices.IsSortedFunc(have, func(a, b smp) int { return cmp.Compare(a.t, b.t) }) && !r.to.anyOrder {
			r.t.Errorf("series %s is stored out of order", name)
		}
	}
	extra := 0
	if pending == 0 {
		extra = len(r.to.has) - want
	}
	if missing > 0 || extra > 0 {
		r.t.Errorf("receiver lacks %d samples, has %d too many; outcomes %+v", missing, extra, o)
	}
}

// change changes the state that the script uses.
func (r *fakeReceiver) change(f func()) { r.set(f) }

// answerPlain is the answer without the script.
func (r *fakeReceiver) answerPlain(q fakeRequest) client.Answer {
	script := r.script
	r.script = nil
	defer func() { r.script = script }()
	return r.answer(q)
}

// answers is the same answer to every request.
func answers(status int, text string) func(fakeRequest) (client.Answer, bool) {
	return func(fakeRequest) (client.Answer, bool) { return client.Answer{Status: status, Text: text}, true }
}
