package probes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/spare"
)

// recorder is a storage that keeps what is committed as text.
type recorder struct {
	mu      sync.Mutex
	commits [][]string
	fail    error // of the next Commits

	n        int
	failures map[int]error // of the n-th Commit, from 1
	block    chan struct{} // Commit waits for it, if set

	refs   map[string]storage.SeriesRef
	series []labels.Labels // by reference, from 1; empty when forgotten
}

// forget forgets all series, as the log does with idle ones.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.refs)
	clear(r.series)
}

// find returns the reference and the labels of a series, 0 if it has neither. It makes a series that is new.
func (r *recorder) find(ref storage.SeriesRef, ls labels.Labels) (storage.SeriesRef, labels.Labels) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ref > 0 && int(ref) <= len(r.series) && !r.series[ref-1].IsEmpty() {
		return ref, r.series[ref-1]
	}
	if ls.IsEmpty() {
		return 0, ls
	}
	if r.refs == nil {
		r.refs = map[string]storage.SeriesRef{}
	}
	if r.refs[ls.String()] == 0 {
		r.series = append(r.series, ls)
		r.refs[ls.String()] = storage.SeriesRef(len(r.series))
	}
	return r.refs[ls.String()], ls
}

func (r *recorder) AppenderV2(context.Context) storage.AppenderV2 { return &batch{r: r} }

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.commits...)
}

type batch struct {
	r      *recorder
	lines  []string
	newest map[storage.SeriesRef][2]float64 // time and value
}

// Append refuses another value for the newest time of a series, as the log does.
func (b *batch) Append(ref storage.SeriesRef, ls labels.Labels, _, t int64, v float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	if ref, ls = b.r.find(ref, ls); ref == 0 {
		return 0, storage.ErrNotFound
	}
	if last, ok := b.newest[ref]; ok && last[0] == float64(t) {
		if last[1] != v {
			return 0, storage.ErrDuplicateSampleForTimestamp
		}
		return ref, nil
	}
	if b.newest == nil {
		b.newest = map[storage.SeriesRef][2]float64{}
	}
	b.newest[ref] = [2]float64{float64(t), v}
	text := fmt.Sprint(v)
	if value.IsStaleNaN(v) {
		text = "stale"
	}
	b.lines = append(b.lines, ls.String()+" "+text)
	return ref, nil
}

func (b *batch) Commit() error {
	if b.r.block != nil {
		<-b.r.block
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	if b.r.fail != nil {
		return b.r.fail
	}
	if b.r.n++; b.r.failures[b.r.n] != nil {
		return b.r.failures[b.r.n]
	}
	b.r.commits = append(b.r.commits, b.lines)
	return nil
}

func (b *batch) Rollback() error { return nil }

// probeFunc is a probe made of a function; n is the number of the call, from 1.
type probeFunc struct {
	f         func(ctx context.Context, n int, r *Round) error
	n         int
	closed    int
	committed []error
}

func (p *probeFunc) Collect(ctx context.Context, r *Round) error { p.n++; return p.f(ctx, p.n, r) }
func (p *probeFunc) Close() error                                { p.closed++; return nil }
func (p *probeFunc) Committed(err error)                         { p.committed = append(p.committed, err) }

func spec(name string, p Probe) Spec {
	return Spec{Name: name, Type: "test", Identity: name, Probe: p, Interval: 10 * time.Second, Timeout: 4 * time.Second,
		Labels: labels.FromStrings("job", name, "instance", "i")}
}

// runFor runs the specs for d of virtual time and returns what was committed.
func runFor(t *testing.T, rec *recorder, d time.Duration, specs ...Spec) (*Runner, []string) {
	t.Helper()
	r := NewRunner(rec, slog.New(slog.DiscardHandler))
	r.Apply(specs)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	time.Sleep(d) // virtual: this is inside a synctest bubble
	synctest.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return r, rec.all()
}

func without(lines []string, parts ...string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(l, p) })
	})
}

var famA = &Family{Name: "a", Type: "gauge", Help: "A."}

