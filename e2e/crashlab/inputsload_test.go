//go:build linux

package crashlab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// answerWithin is the longest that a sender waits: more than the agent lets it wait for its turn.
const answerWithin = 20 * time.Second

// inputs is a lab whose agent has every way in, all of them in use: two senders of each
// protocol, an exec probe, a textfile probe and a scrape.
type inputs struct {
	*lab
	addresses
	account *intake
	senders []*sender
	teller  *teller

	strike  atomic.Pointer[strike]
	life    atomic.Int64 // of the agent, from 1
	stop    context.CancelFunc
	sending sync.WaitGroup
}

// perWay is how many senders each way has.
const perWay = 2

// newInputs returns the lab. limits is the inside of each receiver's limits: {…}.
func newInputs(t *testing.T, o options, limits string) *inputs {
	t.Helper()
	endToEnd(t)
	in := &inputs{account: newIntake(), teller: newTeller(t)}
	o.also = in.account.add
	in.lab = newLab(t, o)
	for _, a := range []*string{&in.write, &in.push, &in.text, &in.otlp, &in.grpc} {
		*a = freeAddress(t)
	}
	in.more = fmt.Sprintf(`
  - {name: exec, type: exec, command: [/bin/cat, %q], interval: 300ms, timeout: 300ms}
  - {name: files, type: textfile, directory: %q, interval: 150ms, timeout: 150ms}
scrape_configs:
  - {job_name: scraped, scrape_interval: 200ms, scrape_timeout: 200ms, static_configs: [{targets: [%q]}]}
receivers:
  remote_write: {listen: %q, limits: {%[9]s}}
  pushgateway: {listen: %[5]q, interval: 100ms, limits: {%[9]s}}
  import: {listen: %[6]q, limits: {%[9]s}}
  otlp: {http: {listen: %[7]q}, grpc: {listen: %[8]q}, limits: {%[9]s}}`,
		in.teller.file(), in.teller.dir, in.teller.server.Listener.Addr(), in.write, in.push, in.text, in.otlp, in.grpc, limits)
	in.configure(true)
	for _, w := range ways() {
		for who := range perWay {
			in.senders = append(in.senders, &sender{in: in, way: w, who: who, rnd: rand.New(rand.NewPCG(seed(t), uint64(len(in.senders))))})
		}
	}
	return in
}

// send has all senders send until the load ends.
func (in *inputs) send() {
	ctx, cancel := context.WithCancel(context.Background())
	in.stop = cancel
	in.t.Cleanup(in.silence)
	for _, s := range in.senders {
		in.sending.Go(func() { s.run(ctx) })
	}
}

// silence ends the senders, each after the answer to its last request.
func (in *inputs) silence() {
	in.stop()
	in.sending.Wait()
}

// start is a new life of the agent.
func (in *inputs) start() {
	in.t.Helper()
	in.life.Add(1)
	in.launch()
}

// quietInputs ends the load in all ways in, so that the log can be emptied: each sender's
// last request is answered with 2xx before, and each group is shown.
func (in *inputs) quietInputs() {
	in.t.Helper()
	in.recv.Behave(in.behaviour)
	if err := in.recv.Start(); err != nil {
		in.t.Fatal(err)
	}
	in.silence()
	for _, s := range in.senders {
		eventually(in.t, 30*time.Second, func() string {
			if a := s.say(in.t.Context(), false); !a.ok() {
				return fmt.Sprintf("the last request by %s is answered %d %s", s.way, a.status, a.text)
			}
			return ""
		})
		if s.way == byPush {
			eventually(in.t, 30*time.Second, func() string {
				if n := in.account.shown(s); n != s.last().n {
					return fmt.Sprintf("the group of sender %d shows %d, want %d", s.who, n, s.last().n)
				}
				return ""
			})
		}
	}
	in.more = ""
}

// statement is one request of a sender.
type statement struct {
	n            uint64
	at           int64 // the samples' time, milliseconds; of a push 0
	ends         bool  // a DELETE
	began, ended time.Time
	life         int64 // of the agent when it began
	written      bool  // all of it was sent
	answer       answer
}

