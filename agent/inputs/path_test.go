package inputs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// fakeLog gives references as the log does, and keeps what is committed.
type fakeLog struct {
	mu      sync.Mutex
	given   storage.SeriesRef // how many
	refs    map[string]storage.SeriesRef
	labels  map[storage.SeriesRef]labels.Labels
	newest  map[storage.SeriesRef]newest // committed
	samples []string                     // committed
	fail    error                        // of the next Commit
	panics  bool                         // the next Append
	asked   int                          // calls of Newest
	idle    time.Duration                // for which series are remembered
}

// newest is the newest sample of a series.
type newest struct {
	t  int64
	v  float64
	fh *histogram.FloatHistogram
	o  storage.AOptions
}

func (l *fakeLog) Remember(idle time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = idle
}

func (l *fakeLog) Name(ref storage.SeriesRef) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.labels[ref].Get(model.MetricNameLabel)
}

func (l *fakeLog) Ref(ls labels.Labels) storage.SeriesRef {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refs[ls.String()]
}

func (l *fakeLog) Newest(ref storage.SeriesRef) (labels.Labels, int64, float64, *histogram.Histogram, *histogram.FloatHistogram, storage.AOptions, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	n, ok := l.newest[ref]
	return l.labels[ref], n.t, n.v, nil, n.fh, n.o, ok
}

// forget forgets the series of that name, as the log does after a while.
func (l *fakeLog) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := labels.FromStrings(model.MetricNameLabel, name).String()
	delete(l.labels, l.refs[key])
	delete(l.newest, l.refs[key])
	delete(l.refs, key)
}

func (l *fakeLog) AppenderV2(context.Context) storage.AppenderV2 { return &fakeBatch{log: l} }

type fakeBatch struct {
	log     *fakeLog
	samples []string
	refs    []storage.SeriesRef
	newest  []newest
}

func (b *fakeBatch) Append(ref storage.SeriesRef, ls labels.Labels, _, t int64, v float64, _ *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	l := b.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.panics {
		l.panics = false
		panic("the log")
	}
	if known, ok := l.labels[ref]; ok {
		ls = known
	}
	if ls.IsEmpty() {
		return 0, storage.ErrNotFound
	}
	if l.refs == nil {
		l.refs, l.labels = map[string]storage.SeriesRef{}, map[storage.SeriesRef]labels.Labels{}
		l.newest = map[storage.SeriesRef]newest{}
	}
	key := ls.String()
	if l.refs[key] == 0 {
		l.given++
		l.refs[key] = 100 + l.given
		l.labels[l.refs[key]] = ls
	}
	b.refs, b.newest = append(b.refs, l.refs[key]), append(b.newest, newest{t, v, fh, o})
	b.samples = append(b.samples, fmt.Sprintf("%s %v", key, v))
	return l.refs[key], nil
}

func (b *fakeBatch) Commit() error {
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	if b.log.fail != nil {
		return b.log.fail
	}
	b.log.samples = append(b.log.samples, b.samples...)
	for i, n := range b.newest {
		if was, ok := b.log.newest[b.refs[i]]; !ok || n.t >= was.t {
			b.log.newest[b.refs[i]] = n
		}
	}
	return nil
}

func (b *fakeBatch) Rollback() error { return nil }

// rig is a path over a fake log.
type rig struct {
	*Path
	log  *fakeLog
	said bytes.Buffer
}

func newRig() *rig {
	r := &rig{log: &fakeLog{}}
	r.Path = NewPath(r.log, slog.New(slog.NewTextHandler(&r.said, nil)))
	return r
}

func stale() float64 { return math.Float64frombits(value.StaleNaN) }

// send commits one sample of each series, at the present time.
func send(t *testing.T, in *Input, v float64, names ...string) (skipped int) {
	t.Helper()
	app := in.AppenderV2(t.Context())
	for _, n := range names {
		if _, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, n), 0, time.Now().UnixMilli(), v, nil, nil, storage.AOptions{MetricFamilyName: n}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	return app.(Skipper).Skipped()
}

