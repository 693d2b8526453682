package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal"
)

// memArchive is an archive in memory. Like a real one it reuses the entry that it returns.
type memArchive struct {
	entries []wal.Entry
	next    int
	entry   wal.Entry
	fails   error // instead of io.EOF
}

func (a *memArchive) Next() (*wal.Entry, error) {
	clear(a.entry.Samples)
	if a.next == len(a.entries) {
		if a.fails != nil {
			return nil, a.fails
		}
		return nil, io.EOF
	}
	e := a.entries[a.next]
	a.next++
	samples := append(a.entry.Samples[:0], e.Samples...)
	a.entry = e
	a.entry.Samples = samples
	return &a.entry, nil
}

func (a *memArchive) Head() wal.Mark {
	if n := len(a.entries); n > 0 {
		return a.entries[n-1].End
	}
	return wal.Mark{}
}

// receiver takes the samples of a series in order, and an exact repetition of the newest, as Prometheus does.
type receiver struct {
	mu       sync.Mutex
	stored   map[string][]prompb.Sample
	requests int
	most     int                               // samples in a request
	latency  time.Duration                     //
	answer   func(n int) (client.Answer, bool) // of the nth request; false: by the samples
	poison   func(series string, t int64) bool // refused samples
}

func (r *receiver) Send(ctx context.Context, q client.Request) client.Answer {
	raw, err := snappy.Decode(nil, q.Body)
	var w prompb.WriteRequest
	if err = errors.Join(err, w.Unmarshal(raw)); err != nil {
		panic(err)
	}
	if r.latency > 0 {
		select {
		case <-ctx.Done():
			return client.Answer{Err: ctx.Err()}
		case <-time.After(r.latency):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.answer != nil {
		if a, ok := r.answer(r.requests); ok {
			return a
		}
	}
	n := 0
	for _, s := range w.Timeseries {
		name := s.Labels[0].Value
		last := r.stored[name]
		for _, x := range s.Samples {
			n++
			if r.poison != nil && r.poison(name, x.Timestamp) {
				return client.Answer{Status: 400, Text: "bad sample of " + name}
			}
			if k := len(last); k > 0 && x.Timestamp <= last[k-1].Timestamp && x.String() != last[k-1].String() {
				return client.Answer{Status: 400, Text: "out of order sample"}
			}
		}
	}
	r.most = max(r.most, n)
	for _, s := range w.Timeseries {
		for _, x := range s.Samples {
			if last := r.stored[s.Labels[0].Value]; len(last) == 0 || last[len(last)-1].String() != x.String() {
				r.stored[s.Labels[0].Value] = append(last, x)
			}
		}
	}
	return client.Answer{Status: 204}
}

func (r *receiver) count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, all := range r.stored {
		n += len(all)
	}
	return n
}

// rig is a log, a receiver, and replays of the one to the other.
type rig struct {
	t       *testing.T
	entries []wal.Entry
	to      *receiver
	o       Options
	fails   error
}

// newRig makes a log of rounds, a second apart, of series s0, s1, …; each commit has so many rounds.
func newRig(t *testing.T, rounds, series, each int) *rig {
	r := &rig{t: t, to: &receiver{stored: map[string][]prompb.Sample{}}}
	var all []*wal.Series
	for k := range series {
		all = append(all, wal.NewSeries(k, labels.FromStrings("__name__", fmt.Sprintf("s%d", k), "job", "test"), nil))
	}
	total := uint64(0)
	for i := 0; i < rounds; i += each {
		e := wal.Entry{MinT: int64(i+1) * 1000, MaxT: int64(i+each) * 1000}
		for n := range each {
			for _, s := range all {
				e.Samples = append(e.Samples, wal.Sample{Series: s, T: int64(i+n+1) * 1000, V: float64(i + n)})
			}
		}
		total += e.Count()
		e.End = wal.Mark{Commit: uint64(len(r.entries) + 1), Total: total}
		r.entries = append(r.entries, e)
	}
	c := config.DefaultConfig()
	c.Queue.MaxSamplesPerSend = 100
	r.o = Options{Config: c, Sender: r.to, From: time.UnixMilli(0), To: time.UnixMilli(1 << 40)}
	return r
}

func (r *rig) run(ctx context.Context, after uint64) (Count, error) {
	r.t.Helper()
	r.o.After, r.o.Archive = after, &memArchive{entries: r.entries, next: int(after), fails: r.fails}
	c, err := Run(ctx, r.o)
	if sum := c.Delivered + c.Refused + c.Unconfirmed + c.Unsupported; sum > c.Selected || err == nil && sum != c.Selected {
		r.t.Errorf("the account does not add up: %+v", c)
	}
	return c, err
}

func TestReplaySelects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 50, 20, 1)
		h := wal.Histogram{Series: wal.NewSeries(20, labels.FromStrings("__name__", "s4", "of", "histograms"), nil), T: 20_000, H: &histogram.Histogram{Sum: 1}}
		r.entries[19].Histograms = append(r.entries[19].Histograms, h)
		r.o.ExternalLabels = labels.FromStrings("site", "fra1")
		r.o.Config.WriteRelabelConfigs = []*relabel.Config{{
			SourceLabels: model.LabelNames{"__name__"}, Regex: relabel.MustNewRegexp("s1[0-9]"), Action: relabel.Drop, NameValidationScheme: config.NameValidation,
		}}
		r.o.From, r.o.To = time.UnixMilli(10_000), time.UnixMilli(30_000)
		r.o.Matchers = []*labels.Matcher{
			labels.MustNewMatcher(labels.MatchEqual, "site", "fra1"), labels.MustNewMatcher(labels.MatchRegexp, "__name__", "s[0-4]|s12"),
		}
		for _, dry := range []bool{true, false} {
			if r.o.Sender = r.to; dry {
				r.o.Sender = nil
			}
			began := time.Now()
			c, err := r.run(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if c.Selected != 101 || c.Series != 6 || c.Delivered != 100 || c.Unsupported != 1 || c.Filtered != 200 || c.Refused != 0 || c.Done != 50 || c.Bytes == 0 {
				t.Errorf("dry=%v: %+v", dry, c)
			}
			if !c.Oldest.Equal(time.UnixMilli(10_000)) || !c.Newest.Equal(time.UnixMilli(29_000)) {
				t.Errorf("from %s to %s", c.Oldest, c.Newest)
			}
			if n := r.to.count(); n != map[bool]int{false: 100}[dry] {
				t.Errorf("dry=%v: the receiver has %d samples", dry, n)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("dry=%v: it waited for a batch to fill for %s", dry, took)
			}
		}
	})
}

