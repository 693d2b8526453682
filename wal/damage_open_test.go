package wal

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"hwsagent/internal/tools/tier"
	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// writtenLog is what an agent left on the disk, with every kind of sample in it: four
// segments of about two pages, and the savepoints of two targets.
type writtenLog struct {
	t        testing.TB
	dir      string // a real directory, for the lock
	segments map[string][]byte
	saves    map[string][]byte
	images   map[string]image // of all these
	commits  []writtenCommit
	half     int // the target "half" has acknowledged so many of the commits
}

// writtenCommit is one commit and where it lies.
type writtenCommit struct {
	number     uint64
	segment    int
	start, end int64
	samples    []fingerprint
	announces  []string // series that its segment announces here
}

// fingerprint tells one sample from every other.
type fingerprint struct {
	series string
	t      int64
	value  uint64
}

func (w *writtenLog) options(segments, saves *memDir) Options {
	o := Options{Dir: w.dir, wrap: func(name string, real disk.Directory) disk.Directory {
		_ = real.Close()
		if name == segmentDir {
			return segments
		}
		return saves
	}}
	o.SegmentBytes, o.Retain = 85<<10, 24*time.Hour
	return o
}

// writeLog runs a log through its life. The target "all" gets nothing of it, "half"
// about a half.
func writeLog(t testing.TB) *writtenLog {
	t.Helper()
	w := &writtenLog{t: t, dir: memTempDir(t), images: map[string]image{}}
	if err := os.Chmod(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	segments, saves := newMemDir(), newMemDir()
	l := openLog(t, w.options(segments, saves))
	r, err := l.Reader("all", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	half, err := l.Reader("half", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(71, 0))
	last := Position{Segment: -1}
	var announced map[string]bool
	// The newest segment has three pages, and some commits of its last one lie all in that.
	for i := 0; last.Segment < 3 || last.Offset < 2*segment.PageSize+1500 || w.commits[len(w.commits)-3].start < 2*segment.PageSize; i++ {
		wrote := w.append(l, rng, i)
		e := nextOf(t, r)
		c := writtenCommit{number: e.End.Commit, segment: e.End.Segment, end: e.End.Offset, samples: fingerprints(e)}
		if !maps.Equal(counts(c.samples), counts(wrote)) {
			t.Fatalf("commit %d: read %v, wrote %v", i, c.samples, wrote)
		}
		if c.segment != last.Segment {
			announced, last = map[string]bool{}, Position{Segment: c.segment}
		}
		c.start, last.Offset = last.Offset, c.end
		for _, s := range c.samples {
			if !announced[s.series] {
				announced[s.series] = true
				c.announces = append(c.announces, s.series)
			}
		}
		w.commits = append(w.commits, c)
		if e.End.Segment < 2 {
			e := nextOf(t, half)
			half.Advance(e.End, queue.Outcome{Delivered: e.Count()})
			w.half++
		}
	}
	for _, r := range []*Reader{r, half} {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	contents := func(d *memDir) map[string][]byte {
		m := map[string][]byte{}
		for name, i := range d.entries {
			m[name] = i.data.bytes()
			w.images[name] = i.data
		}
		return m
	}
	w.segments, w.saves = contents(segments), contents(saves)
	if len(w.segments) != 4 || len(w.saves) != 2 {
		t.Fatalf("%d segments, %d savepoints", len(w.segments), len(w.saves))
	}
	return w
}

// append commits some samples of all kinds.
func (w *writtenLog) append(l *Log, rng *rand.Rand, i int) (wrote []fingerprint) {
	w.t.Helper()
	app := l.AppenderV2(context.Background())
	ts := int64(1_700_000_000_000 + 1000*i)
	add := func(kind string, n int, ts int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options) {
		name := fmt.Sprintf("%s_%d", kind, n)
		ls := labels.FromStrings("__name__", name, "instance", "host-"+strconv.Itoa(n)+":9100", "job", "damage")
		if _, err := app.Append(0, ls, ts-5000, ts, v, h, fh, o); err != nil {
			w.t.Fatal(err)
		}
		wrote = append(wrote, fingerprint{name, ts, valueOf(v, h, fh)})
	}
	meta := metadata.Metadata{Type: model.MetricTypeGauge, Unit: "celsius", Help: "How warm it is."}
	floats := 5 + rng.IntN(25)
	if i%40 == 17 {
		floats = 2500 // more than a page
	}
	from := rng.IntN(40)
	for n := range floats {
		ts := ts + int64(n/60)
		o := storage.AppendV2Options{Metadata: meta, MetricFamilyName: "float"}
		if n%7 == 0 {
			o.Exemplars = []exemplar.Exemplar{{Labels: labels.FromStrings("trace", strconv.Itoa(rng.IntN(1e9))), Value: 1, Ts: ts, HasTs: true}}
		}
		add("float", (from+n)%60, ts, rng.NormFloat64(), nil, nil, o)
	}
	g := int64(i)
	switch i % 4 {
	case 0:
		add("ints", i%5, ts, 0, tsdbutil.GenerateTestHistogram(g), nil, storage.AppendV2Options{})
	case 1:
		add("floats", i%5, ts, 0, nil, tsdbutil.GenerateTestFloatHistogram(g), storage.AppendV2Options{})
	case 2:
		add("custom", i%5, ts, 0, tsdbutil.GenerateTestCustomBucketsHistogram(g), nil, storage.AppendV2Options{})
	case 3:
		add("customfloats", i%5, ts, 0, nil, tsdbutil.GenerateTestCustomBucketsFloatHistogram(g), storage.AppendV2Options{})
	}
	if err := app.Commit(); err != nil {
		w.t.Fatal(err)
	}
	return wrote
}

func valueOf(v float64, h *histogram.Histogram, fh *histogram.FloatHistogram) uint64 {
	sum := fnv.New64a()
	switch {
	case h != nil:
		fmt.Fprint(sum, h.String(), h.CustomValues)
	case fh != nil:
		fmt.Fprint(sum, fh.String(), fh.CustomValues)
	default:
		return math.Float64bits(v)
	}
	return sum.Sum64()
}

func fingerprints(e *Entry) []fingerprint {
	out := make([]fingerprint, 0, e.Count())
	for _, s := range e.Samples {
		out = append(out, fingerprint{s.Series.Labels().Get("__name__"), s.T, math.Float64bits(s.V)})
	}
	for _, h := range e.Histograms {
		out = append(out, fingerprint{h.Series.Labels().Get("__name__"), h.T, valueOf(0, h.H, h.FH)})
	}
	return out
}

func counts(fs []fingerprint) map[fingerprint]int {
	m := make(map[fingerprint]int, len(fs))
	for _, f := range fs {
		m[f]++
	}
	return m
}

// nextOf is the next entry, which must be there soon: a reader that hangs fails the test.
func nextOf(t testing.TB, r *Reader) *Entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	e, err := r.Next(ctx)
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return e
}

// harm is one damage: what becomes of the files, and what it may have touched.
type harm struct {
	what    string
	segment map[string][]byte // replaces files; nil contents remove one
	saves   map[string][]byte
	touched func(c writtenCommit) bool
}

// newest is the file with the newest savepoint.
func (w *writtenLog) newest() string {
	_, saves := w.dirs(harm{})
	return newestFile(saves)
}

func (w *writtenLog) bytes(n int) []byte { return w.segments[segment.Name(n)] }

// flip changes one byte.
func (w *writtenLog) flip(n, at int, mask byte) harm {
	b := bytes.Clone(w.bytes(n))
	b[at] ^= mask
	return w.replaced(fmt.Sprintf("segment %d, byte %d ^ %#x", n, at, mask), n, b, int64(at), int64(at)+1)
}

// replaced gives a segment other contents, which differ in these bytes.
func (w *writtenLog) replaced(what string, n int, b []byte, from, to int64) harm {
	first, last := from/segment.PageSize*segment.PageSize, (to+segment.PageSize-1)/segment.PageSize*segment.PageSize
	return harm{what: what, segment: map[string][]byte{segment.Name(n): b}, touched: func(c writtenCommit) bool {
		return c.segment == n && c.start < last && c.end > first
	}}
}

// dirs are the directories after the harm.
func (w *writtenLog) dirs(h harm) (segments, saves *memDir) {
	d := func(files, changed map[string][]byte) *memDir {
		d := newMemDir()
		for name := range files {
			whole := w.images[name]
			d.entries[name] = &inode{data: whole.copy()}
		}
		for name, b := range changed {
			delete(d.entries, name)
			if b != nil {
				d.entries[name] = &inode{data: imageOf(b)}
			}
		}
		return d
	}
	return d(w.segments, h.segment), d(w.saves, h.saves)
}

// survives opens the log after the harm, reads all that is left for both targets, and
// checks that only what was touched is missing, that exactly this counts as damage, and
// that the ledgers say the same after a restart. It returns what "all" has lost.
func (w *writtenLog) survives(h harm) (lost uint64) {
	w.t.Helper()
	defer func() {
		if w.t.Failed() {
			w.t.Fatalf("after %s", h.what)
		}
	}()
	segments, saves := w.dirs(h)
	o := w.options(segments, saves)
	l, err := Open(o)
	if err != nil {
		w.t.Fatalf("%s: %v", h.what, err)
	}
	defer func() { _ = l.Close() }()
	ledgers := map[string]queue.Ledger{}
	readers := map[string]*Reader{}
	for _, name := range []string{"all", "half"} {
		if readers[name], err = l.Reader(name, ReaderOptions{}); err != nil {
			w.t.Fatalf("%s: %v", h.what, err)
		}
	}
	for name, r := range readers {
		commits := w.commits
		if name == "half" {
			commits = commits[w.half:]
		}
		missing := w.compare(l, r, h, commits)
		g := r.Ledger()
		ledgers[name] = g
		if !g.Balanced() || g.Pending != 0 || g.GivenUp() != missing || g.Dropped[queue.Damage] != missing {
			w.t.Errorf("%s: %s: %d samples are missing, the ledger is %+v", h.what, name, missing, g)
		}
		if name == "all" {
			lost = missing
		}
		if err := r.Close(); err != nil {
			w.t.Error(err)
		}
	}
	if err := l.Close(); err != nil {
		w.t.Errorf("%s: %v", h.what, err)
	}
	again, err := Open(o)
	if err != nil {
		w.t.Fatalf("%s, and again: %v", h.what, err)
	}
	defer func() { _ = again.Close() }()
	for name, g := range ledgers {
		r, err := again.Reader(name, ReaderOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		if now := r.Ledger(); now != g {
			w.t.Errorf("%s: %s: the ledger was %+v and is %+v after a restart", h.what, name, g, now)
		}
		_ = r.Close()
	}
	return lost
}

// compare reads all that there is for a target and compares it with what was written
// after its savepoint. It returns how many samples are missing.
func (w *writtenLog) compare(l *Log, r *Reader, h harm, commits []writtenCommit) (missing uint64) {
	w.t.Helper()
	got := map[uint64][]fingerprint{}
	for last := uint64(0); last < l.head().Commit; {
		e := nextOf(w.t, r)
		if e.End.Commit <= last {
			w.t.Fatalf("%s: commit %d after %d", h.what, e.End.Commit, last)
		}
		last = e.End.Commit
		got[last] = fingerprints(e)
		o := e.Missing
		o.Delivered = e.Count()
		r.Advance(e.End, o)
	}
	lost := map[string]bool{} // series whose announcement in the segment was touched
	segmentNumber := -1
	for _, c := range commits {
		if c.segment != segmentNumber {
			segmentNumber = c.segment
			clear(lost)
			for _, a := range w.commits {
				if a.segment == segmentNumber && h.touched(a) {
					for _, s := range a.announces {
						lost[s] = true
					}
				}
			}
		}
		samples, there := got[c.number]
		delete(got, c.number)
		missing += uint64(len(c.samples) - len(samples))
		if !there {
			if !h.touched(c) {
				w.t.Errorf("%s: commit %d (segment %d, %d..%d) is missing and was not touched", h.what, c.number, c.segment, c.start, c.end)
			}
			continue
		}
		if slices.Equal(samples, c.samples) {
			continue
		}
		have := counts(samples)
		for _, s := range c.samples {
			if have[s] == 0 && !lost[s.series] {
				w.t.Errorf("%s: commit %d: %v is missing, its series is announced where nothing was touched", h.what, c.number, s)
			}
			delete(have, s)
		}
		if len(have) > 0 {
			w.t.Errorf("%s: commit %d has what was never written: %v", h.what, c.number, have)
		}
	}
	for n, samples := range got {
		if n <= w.commits[len(w.commits)-1].number {
			w.t.Errorf("%s: commit %d came twice, or was never written: %v", h.what, n, samples)
		}
	}
	return missing
}

// exhaustive says whether to try what takes minutes, instead of a sample.
func exhaustive() bool { return os.Getenv("HWSAGENT_TORTURE") != "" }

// thinned is the step of a loop over every byte: 1 in the full tier, where all are tried.
func thinned(step int) int {
	if exhaustive() {
		return 1
	}
	return step
}

// oneGoroutine leaves out a test of one goroutine, of which the race detector has nothing to say.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: one goroutine")
	}
}

// sampled tries so many of all, the same ones each time. In the full tier it tries twenty
// times as many, and others each time: all would take an hour.
func sampled(t *testing.T, all, some int, try func(i int)) {
	t.Helper()
	seed := uint64(72)
	if exhaustive() {
		seed, some = testSeed(t), 20*some
	} else if testing.Short() {
		some /= 16 // the race detector sees the same goroutines each time
	} else if !tier.Nightly() {
		some /= 4
	}
	t.Logf("seed %d, %d of %d", seed, min(some, all), all)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, i := range rng.Perm(all)[:min(some, all)] {
		try(i)
	}
}

// Without harm nothing is lost; otherwise the tests below prove nothing.
func TestWrittenLogIsWhole(t *testing.T) {
	w := writeLog(t)
	if lost := w.survives(harm{what: "nothing", touched: func(writtenCommit) bool { return false }}); lost != 0 {
		t.Errorf("%d samples are lost", lost)
	}
	size := 0
	for _, b := range w.segments {
		size += len(b)
	}
	t.Logf("%d commits in %d bytes", len(w.commits), size)
}

// Any byte may change, in any segment, the one that was written last included.
func TestOpenAfterFlip(t *testing.T) {
	t.Parallel()
	w := writeLog(t)
	masks := []byte{0x01, 0x80, 0xff}
	type place struct {
		n, at int
		mask  byte
	}
	var all []place
	for n := range 4 {
		for at := range w.bytes(n) {
			for _, mask := range masks {
				all = append(all, place{n, at, mask})
			}
		}
	}
	harmed := 0
	sampled(t, len(all), 1600, func(i int) {
		if p := all[i]; w.survives(w.flip(p.n, p.at, p.mask)) > 0 {
			harmed++
		}
	})
	if t.Logf("%d flips did damage", harmed); harmed == 0 {
		t.Error("no flip did any damage")
	}
}

// A segment may be cut off anywhere.
func TestOpenAfterTruncation(t *testing.T) {
	t.Parallel()
	w := writeLog(t)
	type place struct{ n, size int }
	var all []place
	for n := range 4 {
		for size := range w.bytes(n) {
			all = append(all, place{n, size})
		}
	}
	harmed := 0
	sampled(t, len(all), 800, func(i int) {
		p := all[i]
		h := w.replaced(fmt.Sprintf("segment %d cut at %d", p.n, p.size), p.n, w.bytes(p.n)[:p.size:p.size], 0, 1)
		h.touched = func(c writtenCommit) bool { return c.segment == p.n && c.end > int64(p.size) }
		if w.survives(h) > 0 {
			harmed++
		}
	})
	if harmed == 0 {
		t.Error("no cut did any damage")
	}
}

// Pages may come back as zeros, as another page of the segment or of another one, in each
// other's place, or be there twice.
func TestOpenAfterPagesMoved(t *testing.T) {
	w := writeLog(t)
	harmed, tried := 0, 0
	try := func(h harm) {
		t.Helper()
		tried++
		if w.survives(h) > 0 {
			harmed++
		}
	}
	page := func(n, i int) []byte {
		b := w.bytes(n)
		return b[i*segment.PageSize : min((i+1)*segment.PageSize, len(b))]
	}
	span := func(b []byte, i int) (from, to int64) {
		return int64(i) * segment.PageSize, min(int64(i+1)*segment.PageSize, int64(len(b)))
	}
	for n := range 4 {
		whole := w.bytes(n)
		pages := (len(whole) + segment.PageSize - 1) / segment.PageSize
		for i := range pages {
			from, to := span(whole, i)
			zeroed := bytes.Clone(whole)
			clear(zeroed[from:to])
			try(w.replaced(fmt.Sprintf("segment %d, page %d zeroed", n, i), n, zeroed, from, to))
			for m := range 4 {
				for j := range (len(w.bytes(m)) + segment.PageSize - 1) / segment.PageSize {
					if m == n && j == i {
						continue
					}
					b := bytes.Clone(whole)
					clear(b[from:to])
					copy(b[from:to], page(m, j))
					try(w.replaced(fmt.Sprintf("segment %d, page %d is page %d of segment %d", n, i, j, m), n, b, from, to))
				}
			}
			for j := range pages {
				twice := slices.Concat(whole[:from], page(n, j), whole[from:])
				h := w.replaced(fmt.Sprintf("segment %d, page %d inserted before page %d", n, j, i), n, twice, from, from+1)
				// What moves beyond the end that the next segment's header knows of is cut off.
				h.touched = func(c writtenCommit) bool { return c.segment == n && c.end > from }
				try(h)
				if j <= i {
					continue
				}
				f, u := span(whole, j)
				b := bytes.Clone(whole)
				copy(b[from:], page(n, j))
				clear(b[f:u])
				copy(b[f:], page(n, i))
				h = w.replaced(fmt.Sprintf("segment %d, pages %d and %d swapped", n, i, j), n, b, from, to)
				one := h.touched
				two := w.replaced("", n, b, f, u).touched
				h.touched = func(c writtenCommit) bool { return one(c) || two(c) }
				try(h)
			}
		}
	}
	if t.Logf("%d of %d did damage", harmed, tried); harmed == 0 {
		t.Error("nothing did any damage")
	}
}

// Segments may be gone, under each other's names, or another log's.
func TestOpenAfterSegmentsMoved(t *testing.T) {
	w, foreign := writeLog(t), writeLog(t)
	in := func(ns ...int) func(c writtenCommit) bool {
		return func(c writtenCommit) bool { return slices.Contains(ns, c.segment) }
	}
	try := func(h harm, ns ...int) {
		t.Helper()
		h.touched = in(ns...)
		if lost := w.survives(h); lost == 0 && len(ns) > 0 {
			t.Errorf("%s: nothing is lost", h.what)
		}
	}
	for n := range 4 {
		name := segment.Name(n)
		try(harm{what: "segment gone: " + name, segment: map[string][]byte{name: nil}}, n)
		try(harm{what: "segment empty: " + name, segment: map[string][]byte{name: {}}}, n)
		for m := range 4 {
			try(harm{
				what:    fmt.Sprintf("segment %d of another log as %d", m, n),
				segment: map[string][]byte{name: foreign.bytes(m)},
			}, n)
			if m == n {
				continue
			}
			try(harm{what: fmt.Sprintf("segment %d also as %d", m, n), segment: map[string][]byte{name: w.bytes(m)}}, n)
			try(harm{
				what:    fmt.Sprintf("segments %d and %d swapped", m, n),
				segment: map[string][]byte{name: w.bytes(m), segment.Name(m): w.bytes(n)},
			}, m, n)
		}
	}
	for _, n := range []int{4, 5, 1000} {
		try(harm{what: "a segment of another log after the last one", segment: map[string][]byte{segment.Name(n): foreign.bytes(2)}})
		try(harm{what: "a copy of a segment after the last one", segment: map[string][]byte{segment.Name(n): w.bytes(1)}})
	}
	try(harm{what: "foreign files", segment: map[string][]byte{
		"README": []byte("hello"), "0000000a": {1}, "00000001.bak": w.bytes(2), "lost+found": {2},
	}, saves: map[string][]byte{"README": []byte("hello"), "x": {1}}})
}
