package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
)

// livesReceiver is the receiver of all tenants in a life of tenants, behind a network in memory. The header names the tenant of a request.
type livesReceiver struct {
	server *http.Server
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	ended  chan error

	strict    bool // it takes no sample that is older than another one of its series
	keepsGood bool // it stores the good part of a refused request

	mu      sync.Mutex
	dice    *rand.Rand
	answer  map[string]string // by tenant: how its receiver fails; "": it does not
	samples []lifeSample      // all that were appended, by value
	has     map[string]map[int]bool
	newest  map[string]map[string]int64 // by tenant and series
	alive   int                         // number of the agent's process: connections of an earlier one are dead
	wrong   []string                    // what no receiver may get
	fired   map[string]int              // of the test: how often a receiver failed, by how
	early   []string                    // samples that came after a newer one of their series
}

// lifeSample is a sample that was appended. Its value is its number.
type lifeSample struct {
	tenant string // the value of its label; "": none
	series string
	t      int64
	commit uint64 // the number of its commit
	bad    bool   // the receiver always refuses it
}

// lifeConn is a connection of a process of the agent.
type lifeConn struct {
	net.Conn
	of int
}

type lifeConnKey struct{}

func newLivesReceiver(seed uint64, fired map[string]int) *livesReceiver {
	r := &livesReceiver{
		conns: make(chan net.Conn), closed: make(chan struct{}), ended: make(chan error, 1), dice: rand.New(rand.NewPCG(seed, 2)),
		answer: map[string]string{}, has: map[string]map[int]bool{}, newest: map[string]map[string]int64{}, fired: fired,
	}
	r.server = &http.Server{
		Handler: r, ReadHeaderTimeout: time.Hour, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, lifeConnKey{}, c.(*lifeConn).of)
		},
	}
	go func() { r.ended <- r.server.Serve(r) }()
	return r
}

// dialOf returns the network of the agent's process of that number.
func (r *livesReceiver) dialOf(process int) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		client, server := net.Pipe()
		select {
		case r.conns <- &lifeConn{server, process}:
			return client, nil
		case <-r.closed:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Accept and the following methods are those of a [net.Listener].
func (r *livesReceiver) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

func (r *livesReceiver) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

func (r *livesReceiver) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// end stops the receiver.
func (r *livesReceiver) end() error {
	err := r.server.Close()
	if ended := <-r.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// livesAnswers are how a receiver fails; "" is that it does not.
var livesAnswers = []string{"", "", "", "", "cut", "503", "429", "400", "401", "403", "404", "lose", "half", "slow", "hang"}

func (r *livesReceiver) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *livesReceiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the agent has gone
	}
	id := q.Header.Get("X-Scope-OrgID")
	var fails string
	var pause time.Duration
	r.set(func() {
		if fails = r.answer[id]; q.Context().Value(lifeConnKey{}) != r.alive {
			fails = "cut"
		}
		if fails == "half" {
			r.fired["answer half"]++
			fails = []string{"", "503", "cut", "lose", "slow"}[r.dice.IntN(5)]
		}
		r.fired["answer "+fails]++
		if pause = time.Duration(r.dice.IntN(40)) * time.Millisecond; fails == "slow" {
			pause = time.Duration(1+r.dice.IntN(15)) * time.Second
		}
	})
	switch fails {
	case "cut":
		panic(http.ErrAbortHandler)
	case "hang":
		<-q.Context().Done()
		panic(http.ErrAbortHandler)
	case "503", "429", "400", "401", "403", "404":
		w.Header().Set("Retry-After", "2")
		code, _ := strconv.Atoi(fails)
		http.Error(w, "no", code)
		return
	}
	time.Sleep(pause)
	status, text := r.take(id, body)
	if fails == "lose" {
		panic(http.ErrAbortHandler)
	}
	if status != http.StatusNoContent {
		http.Error(w, text, status)
		return
	}
	w.WriteHeader(status)
}

// take stores the samples of a request.
func (r *livesReceiver) take(id string, body []byte) (status int, text string) {
	var req prompb.WriteRequest
	raw, err := snappy.Decode(nil, body)
	if err == nil {
		err = req.Unmarshal(raw)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.wrong = append(r.wrong, err.Error())
		return http.StatusBadRequest, err.Error()
	}
	newest := maps.Clone(r.newest[id])
	if newest == nil {
		newest = map[string]int64{}
	}
	var good []int
	for _, ts := range req.Timeseries {
		for _, p := range ts.Samples {
			n := int(p.Value)
			s := r.samples[n]
			last, known := newest[s.series]
			switch {
			case s.bad:
				text = "label value is too odd"
			case r.strict && known && s.t < last:
				text = "out of order sample"
			default:
				if known && s.t < last && !r.has[id][n] {
					r.early = append(r.early, s.String())
				}
				newest[s.series] = max(last, s.t)
				good = append(good, n)
			}
		}
	}
	if text != "" && !r.keepsGood {
		return http.StatusBadRequest, text
	}
	if r.has[id] == nil {
		r.has[id] = map[int]bool{}
	}
	for _, n := range good {
		r.has[id][n] = true
	}
	if r.newest[id] = newest; text != "" {
		return http.StatusBadRequest, text
	}
	return http.StatusNoContent, ""
}

// of returns the tenants that have a sample.
func (r *livesReceiver) of(n int) (ids []string) {
	for id, has := range r.has {
		if has[n] {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s lifeSample) String() string {
	return fmt.Sprintf("%s of %q in commit %d at %s", s.series, s.tenant, s.commit, time.UnixMilli(s.t).UTC().Format("04:05.000"))
}