// TestReplayOfNothing: a replay without samples ends, also where its log cannot be read on.
func TestReplayOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fails := range []error{nil, errors.New("input/output error")} {
			r := newRig(t, 5, 2, 1)
			r.o.From, r.fails = time.UnixMilli(1<<39), fails
			if c, err := r.run(t.Context(), 0); !errors.Is(err, fails) || c.Selected != 0 || c.Done != 5 || r.to.count() != 0 {
				t.Errorf("%+v, %v", c, err)
			}
		}
	})
}

// TestReplayRefused: a receiver that takes nothing ends a replay, which says why, and nothing counts as sent.
func TestReplayRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, a := range []client.Answer{{Status: 400, Text: "out of bounds"}, {Status: 401, Text: "no token"}, {Status: 404, Text: "no such page"}, {Status: 503, Text: "full"}} {
			r := newRig(t, 50, 20, 1)
			r.to.answer = func(int) (client.Answer, bool) { return a, true }
			began := time.Now()
			c, err := r.run(t.Context(), 0)
			var stopped *Error
			if !errors.As(err, &stopped) || !stopped.First || !strings.Contains(err.Error(), a.Text) || c.Delivered != 0 {
				t.Errorf("%d: %v, %+v", a.Status, err, c)
			}
			if took := time.Since(began); took > patience+10*time.Second || a.Status == 401 && took > time.Second {
				t.Errorf("%d: it ended after %s", a.Status, took)
			}
		}
	})
}

