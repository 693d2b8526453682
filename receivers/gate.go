package receivers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"golang.org/x/sync/semaphore"

	"hwsagent/internal/panics"
	"hwsagent/internal/spare"
)

// GateOptions configure a [Gate].
type GateOptions struct {
	Name    string // of the receiver, in logs and metrics
	Limits  Limits
	Relabel []*relabel.Config // metric_relabel_configs, applied to every series

	Out Log
	// Full reports whether an error of Commit means that the log's budget is used up.
	Full   func(error) bool
	Logger *slog.Logger

	// Guard contains the panics of the receiver's work; nil: the gate makes its own.
	Guard *panics.Guard
}

// Log is where samples go. It is safe for concurrent use.
type Log interface {
	storage.AppendableV2

	// Labels returns the labels of the series with a reference that Append has returned, none if the log has forgotten it.
	Labels(ref storage.SeriesRef) labels.Labels
}

// Gate admits requests to one receiver, within its limits, and counts their outcomes. It is safe for concurrent use.
type Gate struct {
	o       GateOptions
	memory  *semaphore.Weighted // of Limits.MemoryBytes
	slots   *semaphore.Weighted // of Limits.Requests
	active  *activeSeries
	known   *Table[Known]
	texts   *Table[string]
	repeats *repeats

	received, decoded buffers
	gzips             spare.Stack[gzip.Reader]

	numbers atomic.Uint32 // of requests: odd ones, so that none is 0

	mu     sync.Mutex
	counts Counts
	logged map[Reason]time.Time // when a refusal for that reason was last logged
}

// Counts are the outcomes of a receiver's requests since it was made. Samples include histograms.
type Counts struct {
	Requests        uint64 // begun
	Accepted        uint64 // answered with 2xx
	Repeated        uint64 // of these, those stored before
	Samples         uint64 // appended to the log
	RefusedRequests map[Reason]uint64
	// RefusedSamples counts samples refused alone, including exemplars and metadata; samples of requests that
	// were refused as a whole are not counted.
	RefusedSamples map[Reason]uint64
	LastError      string
	LastErrorAt    time.Time
	LastRequest    time.Time

	ActiveSeries int // at present
}

// NewGate returns a gate.
func NewGate(o GateOptions) *Gate {
	if o.Guard == nil {
		o.Guard = panics.New("receiver "+o.Name, o.Logger)
	}
	return &Gate{
		o: o, memory: semaphore.NewWeighted(o.Limits.MemoryBytes), slots: semaphore.NewWeighted(int64(o.Limits.Requests)),
		active: newActiveSeries(o.Limits.ActiveSeries), known: NewTable(knownBytes, func(*Known) int { return 0 }), texts: NewTable(textBytes, textSize), repeats: newRepeats(), logged: map[Reason]time.Time{},
		counts: Counts{RefusedRequests: map[Reason]uint64{}, RefusedSamples: map[Reason]uint64{}},
	}
}

// Limits returns the gate's limits.
func (g *Gate) Limits() Limits { return g.o.Limits }

// Counts returns a copy of the counts so far.
func (g *Gate) Counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.counts
	c.RefusedRequests, c.RefusedSamples = maps.Clone(c.RefusedRequests), maps.Clone(c.RefusedSamples)
	c.ActiveSeries = g.active.size()
	return c
}

// Request is a request whose body has been read completely. It is valid until its handler returns.
type Request struct {
	*http.Request
	Body  []byte // decompressed
	raw   []byte // as received
	gate  *Gate
	taken int64 // bytes taken from the gate's memory
	spare int64 // of these, bytes that the request does not use yet

	unpacked []byte // the newest decompressed body; its buffer goes to the next request
	reusable bool

	number  uint32   // tells it from other requests in flight; not 0
	fresh   []uint64 // hashes of series that this request made active, until it is stored
	decodes bool     // all series, because the log has forgotten one that the receiver knows
}

// Handler serves requests. It calls the checks, which see the request's header, before it reads any part of the body.
// It reads and decompresses the body within the limits, waits for the request's turn, and calls handle. It counts the
// first error of these, and answers it by refuse, or in plain text if refuse is nil; without an error, handle has
// answered itself.
func (g *Gate) Handler(handle func(w http.ResponseWriter, r *Request) error, refuse func(w http.ResponseWriter, r *http.Request, why *Refusal), checks ...func(*http.Request) error) http.Handler {
	if refuse == nil {
		refuse = func(w http.ResponseWriter, _ *http.Request, why *Refusal) { why.Answer(w) }
	}
	checks = append(slices.Clone(checks), checkEncoding)
	return http.HandlerFunc(func(w http.ResponseWriter, h *http.Request) {
		began := time.Now()
		g.count(func(c *Counts) { c.Requests, c.LastRequest = c.Requests+1, began })
		r := &Request{Request: h, gate: g, number: g.numbers.Add(2) | 1}
		defer r.release()
		err := g.o.Guard.Do(func() error { return g.serve(w, r, handle, checks) })
		if err == nil {
			g.count(func(c *Counts) { c.Accepted++ })
			return
		}
		g.active.forget(r.fresh, r.number)
		why := AsRefusal(err)
		if panics.As(err) != nil {
			// Not 5xx: the sender would retry a request that always panics for ever.
			why = Refuse(Panicked, http.StatusBadRequest, "the request failed because of a bug in the agent and is not stored; the agent's log has the details")
		}
		g.Refused(why)
		refuse(w, h, why)
	})
}

// Refused counts a refused request that is not served by [Gate.Handler].
func (g *Gate) Refused(why *Refusal) {
	g.count(func(c *Counts) {
		c.RefusedRequests[why.Reason]++
		c.LastError, c.LastErrorAt = why.Text, time.Now()
	})
	g.note(why)
}

