//go:build linux

package crashlab

import (
	varint "encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/value"

	"hwsagent/agent/demo/receiver"
)

// tally is a receiver that is quick enough for a million samples a second on a machine
// that the agent needs as well: it reads requests in place and keeps a few numbers a
// series. That is enough to compute what was lost, came twice or in wrong order, because
// the rounds of a canary are numbered. It takes the canaries of several probes, which
// differ by the label job: "canary0", "canary1", …, all with noise.
type tally struct {
	t       *testing.T
	series  int // of each probe
	address string

	server  *http.Server
	serving sync.WaitGroup
	bodies  sync.Pool // of *reading

	mu      sync.Mutex
	ids     map[string]int // by the encoded labels; -1 is not a canary
	seen    []seenSeries   // probe by probe
	expect  []uint32       // by probe: numbers up to this one are not expected
	holes   []map[uint32]int
	first   time.Time // when the first sample since up came
	samples int64     // all, those that came again, stale markers and the runner's reports included
	wire    int64     // bytes of bodies with samples
	again   int64     // canary samples that had come before
	back    int64     // times that a series went back to an earlier number
	garbled int64     // values that no canary has said
	lags    []lag
}

// seenSeries is what is kept of a series: the greatest number, and the one that came last.
type seenSeries struct{ last, latest uint32 }

// lag is how old a sample was when it arrived for the first time.
type lag struct {
	at  time.Time
	age time.Duration
}

// reading is the memory that a request takes to be read.
type reading struct{ body, raw []byte }

// newTally returns a receiver for the canaries of so many probes. It does not listen.
func newTally(t *testing.T, probes, series int) *tally {
	t.Helper()
	c := &tally{
		t: t, series: series, address: freeAddress(t), ids: map[string]int{},
		seen: make([]seenSeries, probes*series), expect: make([]uint32, probes), holes: make([]map[uint32]int, probes),
	}
	c.bodies.New = func() any { return &reading{} }
	for i := range c.holes {
		c.holes[i] = map[uint32]int{}
	}
	t.Cleanup(c.down)
	return c
}

func (c *tally) url() string { return "http://" + c.address + "/api/v1/write" }

// up listens.
func (c *tally) up() {
	c.t.Helper()
	l, err := net.Listen("tcp", c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	c.first = time.Time{}
	c.mu.Unlock()
	srv := &http.Server{Handler: http.HandlerFunc(c.handle), ReadHeaderTimeout: 10 * time.Second}
	c.server = srv
	c.serving.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			c.t.Errorf("the receiver ended: %v", err)
		}
	})
}

// down stops listening and cuts the connections.
func (c *tally) down() {
	if c.server != nil {
		_ = c.server.Close()
	}
	c.serving.Wait()
}