// TestReplayLeavesBadSamplesBehind: refused samples cost only themselves, and the replay names what the receiver said.
func TestReplayLeavesBadSamplesBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 100, 30, 1)
		r.to.poison = func(series string, at int64) bool { return series == "s7" && at%20_000 == 5000 }
		c, err := r.run(t.Context(), 0)
		if err != nil || c.Refused+c.Unconfirmed > 100 || c.Refused == 0 {
			t.Errorf("%+v, %v", c, err)
		}
		if got := uint64(r.to.count()); got != c.Delivered {
			t.Errorf("the receiver has %d samples, %d count as delivered", got, c.Delivered)
		}
		if len(c.Refusals) != 1 || c.Refusals[0].Text != "bad sample of s7" || c.Refusals[0].Status != 400 {
			t.Errorf("%+v", c.Refusals)
		}
	})
}

// TestReplayGoesOn: a receiver that accepts no more samples ends the replay, and another replay after that commit delivers
// the rest.
func TestReplayGoesOn(t *testing.T) {
	for what, a := range map[string]client.Answer{
		"unauthorized": {Status: 401}, "down": {Err: errors.New("connection refused")}, "overloaded": {Status: 503, RetryAfter: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 50, 30, 1)
			r.to.answer = func(n int) (client.Answer, bool) { return a, n >= 8 }
			began := time.Now()
			c, err := r.run(t.Context(), 0)
			var stopped *Error
			if !errors.As(err, &stopped) || stopped.First || c.Done == 0 || c.Done >= 50 {
				t.Errorf("%s: %v, %+v", what, err, c)
			}
			if took := time.Since(began); took > patience+20*time.Second {
				t.Errorf("%s: it ended after %s", what, took)
			}
			r.to.answer = nil
			if rest, err := r.run(t.Context(), c.Done); err != nil || rest.Refused > 0 {
				t.Errorf("%s: %+v, %v", what, rest, err)
			}
			if n := r.to.count(); n != 1500 {
				t.Errorf("%s: the receiver has %d samples", what, n)
			}
		})
	}
}

// TestReplayWaits: a replay waits for failures that pass.
func TestReplayWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRig(t, 50, 30, 1), time.Now()
		r.to.answer = func(int) (client.Answer, bool) { return client.Answer{Status: 503}, time.Since(began) < time.Minute }
		if c, err := r.run(t.Context(), 0); err != nil || c.Delivered != 1500 {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

func TestReplayRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 50, 30, 1)
		r.o.Rate = 100
		began := time.Now()
		if _, err := r.run(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 14*time.Second || took > 16*time.Second {
			t.Errorf("1500 samples at 100 a second took %s", took)
		}
	})
}

// TestReplayInterrupted: a replay that is interrupted at any request ends within moments, and another one continues there at a
// receiver that takes samples in order: none is missing, and none counts as refused, also where a commit has several samples
// of each series.
func TestReplayInterrupted(t *testing.T) {
	for _, each := range []int{1, 25} {
		for cut := 1; cut < 17; cut++ {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := newRig(t, 50, 30, each)
				r.to.latency = 100 * time.Millisecond
				r.to.answer = func(n int) (client.Answer, bool) {
					if n == cut {
						if cancel(); cut%3 == 0 {
							return client.Answer{Err: io.ErrUnexpectedEOF}, true
						}
					}
					return client.Answer{}, false
				}
				began := time.Now()
				c, err := r.run(ctx, 0)
				if !errors.Is(err, context.Canceled) && (err != nil || c.Done < uint64(50/each)) {
					t.Errorf("%d rounds a commit, cut %d: %+v, %v", each, cut, c, err)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("%d rounds a commit, cut %d: it took %s", each, cut, took)
				}
				r.to.answer = nil
				if rest, err := r.run(t.Context(), c.Done); err != nil || rest.Refused > 0 {
					t.Errorf("%d rounds a commit, cut %d: the second replay: %+v, %v", each, cut, rest, err)
				}
				if n := r.to.count(); n != 1500 {
					t.Errorf("%d rounds a commit, cut %d: the receiver has %d samples", each, cut, n)
				}
			})
		}
	}
}