// newest is what the path shows, sorted.
func (r *rig) newest() []string {
	var all []string
	for _, s := range r.Newest(nil) {
		all = append(all, fmt.Sprintf("%s=%v", s.Labels.Get(model.MetricNameLabel), s.V))
	}
	slices.Sort(all)
	return all
}

func (r *rig) wants(t *testing.T, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, r.newest()); d != "" {
		t.Errorf("newest values (-want +got):\n%s", d)
	}
}

func TestNewestIsWhatIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		in := r.Input("probe", "a", Settings{})
		send(t, in, 1, "x", "y")
		r.wants(t, "x=1", "y=1")

		app := in.AppenderV2(t.Context())
		if _, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, "x"), 0, time.Now().UnixMilli()+1, 2, nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
		r.wants(t, "x=1", "y=1") // not before Commit
		if err := app.Rollback(); err != nil {
			t.Fatal(err)
		}
		r.wants(t, "x=1", "y=1")

		r.log.fail = errors.New("disk")
		app = in.AppenderV2(t.Context())
		if _, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, "z"), 0, 1, 2, nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := app.Commit(); err == nil {
			t.Fatal("the fault did not fire")
		}
		r.log.fail = nil
		r.wants(t, "x=1", "y=1")
		if n := r.Size(); n != 2 {
			t.Errorf("%d series; what was never committed is none", n)
		}

		time.Sleep(time.Second)
		send(t, in, stale(), "x")
		r.wants(t, "y=1")

		// An older sample does not hide a newer one.
		app = in.AppenderV2(t.Context())
		if _, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, "y"), 0, 5, 9, nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
		r.wants(t, "y=1")

		time.Sleep(lapse + 2*time.Second) // no input appends, nor marks it stale
		r.wants(t)
		send(t, in, 1, "other")
		if n := r.Size(); n != 1 {
			t.Errorf("%d series after the sweep, want 1", n)
		}
	})
}

// A series that comes every ten minutes is there all the time.
func TestRareSeriesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		in := r.Input("probe", "a", Settings{Interval: 10 * time.Minute})
		often := r.Input("probe", "b", Settings{})
		for i := range 3 {
			send(t, in, float64(i), "x")
			if i == 2 {
				break
			}
			for range 10 {
				send(t, often, 1, "tick")
				time.Sleep(time.Minute)
			}
		}
		for range 9 {
			time.Sleep(time.Minute)
			send(t, often, 1, "tick")
		}
		r.wants(t, "tick=1", "x=2")
		if r.log.idle != 31*time.Minute {
			t.Errorf("the log is asked to remember series for %v", r.log.idle)
		}
	})
}

func TestReferences(t *testing.T) {
	r := newRig()
	in := r.Input("probe", "a", Settings{})
	ls := labels.FromStrings(model.MetricNameLabel, "x")
	var ref storage.SeriesRef
	for i := range 3 {
		app := in.AppenderV2(t.Context())
		got, err := app.Append(ref, ls, 0, time.Now().UnixMilli()+int64(i), float64(i), nil, nil, storage.AOptions{})
		if err != nil || got == 0 || i > 0 && got != ref {
			t.Fatalf("%d: reference %d after %d, %v", i, got, ref, err)
		}
		ref = got
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if r.Size() != 1 || len(r.log.samples) != 3 {
		t.Errorf("%d series, samples %v", r.Size(), r.log.samples)
	}
	r.wants(t, "x=2")
}

// TestLogForgetsSeries: a series that the log has forgotten and that comes again under another reference is the same one
// for its input, also while another input brings it.
func TestLogForgetsSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		in, other := r.Input("probe", "a", Settings{MaxSeries: 1, Interval: time.Hour}), r.Input("probe", "b", Settings{Interval: time.Hour})
		ls := labels.FromStrings(model.MetricNameLabel, "x")
		refs := map[*Input]storage.SeriesRef{}
		round := func(in *Input, v float64) {
			t.Helper()
			app := in.AppenderV2(t.Context())
			var err error
			if refs[in], err = app.Append(refs[in], ls, 0, time.Now().UnixMilli(), v, nil, nil, storage.AOptions{}); err != nil || refs[in] == 0 {
				t.Fatalf("reference %d, %v", refs[in], err)
			}
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		round(in, 1)
		round(other, 2)
		before := refs[in]
		r.log.forget("x")
		r.wants(t)
		round(in, 3)
		round(other, 4)
		if refs[in] == before || refs[other] != refs[in] {
			t.Errorf("references %d and %d after %d", refs[in], refs[other], before)
		}
		if d := r.Duplicates(); len(d) != 1 || d[0].Series != 1 || d[0].Samples != 2 || r.Size() != 1 {
			t.Errorf("%+v; %d series", d, r.Size())
		}
		r.wants(t, "x=4")

		r.log.forget("x")
		send(t, other, 5, "x") // which comes without a reference, and is first
		round(in, 6)
		if n := r.Size(); n != 1 {
			t.Errorf("%d series", n)
		}
		r.wants(t, "x=6")
	})
}