func TestRoundsKeepTheirPhaseAndCarryUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probeFunc{f: func(_ context.Context, n int, r *Round) error { r.Add(famA, float64(n), "x", "1"); return nil }}
		rec := &recorder{}
		_, got := runFor(t, rec, 30*time.Second, spec("p", p))
		if p.n != 3 {
			t.Fatalf("%d rounds in 30 s at an interval of 10 s, want 3", p.n)
		}
		want := []string{
			`{__name__="a", instance="i", job="p", x="1"} 1`,
			`{__name__="up", instance="i", job="p"} 1`,
			`{__name__="scrape_duration_seconds", instance="i", job="p"} 0`,
		}
		if !slices.Equal(got[:3], want) {
			t.Errorf("first round:\n%s\nwant:\n%s", strings.Join(got[:3], "\n"), strings.Join(want, "\n"))
		}
		if p.closed != 1 {
			t.Errorf("the probe was closed %d times, want once", p.closed)
		}
		if len(p.committed) != 3 || p.committed[0] != nil {
			t.Errorf("the probe was told %v of its commits", p.committed)
		}
	})
}

// The probes of one host, and one probe of all hosts, run at moments that spread evenly.
func TestPhasesSpread(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, of := range []func(n string) Spec{
		func(n string) Spec { return Spec{Name: "device-" + n, Host: "a", Interval: time.Minute} },
		func(n string) Spec { return Spec{Name: "host", Host: "web-" + n, Interval: time.Minute} },
	} {
		var tenths [10]int
		for i := range 1000 {
			s := of(fmt.Sprint(i))
			at := s.firstRun(now)
			d := at.Sub(now)
			if d < 0 || d >= time.Minute {
				t.Fatalf("%s first runs after %s, want within the interval", s.Name, d)
			}
			tenths[d/(6*time.Second)]++
			if again := s.firstRun(now.Add(3 * time.Hour)); again.Sub(at)%time.Minute != 0 {
				t.Errorf("%s changes its phase after a restart", s.Name)
			}
		}
		if slices.Min(tenths[:]) < 60 || slices.Max(tenths[:]) > 140 {
			t.Errorf("in each tenth of the interval %d of 1000 run, want about 100", tenths)
		}
	}
}

// The first round of all is that of the probe whose turn comes first.
func TestFirstRound(t *testing.T) {
	r := NewRunner(nil, slog.New(slog.DiscardHandler))
	now := time.Unix(1_700_000_000, 0)
	if _, ok := r.FirstRound(now); ok {
		t.Error("a first round without probes")
	}
	specs := []Spec{{Name: "a", Interval: time.Minute}, {Name: "b", Interval: time.Hour}}
	r.Apply(specs)
	want := min(specs[0].firstRun(now).Sub(now), specs[1].firstRun(now).Sub(now))
	if got, ok := r.FirstRound(now); !ok || got != want {
		t.Errorf("the first round comes in %s, %t, want %s", got, ok, want)
	}
}

func TestStaleMarkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probeFunc{f: func(_ context.Context, n int, r *Round) error {
			r.Add(famA, 1, "x", "stays")
			if n == 1 {
				r.Add(famA, 1, "x", "goes")
				r.AddSample(Sample{Family: famA, Value: 1, Labels: []string{"x", "timed"}, T: 5})
			}
			return nil
		}}
		_, got := runFor(t, &recorder{}, 30*time.Second, spec("p", p))
		var stale []string
		for _, l := range got {
			if strings.HasSuffix(l, " stale") {
				stale = append(stale, l)
			}
		}
		if want := []string{`{__name__="a", instance="i", job="p", x="goes"} stale`}; !slices.Equal(stale, want) {
			t.Errorf("stale markers %q, want %q", stale, want)
		}
	})
}

func TestStaleMarkersOutliveFailedCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probeFunc{f: func(_ context.Context, n int, r *Round) error {
			r.Add(famA, 1, "x", "stays")
			if n == 1 {
				r.Add(famA, 1, "x", "goes")
			}
			if n == 1 || n == 4 {
				r.Add(famA, 1, "x", "returns")
			}
			return nil
		}}
		rec := &recorder{failures: map[int]error{2: errors.New("disk full"), 3: errors.New("disk full")}}
		_, got := runFor(t, rec, 50*time.Second, spec("p", p))
		var stale []string
		for _, l := range got {
			if strings.HasSuffix(l, " stale") {
				stale = append(stale, l)
			}
		}
		want := []string{
			`{__name__="a", instance="i", job="p", x="goes"} stale`,    // of round 2, in round 4
			`{__name__="a", instance="i", job="p", x="returns"} stale`, // of round 5
		}
		if !slices.Equal(stale, want) {
			t.Errorf("stale markers %q, want %q", stale, want)
		}
	})
}