func (c *tally) handle(w http.ResponseWriter, r *http.Request) {
	x := c.bodies.Get().(*reading)
	defer c.bodies.Put(x)
	x.body = slices.Grow(x.body[:0], int(max(r.ContentLength, 0)))
	x.body = x.body[:max(r.ContentLength, 0)]
	if _, err := io.ReadFull(r.Body, x.body); err != nil {
		return // cut: the request does not count, and gets no answer
	}
	raw, err := snappy.Decode(x.raw[:cap(x.raw)], x.body)
	if err != nil {
		c.t.Errorf("a body is not snappy: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	x.raw = raw
	c.add(raw, len(x.body), time.Now())
	w.WriteHeader(http.StatusNoContent)
}

// Fields of prometheus.WriteRequest, TimeSeries, Label and Sample.
const (
	fieldSeries = 1<<3 | 2
	fieldLabel  = 1<<3 | 2
	fieldSample = 2<<3 | 2
	fieldName   = 1<<3 | 2
	fieldValue  = 2<<3 | 2
	fieldFloat  = 1<<3 | 1
	fieldTime   = 2 << 3 // a varint: 0
)

// add counts an encoded prometheus.WriteRequest.
func (c *tally) add(raw []byte, wire int, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, oldest := c.samples, int64(math.MaxInt64)
	for len(raw) > 0 {
		key, ts, rest := field(raw)
		if raw = rest; key != fieldSeries {
			continue
		}
		// The labels come first.
		n := 0
		for n < len(ts) {
			key, _, rest := field(ts[n:])
			if key != fieldLabel {
				break
			}
			n = len(ts) - len(rest)
		}
		id, ok := c.ids[string(ts[:n])]
		if !ok {
			id = c.identify(ts[:n])
			c.ids[string(ts[:n])] = id
		}
		for ts = ts[n:]; len(ts) > 0; {
			key, sample, rest := field(ts)
			if ts = rest; key != fieldSample {
				continue
			}
			v, at := sampleOf(sample)
			c.samples++
			if id < 0 || c.count(id, v) { // a repetition did not wait: the sender repeats a sample to find out whether a target takes old ones
				oldest = min(oldest, at)
			}
		}
	}
	if c.samples == before {
		return
	}
	c.wire += int64(wire)
	if c.first.IsZero() {
		c.first = now
	}
	if oldest < math.MaxInt64 {
		c.lags = append(c.lags, lag{now, now.Sub(time.UnixMilli(oldest))})
	}
}

// count notes one sample of a canary, and reports whether it came for the first time.
func (c *tally) count(id int, v uint64) bool {
	if v == value.StaleNaN {
		return true
	}
	s, probe := &c.seen[id], id/c.series
	f := math.Float64frombits(v)
	n := uint32(f)
	if f != float64(n)+fraction(uint64(n), id%c.series) || n == 0 {
		c.garbled++
		return true
	}
	s.last = max(s.last, c.expect[probe])
	if n <= s.latest {
		c.back++
	}
	if s.latest = n; n <= s.last {
		c.again++
		return false
	}
	for lacks := s.last + 1; lacks < n; lacks++ {
		c.holes[probe][lacks]++
	}
	s.last = n
	return true
}

// fraction returns the canary's noise, as probes/canary documents it.
func fraction(number uint64, series int) float64 {
	h := number<<20 + uint64(series)
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	room := max(0, 52-bits.Len64(number))
	return float64(h>>(64-room)) / float64(uint64(1)<<room)
}

// identify returns the index of a series with these encoded labels; -1 if it is not a canary.
func (c *tally) identify(encoded []byte) int {
	canary, probe, series := false, -1, -1
	for len(encoded) > 0 {
		_, label, rest := field(encoded)
		encoded = rest
		_, name, rest := field(label)
		_, text, _ := field(rest)
		var err error
		switch string(name) {
		case "__name__":
			canary = string(text) == receiver.CanaryName
		case "job":
			probe, err = strconv.Atoi(strings.TrimPrefix(string(text), "canary"))
		case "series":
			series, err = strconv.Atoi(string(text))
		}
		if err != nil {
			c.t.Errorf("labels of a canary: %v", err)
			return -1
		}
	}
	if !canary || probe < 0 || probe >= len(c.expect) || series < 0 || series >= c.series {
		return -1
	}
	return probe*c.series + series
}

// field returns the first field of a message, and what follows it. A number is in the upper
// bytes of its encoding, unread. Whatever is malformed ends the message.
func field(b []byte) (key uint64, val, rest []byte) {
	key = uint64(b[0]) // all keys here are below 16
	size, n := uint64(b[1]), 1
	if size >= 0x80 {
		if size, n = varint.Uvarint(b[1:]); n <= 0 {
			return 0, nil, nil
		}
	}
	if size > uint64(len(b)-1-n) {
		return 0, nil, nil
	}
	return key, b[1+n : 1+n+int(size)], b[1+n+int(size):]
}

// sampleOf reads a prometheus.Sample: the bits of the value, and the timestamp.
func sampleOf(b []byte) (bits uint64, at int64) {
	for len(b) > 0 {
		switch {
		case b[0] == fieldFloat && len(b) >= 9:
			bits, b = varint.LittleEndian.Uint64(b[1:]), b[9:]
		case b[0] == fieldTime:
			v, n := varint.Uvarint(b[1:])
			if n <= 0 {
				return bits, at
			}
			at, b = int64(v), b[1+n:]
		default:
			return bits, at
		}
	}
	return bits, at
}

// verdict is the account of a tally.
type verdict struct {
	Samples, Lost, Again, Back, Garbled, Ghosts int64
}

// verify compares what has come with the journals of the probes: every number that is
// acknowledged must have come in every series, but for those that are not expected.
func (c *tally) verify(journals []receiver.Journal) verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := verdict{Samples: c.samples, Again: c.again, Back: c.back, Garbled: c.garbled}
	for probe, j := range journals {
		acked := map[uint32]bool{}
		for _, n := range j.Acked {
			acked[uint32(n)] = true
		}
		for n, lacking := range c.holes[probe] {
			if acked[n] {
				v.Lost += int64(lacking)
			}
		}
		for _, s := range c.seen[probe*c.series : (probe+1)*c.series] {
			if uint64(s.last) > j.Tried {
				v.Ghosts++
			}
			for n := max(s.last, c.expect[probe]) + 1; n <= uint32(j.Tried); n++ {
				if acked[n] {
					v.Lost++
				}
			}
		}
	}
	return v
}

// expectAfter says that the numbers of a probe up to this one are not expected.
func (c *tally) expectAfter(probe int, number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expect[probe] = uint32(number)
}

// total returns how many samples have come, and how many of them had come before.
func (c *tally) total() (samples, again int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.samples, c.again
}

// firstSample returns when the first sample since up came, zero if none has.
func (c *tally) firstSample() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first
}

// listenAnew makes firstSample tell of the samples from now on.
func (c *tally) listenAnew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first = time.Time{}
}

// lag returns the 99th percentile and the greatest age of the oldest samples of requests in
// that stretch of time.
func (c *tally) lag(from, to time.Time) (p99, worst time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ages(c.lags, from, to)
}