// TestPanicOfTheLog: a series that the log panics about takes no place of its input's limit.
func TestPanicOfTheLog(t *testing.T) {
	r := newRig()
	in := r.Input("probe", "a", Settings{MaxSeries: 1})
	app := in.AppenderV2(t.Context())
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the log did not panic")
			}
		}()
		r.log.panics = true
		_, _ = app.Append(0, labels.FromStrings(model.MetricNameLabel, "x"), 0, 1, 1, nil, nil, storage.AOptions{})
	}()
	if err := app.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := send(t, in, 1, "y"); n != 0 || r.Size() != 1 {
		t.Errorf("%d passed over, %d series", n, r.Size())
	}
}

// TestSeriesAreSmall: an agent of many devices has millions of these.
func TestSeriesAreSmall(t *testing.T) {
	if is := unsafe.Sizeof(series{}); is > 8 {
		t.Errorf("a series takes %d bytes, want at most 8", is)
	}
}

// TestRemovedInputKeepsItsSeries: an open batch of an input that has no series any more, and is removed, gives the series to that
// input, not to one that has begun since. An input without series takes no place.
func TestRemovedInputKeepsItsSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		gone := r.Input("probe", "gone", Settings{})
		send(t, gone, 1, "a")
		late := gone.AppenderV2(t.Context())
		send(t, gone, stale(), "a")
		r.Keep("probe", nil)
		send(t, r.Input("probe", "begun", Settings{MaxSeries: 1}), 1, "b")
		if _, err := late.Append(0, labels.FromStrings(model.MetricNameLabel, "c"), 0, time.Now().UnixMilli(), 1, nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := late.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := r.Status(); len(got) != 1 || got[0].Name != "begun" || got[0].Series != 1 || gone.live != 1 {
			t.Errorf("the removed input has %d series, the others are %+v", gone.live, got)
		}
		r.wants(t, "b=1", "c=1")
		time.Sleep(lapse + 2*sweepEvery)
		send(t, r.Input("probe", "begun", Settings{}), 1, "d")
		if len(r.owners) != 2 || slices.Index(r.owners, gone) >= 0 || gone.live != 0 {
			t.Errorf("%d inputs have a number, the removed one has %d series", len(r.owners), gone.live)
		}
	})
}