func TestBadProbesCostTheirOwnSeriesOnly(t *testing.T) {
	for _, tc := range []struct {
		name  string
		f     func(ctx context.Context, n int, r *Round) error
		up    string
		state string
		err   string
	}{
		{"error", func(context.Context, int, *Round) error { return errors.New("no answer") }, "0", "failing", "no answer"},
		{"partial", func(_ context.Context, _ int, r *Round) error {
			r.Add(famA, 1)
			return fmt.Errorf("edac: %w", ErrPartial)
		}, "1", "ok", "partly failed"},
		{"panic", func(context.Context, int, *Round) error { panic("rubbish") }, "0", "failing", "probe bad panicked: a value of type string, at probes/runner_test.go:"},
		{"late", func(ctx context.Context, _ int, _ *Round) error { <-ctx.Done(); return ctx.Err() }, "0", "failing", "deadline exceeded"},
		{"hang", func(context.Context, int, *Round) error { time.Sleep(15 * time.Second); return nil }, "0", "hung", "still running"},
		{"too many", func(_ context.Context, _ int, r *Round) error {
			for i := range 11 {
				r.Add(famA, 1, "i", fmt.Sprint(i))
			}
			return nil
		}, "0", "failing", "more than the limit of 10"},
		{"bad name", func(_ context.Context, _ int, r *Round) error {
			r.Add(famA, 1, "x", "good")
			r.Add(&Family{Name: "\xff"}, 1)
			return nil
		}, "1", "ok", "is not a metric name"},
		{"bad label", func(_ context.Context, _ int, r *Round) error {
			r.Add(famA, 1, "x", "good")
			r.Add(famA, 1, "", "v")
			return nil
		}, "1", "ok", "is not a label name"},
		{"bad value", func(_ context.Context, _ int, r *Round) error {
			r.Add(famA, 1, "x", "good")
			r.Add(famA, 1, "l", "\xff")
			return nil
		}, "1", "ok", "is not UTF-8"},
		{"odd labels", func(_ context.Context, _ int, r *Round) error {
			r.Add(famA, 1, "x", "good")
			r.Add(famA, 1, "l")
			return nil
		}, "1", "ok", "label strings"},
		{"twice", func(_ context.Context, _ int, r *Round) error { r.Add(famA, 1); r.Add(famA, 2); return nil }, "1", "ok", "twice in one round"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good := &probeFunc{f: func(_ context.Context, n int, r *Round) error { r.Add(famA, float64(n)); return nil }}
				bad := &probeFunc{f: tc.f}
				bs := spec("bad", bad)
				bs.MaxSamples = 10
				r, got := runFor(t, &recorder{}, 15*time.Second, bs, spec("good", good))
				if want := `{__name__="up", instance="i", job="bad"} ` + tc.up; !slices.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, strings.Join(got, "\n"))
				}
				st := r.Status()[0]
				if st.State != tc.state || !strings.Contains(st.LastError, tc.err) {
					t.Errorf("status %q %q, want %q and %q", st.State, st.LastError, tc.state, tc.err)
				}
				if n := len(without(got, `job="bad"`)); n != 3*good.n || good.n == 0 {
					t.Errorf("the other probe committed %d samples in %d rounds, want 3 each", n, good.n)
				}
				time.Sleep(20 * time.Second) // virtual: lets the hung round end
			})
		})
	}
}