func (g *Gate) serve(w http.ResponseWriter, r *Request, handle func(http.ResponseWriter, *Request) error, checks []func(*http.Request) error) error {
	for _, check := range checks {
		if err := check(r.Request); err != nil {
			linger(w)
			return err
		}
	}
	var err error
	if r.raw, err = r.read(w); err != nil {
		return err
	}
	// A request waits here only after its whole body has arrived: a slow client never holds a slot.
	ctx, cancel := context.WithTimeout(r.Context(), slotTimeout)
	defer cancel()
	if g.slots.Acquire(ctx, 1) != nil {
		return later(Busy, time.Second, "%d requests are being stored at the same time, and none ended for %s", g.o.Limits.Requests, slotTimeout)
	}
	defer g.slots.Release(1)
	work, end := context.WithTimeoutCause(r.Context(), readTimeout,
		later(Busy, time.Second, "the request was not read within %s: the agent has too much to do, or send less at once", readTimeout))
	defer end()
	r.Request = r.WithContext(work)
	if r.Body, err = r.decode(r.Header.Get("Content-Encoding"), r.raw); err != nil {
		return err
	}
	return handle(w, r)
}

// ended returns why the rest of a request must not be read, nil if it may be.
func (r *Request) ended() error {
	if r.Context().Err() == nil {
		return nil
	}
	return context.Cause(r.Context())
}

// portion is the least that a request takes from the gate's memory at once, if there is as much: most samples need no lock.
const portion = 16 << 10

// take reserves n bytes of the receiver's memory until the request has ended, or returns why it cannot.
func (r *Request) take(n int64) error {
	if n <= 0 {
		return nil
	}
	if n > r.spare {
		most := r.gate.o.Limits.MemoryBytes - r.taken
		least := n - r.spare
		if least > most {
			return Refuse(TooComplex, http.StatusRequestEntityTooLarge, "the request takes more than %d bytes of memory: send less at once", r.gate.o.Limits.MemoryBytes)
		}
		more := min(max(least, portion), most)
		if !r.gate.memory.TryAcquire(more) {
			if more = least; !r.gate.memory.TryAcquire(more) {
				return later(Busy, time.Second, "the requests in flight use all %d bytes of memory available to them", r.gate.o.Limits.MemoryBytes)
			}
		}
		r.taken, r.spare = r.taken+more, r.spare+more
	}
	r.spare -= n
	return nil
}

// used is how many bytes of the receiver's memory the request uses.
func (r *Request) used() int64 { return r.taken - r.spare }

// Take reserves n bytes of the receiver's memory, for objects made from the body, until the request has ended, or
// returns a [Refusal]. It must be called before the memory is allocated.
func (r *Request) Take(n int64) error { return r.take(n) }

// release releases the memory of a request that has ended.
func (r *Request) release() {
	r.keep(&r.gate.received, r.raw)
	r.keep(&r.gate.decoded, r.unpacked)
	if r.taken > 0 {
		r.gate.memory.Release(r.taken)
		r.taken, r.spare = 0, 0
	}
}

func (g *Gate) count(f func(*Counts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.counts)
}

// CountRefused counts n refused single samples.
func (g *Gate) CountRefused(reason Reason, n uint64) {
	g.count(func(c *Counts) { c.RefusedSamples[reason] += n })
}

// logAgain is the minimum time between two log lines about refusals with the same reason.
const logAgain = 5 * time.Minute

// note logs a refusal, unless one for the same reason was logged recently.
func (g *Gate) note(why *Refusal) {
	if g.tell(why.Reason, time.Now()) {
		g.o.Logger.Warn("A request was refused", "receiver", g.o.Name, "reason", string(why.Reason), "err", why.Text)
	}
}

// tell reports whether to log a refusal.
func (g *Gate) tell(reason Reason, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if last, known := g.logged[reason]; known && now.Sub(last) < logAgain {
		return false
	}
	g.logged[reason] = now
	return true
}

// MarkStale marks series stale that are no longer sent, with their names before relabelling, in one commit. Limits do
// not apply.
func (g *Gate) MarkStale(ctx context.Context, series []labels.Labels) (err error) {
	if len(series) == 0 {
		return nil
	}
	app, lb := g.o.Out.AppenderV2(ctx), labels.NewBuilder(labels.EmptyLabels())
	ended := false
	defer func() {
		if !ended { // an error, or a panic
			err = errors.Join(err, app.Rollback())
		}
	}()
	// A round may have used this very millisecond, and a series has one value per millisecond.
	at, stale, filtered := time.Now().UnixMilli()+1, math.Float64frombits(value.StaleNaN), 0
	for _, ls := range series {
		lb.Reset(ls)
		if !relabel.ProcessBuilder(lb, g.o.Relabel...) {
			filtered++
			continue
		}
		if invalid(lb.Labels()) != "" {
			continue // dropped, like its samples
		}
		// If another sender continues the series, the log refuses the marker as out of order.
		_, err := app.Append(0, lb.Labels(), 0, at, stale, nil, nil, storage.AOptions{RejectOutOfOrder: true})
		if err != nil && !errors.Is(err, storage.ErrOutOfOrderSample) && !errors.Is(err, storage.ErrDuplicateSampleForTimestamp) {
			return fmt.Errorf("mark series stale: %w", err)
		}
	}
	if f, ok := app.(filterer); ok {
		f.Filtered(filtered)
	}
	err = app.Commit()
	ended = true
	if err != nil {
		return fmt.Errorf("mark series stale: %w", err)
	}
	return nil
}

// Limits returns the receiver's limits.
func (r *Request) Limits() Limits { return r.gate.o.Limits }