// What an input's own rules remove is counted when, and only if, the batch is committed.
func TestFiltered(t *testing.T) {
	r := newRig()
	in := r.Input("receiver", "otlp", Settings{})
	send(t, in, 1, "good")
	for _, end := range []func(storage.AppenderV2) error{storage.AppenderV2.Commit, storage.AppenderV2.Rollback} {
		app := in.AppenderV2(t.Context())
		app.(Filterer).Filtered(2)
		app.(Filterer).Filtered(1)
		if got := r.Status()[0]; got.Filtered%3 != 0 {
			t.Errorf("counted before the end: %+v", got)
		}
		if err := end(app); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Status()[0]; got.Filtered != 3 || got.Series != 1 || got.Refused != 0 {
		t.Errorf("%+v", got)
	}
}

func TestLimitRefusesNewSeriesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		in := r.Input("probe", "wild", Settings{MaxSeries: 3})
		other := r.Input("probe", "other", Settings{})
		if n := send(t, in, 1, "a", "b", "c", "d", "e"); n != 2 {
			t.Errorf("%d skipped, want 2", n)
		}
		send(t, other, 1, "o1", "o2", "o3", "o4") // not its limit
		time.Sleep(time.Second)
		send(t, in, 2, "e", "a", "b", "c") // those that it has go on
		r.wants(t, "a=2", "b=2", "c=2", "o1=1", "o2=1", "o3=1", "o4=1")
		got := r.Status()[1]
		if got.Name != "wild" || got.Series != 3 || got.Refused != 3 || got.OverSince.IsZero() || !strings.Contains(got.Example, `"d"`) {
			t.Errorf("%+v", got)
		}
		if n := strings.Count(r.said.String(), "as many series as it may"); n != 1 {
			t.Errorf("told %d times:\n%s", n, r.said.String())
		}
		time.Sleep(time.Second)
		send(t, in, stale(), "b") // makes room
		if n := send(t, in, 3, "e"); n != 0 {
			t.Error("there is room for one")
		}
		r.Input("probe", "wild", Settings{}) // no limit any more
		if n := send(t, in, 3, "f", "g", "h"); n != 0 {
			t.Error("the limit is gone")
		}
		time.Sleep(lapse + time.Second)
		if got := r.Status()[1]; !got.OverSince.IsZero() {
			t.Errorf("still over its limit: %+v", got)
		}
	})
}

// An input that is over its limit is not down.
func TestLimitLetsReportsIn(t *testing.T) {
	r := newRig()
	in := r.Input("probe", "wild", Settings{MaxSeries: 2})
	if n := send(t, in, 1, "a", "b", "c", "up", "scrape_duration_seconds"); n != 1 {
		t.Errorf("%d skipped, want 1", n)
	}
	r.wants(t, "a=1", "b=1", "scrape_duration_seconds=1", "up=1")
}

// What was refused by the log, or rolled back, takes no room.
func TestLimitCountsWhatIsCommitted(t *testing.T) {
	r := newRig()
	in := r.Input("scrape", "x", Settings{MaxSeries: 2})
	app := in.AppenderV2(t.Context())
	for _, n := range []string{"a", "b"} {
		if _, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, n), 0, 1, 1, nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := send(t, in, 1, "c", "d"); n != 0 {
		t.Errorf("%d skipped", n)
	}
}

func TestDuplicatesAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		a, b := r.Input("probe", "a", Settings{}), r.Input("scrape", "b", Settings{})
		for range 3 {
			send(t, a, 1, "x", "y", "only_a")
			send(t, b, 2, "x", "y", "only_b")
			time.Sleep(15 * time.Second)
		}
		all := r.Duplicates()
		if len(all) != 1 || all[0].Input != "probe a" || all[0].Other != "scrape b" || all[0].Series != 2 || all[0].Samples != 6 || all[0].Example != `{__name__="x"}` {
			t.Fatalf("%+v", all)
		}
		if n := strings.Count(r.said.String(), "append the same series;"); n != 1 {
			t.Errorf("told %d times", n)
		}
		if len(r.log.samples) != 18 {
			t.Errorf("%d samples in the log: none is held back", len(r.log.samples))
		}
		// One of the two stops appending the series of the other.
		for range 30 {
			send(t, a, 1, "x", "y", "only_a")
			send(t, b, 2, "only_b")
			time.Sleep(15 * time.Second)
		}
		if all := r.Duplicates(); len(all) != 0 {
			t.Errorf("%+v", all)
		}
		if !strings.Contains(r.said.String(), "no longer") {
			t.Error("the end was not told")
		}
	})
}

// A series that moves from one input to another is not a duplicate.
func TestSeriesMayMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		a, b := r.Input("probe", "a", Settings{}), r.Input("probe", "b", Settings{})
		send(t, a, 1, "marked", "silent")
		time.Sleep(time.Second)
		send(t, a, stale(), "marked")
		r.Keep("probe", []string{"b"})
		send(t, b, 2, "marked")
		time.Sleep(lapse + 2*time.Second)
		send(t, b, 3, "silent", "marked")
		if d := r.Duplicates(); len(d) != 0 {
			t.Errorf("%+v", d)
		}
		r.wants(t, "marked=3", "silent=3")
		time.Sleep(sweepEvery + time.Second)
		send(t, b, 4, "silent", "marked")
		if all := r.Status(); len(all) != 1 || all[0].Name != "b" || all[0].Series != 2 {
			t.Errorf("%+v", all)
		}
	})
}