func TestHungProbeIsNeverRunTwiceAtOnceAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most int
		var mu sync.Mutex
		p := &probeFunc{f: func(_ context.Context, n int, r *Round) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			if n == 1 {
				time.Sleep(25 * time.Second)
			}
			r.Add(famA, float64(n))
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		}}
		r, got := runFor(t, &recorder{}, 60*time.Second, spec("p", p))
		if most != 1 {
			t.Errorf("%d rounds ran at once", most)
		}
		if slices.Contains(got, `{__name__="a", instance="i", job="p"} 1`) {
			t.Error("the sample of the round that hung was kept, though it is too old")
		}
		if !slices.Contains(got, `{__name__="a", instance="i", job="p"} 2`) {
			t.Error("the probe did not come back")
		}
		if st := r.Status()[0]; st.Skipped != 2 || st.State != "ok" {
			t.Errorf("skipped %d, state %q; want 2 and ok", st.Skipped, st.State)
		}
	})
}

func TestSlowCommitSkipsRoundsAndKeepsTheCadence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		p := &probeFunc{f: func(context.Context, int, *Round) error { at = append(at, time.Now()); return nil }}
		rec := &recorder{block: make(chan struct{})}
		time.AfterFunc(25*time.Second, func() { close(rec.block) })
		r, _ := runFor(t, rec, 60*time.Second, spec("p", p))
		for _, a := range at[1:] {
			if d := a.Sub(at[0]) % (10 * time.Second); d != 0 {
				t.Errorf("a round ran %s off the cadence", d)
			}
		}
		if st := r.Status()[0]; st.Skipped == 0 {
			t.Error("the rounds that the slow commit held up were not counted")
		}
	})
}

func TestRefusedCommitIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probeFunc{f: func(_ context.Context, _ int, r *Round) error { r.Add(famA, 1); return nil }}
		r, _ := runFor(t, &recorder{fail: errors.New("disk full")}, 10*time.Second, spec("p", p))
		st := r.Status()[0]
		if st.Refused != 1 || st.State != "failing" || st.LastError != "disk full" {
			t.Errorf("refused %d, %q, %q", st.Refused, st.State, st.LastError)
		}
		if len(p.committed) != 1 || p.committed[0] == nil {
			t.Errorf("the probe was told %v", p.committed)
		}
	})
}

func TestTargetLabelsAndRelabelling(t *testing.T) {
	tr := newTracker(labels.FromStrings("job", "j", "instance", "i"), []*relabel.Config{
		{SourceLabels: model.LabelNames{"__name__"}, Regex: relabel.MustNewRegexp("drop_.*"), Action: relabel.Drop},
	})
	for _, tc := range []struct {
		s    Sample
		want string
	}{
		{Sample{Family: famA, Labels: []string{"x", "1"}}, `{__name__="a", instance="i", job="j", x="1"}`},
		{Sample{Family: famA, Labels: []string{"job", "own"}}, `{__name__="a", exported_job="own", instance="i", job="j"}`},
		{Sample{Family: famA, Name: "a_sum", Labels: []string{"x", ""}}, `{__name__="a_sum", instance="i", job="j"}`},
		{Sample{Family: &Family{Name: "drop_me"}}, `{}`},
	} {
		if got, final := tr.find(&tc.s); got.is(bad) || final.String() != tc.want || got.is(dropped) != final.IsEmpty() {
			t.Errorf("%v became %s (%v), want %s", tc.s, final, tr.fault(got), tc.want)
		}
	}
}

func TestApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func(name string) *probeFunc {
			return &probeFunc{f: func(_ context.Context, _ int, r *Round) error { r.Add(&Family{Name: name}, 1); return nil }}
		}
		keep, change, remove, changed, unused := one("keep"), one("old"), one("gone"), one("new"), one("keep")
		rec := &recorder{}
		r := NewRunner(rec, slog.New(slog.DiscardHandler))
		r.Apply([]Spec{spec("keep", keep), spec("change", change), spec("remove", remove)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(20 * time.Second)
		next := spec("change", changed)
		next.Identity = "different"
		r.Apply([]Spec{next, spec("keep", unused)})
		time.Sleep(20 * time.Second)
		cancel()
		<-done
		if keep.n != 4 || keep.closed != 1 || unused.n != 0 || unused.closed != 1 {
			t.Errorf("unchanged probe: %d rounds, closed %d; its twin %d rounds, closed %d", keep.n, keep.closed, unused.n, unused.closed)
		}
		if change.closed != 1 || changed.n != 2 || remove.closed != 1 {
			t.Errorf("changed probe closed %d, new one ran %d, removed closed %d", change.closed, changed.n, remove.closed)
		}
		got := rec.all()
		for _, want := range []string{
			`{__name__="old", instance="i", job="change"} stale`,
			`{__name__="gone", instance="i", job="remove"} stale`,
			`{__name__="up", instance="i", job="remove"} stale`,
		} {
			if !slices.Contains(got, want) {
				t.Errorf("no %q", want)
			}
		}
		if slices.Contains(got, `{__name__="up", instance="i", job="change"} stale`) {
			t.Error("up of the changed probe was marked stale though it goes on")
		}
		if names := []string{r.Status()[0].Name, r.Status()[1].Name}; !slices.Equal(names, []string{"change", "keep"}) {
			t.Errorf("status order %v", names)
		}
	})
}