// sender sends one request after the other through one input. Its record belongs to it until it has ended.
type sender struct {
	in  *inputs
	way way
	who int
	rnd *rand.Rand

	mu   sync.Mutex
	said []statement
	http *http.Client
}

func (s *sender) last() statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said[len(s.said)-1]
}

func (s *sender) run(ctx context.Context) {
	for ctx.Err() == nil {
		// Now and then a group is deleted, and pushed again.
		s.say(ctx, s.way == byPush && s.rnd.IntN(6) == 0)
		time.Sleep(between(s.rnd, 5, 30)) // the load's own time
	}
}

// say says the next number, and returns what became of it.
func (s *sender) say(ctx context.Context, ends bool) answer {
	now := statement{ends: ends, began: time.Now(), life: s.in.life.Load()}
	s.mu.Lock()
	now.n = uint64(len(s.said)) + 1
	if s.way != byPush {
		now.at = now.began.UnixMilli()
		if len(s.said) > 0 {
			now.at = max(now.at, s.said[len(s.said)-1].at+1)
		}
	}
	if s.http == nil {
		s.http = s.way.client()
	}
	s.mu.Unlock()

	strike := s.in.strike.Load()
	if strike != nil && strike.way != s.way {
		strike = nil
	}
	var written atomic.Bool
	trace := httptrace.WithClientTrace(context.WithoutCancel(ctx), &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		written.Store(info.Err == nil)
		if info.Err == nil && strike != nil && !strike.answered && strike.due() {
			go strike.hit()
		}
	}})
	method, body := http.MethodPut, []byte(nil)
	if ends {
		method = http.MethodDelete
	} else {
		if s.way != byPush || s.rnd.IntN(2) == 0 {
			method = http.MethodPost
		}
		var err error
		if body, err = s.way.body(saidName, s.who, now.n, now.at); err != nil {
			s.in.t.Error(err)
		}
	}
	now.answer = s.way.ask(trace, s.http, method, s.in.url(s.way, s.who), "", body)
	if now.answer.ok() && strike != nil && strike.answered && strike.due() {
		strike.hit()
	}
	now.ended, now.written = time.Now(), written.Load()
	s.mu.Lock()
	s.said = append(s.said, now)
	s.mu.Unlock()
	if now.answer.status == 0 { // its connections are those of a life that has ended
		s.http.CloseIdleConnections()
	}
	return now.answer
}

// strike is a kill by a sender itself: directly after an answer of 2xx, before anything
// else, or a moment after a request was sent.
type strike struct {
	way      way
	answered bool
	after    atomic.Int64 // how many answers or requests come before it
	delay    time.Duration
	kill     func() error
	fired    chan struct{} // closed when the kill was sent
	err      error         // of it
}

// due counts, and reports whether it is the strike's turn.
func (k *strike) due() bool { return k.after.Add(-1) == 0 }

func (k *strike) hit() {
	if k.delay > 0 {
		time.Sleep(k.delay) // the fault's own schedule
	}
	k.err = k.kill()
	close(k.fired)
}

// teller is what the agent reads by itself: a number that grows all the time, in a file for
// the textfile probe and the command of the exec probe, and at an exporter.
type teller struct {
	dir    string
	n      atomic.Uint64
	asked  atomic.Int64 // how often the exporter was scraped
	server *httptest.Server
}

func (r *teller) file() string { return filepath.Join(r.dir, "told.prom") }

func (r *teller) text() (text string) {
	n := r.n.Load()
	for part := range parts {
		text += toldName + `{` + saidPart + `="` + strconv.Itoa(part) + `"} ` + strconv.FormatUint(n, 10) + "\n"
	}
	return text
}

// toldName is the metric that is read.
const toldName = "told"

func newTeller(t *testing.T) *teller {
	t.Helper()
	r := &teller{dir: t.TempDir()}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.asked.Add(1)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, r.text())
	}))
	t.Cleanup(r.server.Close)
	next := func() error {
		r.n.Add(1)
		part := r.file() + ".new"
		if err := os.WriteFile(part, []byte(r.text()), 0o600); err != nil {
			return err
		}
		return os.Rename(part, r.file())
	}
	if err := next(); err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				if err := next(); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-ended })
	return r
}