func TestMetadata(t *testing.T) {
	r := newRig()
	in := r.Input("probe", "a", Settings{})
	app := in.AppenderV2(t.Context())
	meta := metadata.Metadata{Type: model.MetricTypeCounter, Help: "X."}
	if _, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, "x_total"), 0, time.Now().UnixMilli(), 1, nil, nil, storage.AOptions{MetricFamilyName: "x", Metadata: meta}); err != nil {
		t.Fatal(err)
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	if s := r.Newest(nil)[0]; s.Family != "x" || s.Meta != meta {
		t.Errorf("%+v", s)
	}
}

// Any number of inputs append at the same time.
func TestConcurrentInputs(t *testing.T) {
	r := newRig()
	var wg sync.WaitGroup
	for w := range 4 {
		in := r.Input("probe", fmt.Sprint(w%2), Settings{MaxSeries: 20})
		wg.Go(func() {
			for i := range 200 {
				app := in.AppenderV2(context.Background())
				for j := range 10 {
					v := float64(i)
					if i%7 == 6 {
						v = stale()
					}
					if _, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, fmt.Sprint("s", (i+j)%15)), 0, int64(i), v, nil, nil, storage.AOptions{}); err != nil {
						t.Error(err)
					}
				}
				end := app.Commit
				if i%5 == 0 {
					end = app.Rollback
				}
				if err := end(); err != nil {
					t.Error(err)
				}
				r.Newest(nil)
				r.Duplicates()
			}
		})
	}
	wg.Wait()
	live, known := r.Size(), 0
	for range r.series.All() {
		known++
	}
	if live != known || live > 15 {
		t.Errorf("%d series count, %d are known", live, known)
	}
	for key, two := range r.pairs {
		if two.series < 0 || two.series > 15 {
			t.Errorf("%v and %v share %d series", key[0], key[1], two.series)
		}
	}
}

// panicking is an observer that panics.
type panicking struct{ seen int }

func (*panicking) Active() bool { return true }

func (o *panicking) Taken(_, _ string, samples iter.Seq[Shown]) {
	for range samples {
		o.seen++
	}
	panic("an observer")
}

// TestPanicOfAnObserver: samples in the log count for their input, even if the observer panics.
func TestPanicOfAnObserver(t *testing.T) {
	r, o := newRig(), &panicking{}
	r.Observe(o)
	in := r.Input("probe", "x", Settings{MaxSeries: 2})
	if n := send(t, in, 1, "a", "b"); n != 0 {
		t.Errorf("%d skipped", n)
	}
	r.wants(t, "a=1", "b=1")
	if n := send(t, in, 2, "c"); n != 1 {
		t.Errorf("%d skipped beyond the limit", n)
	}
	if o.seen != 2 {
		t.Errorf("the observer saw %d samples", o.seen)
	}
}

// TestOthersCostOnlyTheirNames: of series whose names are not wanted, the path asks the log for nothing else.
func TestOthersCostOnlyTheirNames(t *testing.T) {
	log := &fakeLog{}
	p := NewPath(log, slog.New(slog.DiscardHandler))
	app := p.Input("probe", "a", Settings{}).AppenderV2(t.Context())
	for n := range 600 {
		ls := labels.FromStrings(model.MetricNameLabel, []string{"up", "down"}[n%2], "n", strconv.Itoa(n))
		if _, err := app.Append(0, ls, 0, time.Now().UnixMilli(), float64(n), nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	before, n := log.asked, 0
	for s := range p.All(func(name string) bool { return name == "up" }) {
		if s.Labels.Get(model.MetricNameLabel) != "up" {
			t.Errorf("%s is not wanted", s.Labels)
		}
		n++
	}
	if asked := log.asked - before; n != 300 || asked != n {
		t.Errorf("%d samples, for which the log was asked %d times; want 300", n, asked)
	}
}
