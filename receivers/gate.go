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
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"golang.org/x/sync/semaphore"

	"hwsagent/inputs/panics"
)

// GateOptions are what a [Gate] is made of.
type GateOptions struct {
	Name    string // of the receiver, in logs and metrics
	Limits  Limits
	Relabel []*relabel.Config // metric_relabel_configs, applied to every series

	Out storage.AppendableV2
	// Full reports whether an error of Commit means that the log's budget is used up.
	Full   func(error) bool
	Logger *slog.Logger

	// Guard contains the panics of the receiver's work; nil stands for one of its own.
	Guard *panics.Guard
}

// Gate lets requests of one receiver in, within its limits, and counts what became of
// them. It is safe for concurrent use.
type Gate struct {
	o      GateOptions
	memory *semaphore.Weighted // of Limits.MemoryBytes
	slots  *semaphore.Weighted // of Limits.Requests
	active *activeSeries

	mu     sync.Mutex
	counts Counts
	told   map[Reason]time.Time // when a refusal was last logged
}

// Counts are what became of a receiver's requests since it was made. Samples include
// histograms.
type Counts struct {
	Requests        uint64 // begun
	Accepted        uint64 // answered with 2xx
	Samples         uint64 // that the log took
	RefusedRequests map[Reason]uint64
	// RefusedSamples counts what was refused by itself, exemplars and metadata included;
	// what was in a request that was refused as a whole is nowhere counted.
	RefusedSamples map[Reason]uint64
	LastError      string
	LastErrorAt    time.Time
	LastRequest    time.Time

	ActiveSeries int // as of now
}

// NewGate makes a gate.
func NewGate(o GateOptions) *Gate {
	if o.Guard == nil {
		o.Guard = panics.New("receiver "+o.Name, o.Logger)
	}
	return &Gate{
		o: o, memory: semaphore.NewWeighted(o.Limits.MemoryBytes), slots: semaphore.NewWeighted(int64(o.Limits.Requests)),
		active: newActiveSeries(o.Limits.ActiveSeries), told: map[Reason]time.Time{},
		counts: Counts{RefusedRequests: map[Reason]uint64{}, RefusedSamples: map[Reason]uint64{}},
	}
}

// Limits are those that the gate was made with.
func (g *Gate) Limits() Limits { return g.o.Limits }

// Counts is a copy of the counts so far.
func (g *Gate) Counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.counts
	c.RefusedRequests, c.RefusedSamples = maps.Clone(c.RefusedRequests), maps.Clone(c.RefusedSamples)
	c.ActiveSeries = g.active.size()
	return c
}

// Request is a request whose body has come in whole. It is valid until its handler returns.
type Request struct {
	*http.Request
	Body  []byte // decompressed
	gate  *Gate
	taken int64 // of the gate's memory

	fresh []uint64 // hashes of series that count as active by this request only, until it is stored
}

// Handler serves requests. It calls the checks, which see the request's header before anything
// of its body is read. It reads the body and decompresses it within the limits, waits
// for the request's turn, and calls handle. The first error of these is counted, and answered by
// refuse, which may be nil, for plain text; without an error handle has answered itself.
func (g *Gate) Handler(handle func(w http.ResponseWriter, r *Request) error, refuse func(w http.ResponseWriter, r *http.Request, why *Refusal), checks ...func(*http.Request) error) http.Handler {
	if refuse == nil {
		refuse = func(w http.ResponseWriter, _ *http.Request, why *Refusal) { why.Answer(w) }
	}
	checks = append(slices.Clone(checks), checkEncoding)
	return http.HandlerFunc(func(w http.ResponseWriter, h *http.Request) {
		began := time.Now()
		g.count(func(c *Counts) { c.Requests, c.LastRequest = c.Requests+1, began })
		r := &Request{Request: h, gate: g}
		defer r.release()
		err := g.o.Guard.Do(func() error { return g.serve(w, r, handle, checks) })
		if err == nil {
			g.count(func(c *Counts) { c.Accepted++ })
			return
		}
		g.active.forget(r.fresh)
		why := AsRefusal(err)
		if panics.As(err) != nil {
			// Not 5xx: the sender would send a request that always panics again for ever.
			why = Refuse(Panicked, http.StatusBadRequest, "the request cannot be handled because of a bug in the agent, whose log says more; it is not stored")
		}
		g.Refused(why)
		refuse(w, h, why)
	})
}

// Refused counts a request that was refused, for what is not served by [Gate.Handler].
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
	raw, err := r.read(w)
	if err != nil {
		return err
	}
	// Whoever waits here has sent all of its body: a slow client never holds a slot.
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
	if r.Body, err = r.decode(r.Header.Get("Content-Encoding"), raw); err != nil {
		return err
	}
	return handle(w, r)
}

// ended is why nothing more of a request is to be read, nil while it is.
func (r *Request) ended() error {
	if r.Context().Err() == nil {
		return nil
	}
	return context.Cause(r.Context())
}

// take takes n bytes of the receiver's memory until the request has ended, or says why not.
func (r *Request) take(n int64) error {
	if n <= 0 {
		return nil
	}
	if r.taken+n > r.gate.o.Limits.MemoryBytes {
		return Refuse(TooComplex, http.StatusRequestEntityTooLarge, "the request takes more than %d bytes of memory: send less at once", r.gate.o.Limits.MemoryBytes)
	}
	if !r.gate.memory.TryAcquire(n) {
		return later(Busy, time.Second, "the requests under way take all of the %d bytes of memory that they may", r.gate.o.Limits.MemoryBytes)
	}
	r.taken += n
	return nil
}

// Take is for what a protocol makes of the body: it takes n bytes of the receiver's memory
// until the request has ended, or returns a [Refusal]. It is called before the memory is
// allocated.
func (r *Request) Take(n int64) error { return r.take(n) }

func (r *Request) release() {
	if r.taken > 0 {
		r.gate.memory.Release(r.taken)
		r.taken = 0
	}
}

func (g *Gate) count(f func(*Counts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.counts)
}

// CountRefused counts n single samples that were refused.
func (g *Gate) CountRefused(reason Reason, n uint64) {
	g.count(func(c *Counts) { c.RefusedSamples[reason] += n })
}

// tellAgain is how long refusals for one reason are told by their first one.
const tellAgain = 5 * time.Minute

// note logs a refusal, unless one for the same reason was logged lately.
func (g *Gate) note(why *Refusal) {
	if g.tell(why.Reason, time.Now()) {
		g.o.Logger.Warn("A request was refused", "receiver", g.o.Name, "reason", string(why.Reason), "err", why.Text)
	}
}

// tell reports whether to log a refusal.
func (g *Gate) tell(reason Reason, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if last, known := g.told[reason]; known && now.Sub(last) < tellAgain {
		return false
	}
	g.told[reason] = now
	return true
}

// MarkStale marks series stale that are sent no more, as the rules name them, in one
// commit. No limit holds for that.
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
	// A round may have had this very millisecond, and a series has one value for it.
	at, stale, filtered := time.Now().UnixMilli()+1, math.Float64frombits(value.StaleNaN), 0
	for _, ls := range series {
		lb.Reset(ls)
		if !relabel.ProcessBuilder(lb, g.o.Relabel...) {
			filtered++
			continue
		}
		if invalid(lb.Labels()) != "" {
			continue // as its samples were
		}
		// Refused as out of order where another sender goes on with the series.
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

// Limits are those of the receiver.
func (r *Request) Limits() Limits { return r.gate.o.Limits }