func TestStaleMarkerBits(t *testing.T) {
	// The exact bits matter (Remote-Write 1.0, "Stale Markers").
	if value.StaleNaN != 0x7ff0000000000002 || !math.IsNaN(math.Float64frombits(value.StaleNaN)) {
		t.Fatal("the library's stale marker is not the protocol's")
	}
}

func BenchmarkFinish(b *testing.B) {
	round := NewRound(0)
	for i := range 1000 {
		round.Add(famA, float64(i), "device", fmt.Sprintf("d%d", i), "mode", "x")
	}
	l := newLoop(spec("p", &probeFunc{}), discard{}, slog.New(slog.DiscardHandler), &spare.Stack[Round]{})
	b.ReportAllocs()
	for b.Loop() {
		l.finish(b.Context(), time.Now(), result{round: round})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/sample")
}

// discard is a storage that takes everything.
type discard struct{}

func (discard) AppenderV2(context.Context) storage.AppenderV2 { return discard{} }
func (discard) Append(_ storage.SeriesRef, _ labels.Labels, _, _ int64, _ float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	return 1, nil
}
func (discard) Commit() error   { return nil }
func (discard) Rollback() error { return nil }

// TestStateDuringARound: while a round is under way the outcome of the last one stands.
func TestStateDuringARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds atomic.Int32
		slow := &probeFunc{f: func(_ context.Context, n int, r *Round) error {
			rounds.Add(1)
			time.Sleep(2 * time.Second)
			if n == 1 {
				r.Add(famA, 1)
				return nil
			}
			return errors.New("no answer")
		}}
		s := spec("slow", slow)
		var r *Runner
		seen := map[string]bool{}
		r = NewRunner(&recorder{}, slog.New(slog.DiscardHandler))
		r.Apply([]Spec{s})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = r.Run(ctx) }()
		for range 60 * 5 {
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			seen[fmt.Sprint(rounds.Load(), " ", r.Status()[0].State)] = true
		}
		cancel()
		<-done
		for _, want := range []string{"0 waiting", "1 running", "1 ok", "2 ok", "2 failing", "3 failing"} {
			if !seen[want] {
				t.Errorf("never round %s: %v", want, seen)
			}
		}
		for _, never := range []string{"2 running", "3 running", "1 waiting"} {
			if seen[never] {
				t.Errorf("round %s: %v", never, seen)
			}
		}
	})
}

// TestTranslate: a sample has its other name before relabelling sees it, in each round once, and the round knows the type of its probe.
func TestTranslate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, calls := &Family{Name: "other", Type: "gauge", Help: "O."}, 0
		s := spec("p", &probeFunc{f: func(_ context.Context, _ int, r *Round) error {
			r.Add(famA, 1, "source", r.Source)
			return nil
		}})
		s.Translate = func(s *Sample) {
			calls++
			s.Family, s.Labels[0] = other, "from"
		}
		s.Relabel = []*relabel.Config{{SourceLabels: model.LabelNames{"__name__"}, Regex: relabel.MustNewRegexp("a"), Action: relabel.Drop}}
		_, lines := runFor(t, &recorder{}, 25*time.Second, s)
		got := without(lines, "up{", `"up"`, "scrape_duration_seconds")
		if calls < 2 || len(got) != calls || !strings.Contains(got[0], `from="test"`) || !strings.Contains(got[0], "other") {
			t.Errorf("%d calls gave\n%s", calls, strings.Join(lines, "\n"))
		}
	})
}
