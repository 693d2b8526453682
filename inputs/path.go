package inputs

import (
	"cmp"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/inputs/panics"
	"hwsagent/refs"
)

// lapse is how long a series is an input's own after its last sample: as long as a
// Prometheus shows a series that is not marked stale, or three of the input's intervals if
// that is longer.
const lapse = 5 * time.Minute

// sweepEvery is how often series that have lapsed are looked for.
const sweepEvery = time.Minute

// Path is what all inputs append through. It is safe for concurrent use.
type Path struct {
	log    storage.AppendableV2
	logger *slog.Logger
	start  time.Time

	mu     sync.Mutex
	inputs map[string]*Input            // by kind and name
	guards map[string]*panics.Guard     // likewise; of each input, and of those that are about to come
	byRef  refs.Table[series]           // those that the log knows
	byHash *refs.Chains[series]         // all, by the hash of their labels
	rivals map[*series]rival            // of the series that a second input brings
	pairs  map[[2]*Input]*pair          // the owner, the other
	kinds  map[description]*description // shared by the series
	swept  uint32                       // tick of the last sweep

	samples sync.Pool // of *[]sample: one of a large batch takes a megabyte

	observer Observer // nil: none
}

// Observer looks at what inputs have appended. It must not wait.
type Observer interface {
	// Active reports whether it wants to see anything; called for each batch.
	Active() bool
	// Taken shows the samples of a batch that is in the log, and the input's kind and name. What it
	// is given is not valid after the call.
	Taken(kind, name string, samples iter.Seq[Shown])
}

// Shown is a sample that an [Observer] sees.
type Shown struct {
	Labels labels.Labels
	T      int64 // ms
	V      float64
	H      *histogram.Histogram // nil, or the value
	FH     *histogram.FloatHistogram
}

// Observe has an observer look at each batch. It must be called before the first.
func (p *Path) Observe(o Observer) { p.observer = o }

// Settings are what the configuration decides about an input.
type Settings struct {
	// MaxSeries is how many series the input may have at a time; 0 is no limit. A series
	// counts until it is marked stale or lapses. Samples of further ones are passed over, but
	// not those that say how a round or a scrape went, such as up.
	MaxSeries int
	// Interval is how often the input brings each series, 0 if that is not known.
	Interval time.Duration
}

// Input is one way in. It is a [storage.AppendableV2]; any number of its batches may be
// open at once.
type Input struct {
	path  *Path
	kind  string
	name  string
	guard *panics.Guard

	// Guarded by path.mu.
	settings Settings
	closed   bool // not in the configuration any more
	live     int  // series whose owner it is
	filtered uint64
	refused  uint64
	over     *refusal // nil if it was never over its limit
}

// refusal is the state of an input that is, or was, over its limit.
type refusal struct {
	first, last time.Time
	example     string // the newest series that was refused
}

// series is one that some input has appended to lately. Guarded by Path.mu.
type series struct {
	labels labels.Labels
	next   *series           // in Path.byHash
	ref    storage.SeriesRef // the log's; 0 until it took a sample
	owner  *Input            // whose it is; never nil
	about  *description      // never nil

	// The newest sample, if committed; v is a stale marker if another input than the owner ended it.
	t      int64
	v      float64
	native *native // nil of a float

	seen      uint32 // tick of the owner's last commit
	committed bool   // it has a sample in the log
	gone      bool   // it is not in the tables any more
}

// native is a histogram; one of the two is nil.
type native struct {
	h  *histogram.Histogram
	fh *histogram.FloatHistogram
}

// description is what an input says about a series. It never changes.
type description struct {
	family string
	meta   metadata.Metadata
}

// maxDescriptions bounds Path.kinds: there is about one for each metric family, unless
// somebody writes what changes into them.
const maxDescriptions = 10_000

// NewPath makes the way to log.
func NewPath(log storage.AppendableV2, logger *slog.Logger) *Path {
	return &Path{
		log: log, logger: logger, start: time.Now(),
		inputs: map[string]*Input{}, guards: map[string]*panics.Guard{},
		byHash: refs.NewChains(func(s *series) uint64 { return s.labels.Hash() }, func(s *series) **series { return &s.next }),
		rivals: map[*series]rival{}, pairs: map[[2]*Input]*pair{}, kinds: map[description]*description{},
	}
}

// Input is the input of a kind (probe, scrape, receiver) and a name that is unique among
// its kind. Where there is one, it gets the new settings, which hold from the next sample on;
// so a reload keeps what is known of its series.
func (p *Path) Input(kind, name string, s Settings) *Input {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := kind + " " + name
	in := p.inputs[key]
	if in == nil {
		in = &Input{path: p, kind: kind, name: name, guard: p.guardOf(kind, name)}
		p.inputs[key] = in
	}
	in.settings, in.closed = s, false
	return in
}

// Ended is the input of a kind and a name that is not configured any more, for what it still
// brings. It is forgotten when its series have ended.
func (p *Path) Ended(kind, name string) *Input {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := kind + " " + name
	in := p.inputs[key]
	if in == nil {
		in = &Input{path: p, kind: kind, name: name, closed: true, guard: p.guardOf(kind, name)}
		p.inputs[key] = in
	}
	return in
}

// Guard contains the panics of the input of a kind and a name, which need not be there yet:
// what runs the input's work may be made first. The guard is forgotten with the input.
func (p *Path) Guard(kind, name string) *panics.Guard {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.guardOf(kind, name)
}

// guardOf is Guard. p.mu must be held.
func (p *Path) guardOf(kind, name string) *panics.Guard {
	key := kind + " " + name
	g := p.guards[key]
	if g == nil {
		g = panics.New(key, p.logger)
		p.guards[key] = g
	}
	return g
}

// Keep says that of a kind only the inputs with these names go on. The others are
// forgotten when their series have ended.
func (p *Path) Keep(kind string, names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, in := range p.inputs {
		if in.kind != kind {
			continue
		}
		if in.closed = !slices.Contains(names, in.name); in.closed && in.live == 0 {
			delete(p.inputs, key)
		}
	}
	for key := range p.guards {
		if name, ok := strings.CutPrefix(key, kind+" "); ok && p.inputs[key] == nil && !slices.Contains(names, name) {
			delete(p.guards, key)
		}
	}
}

// String is the input for people, as in "probe host".
func (in *Input) String() string { return in.kind + " " + in.name }

// tick is the time in seconds since the path was made. It does not go backwards.
func (p *Path) tick() uint32 { return uint32(time.Since(p.start) / time.Second) } // #nosec G115 -- lasts 136 years

// lapsed reports whether nobody has appended to s for so long that it has ended.
func (s *series) lapsed(tick uint32) bool { return tick-s.seen > s.patience() }

func (s *series) patience() uint32 {
	return uint32(max(lapse, 3*s.owner.settings.Interval) / time.Second)
} // #nosec G115 -- an interval is under a year

// hash is ls without empty labels, and its hash. p.mu must be held; it is free meanwhile.
func (p *Path) hash(ls labels.Labels) (labels.Labels, uint64) {
	p.mu.Unlock()
	defer p.mu.Lock()
	ls = ls.WithoutEmpty()
	return ls, ls.Hash()
}

// refer notes that the log now knows s by another reference than before.
func (p *Path) refer(s *series, before, now storage.SeriesRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.gone {
		return
	}
	if p.byRef.Get(uint64(before)) == s {
		p.byRef.Remove(uint64(before))
	}
	s.ref = now
	p.byRef.Put(uint64(now), s)
}

// Share returns labels that equal ls: those that are in memory already, else ls. An input that keeps the labels of
// what it appends keeps these.
func (in *Input) Share(ls labels.Labels) labels.Labels {
	p := in.path
	hash := ls.Hash()
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.find(hash, ls); s != nil {
		return s.labels
	}
	return p.share(ls)
}

// sharer is a log that knows which labels are in memory; see [Input.Share].
type sharer interface {
	Share(ls labels.Labels) labels.Labels
}

// share is ls as the log has it.
func (p *Path) share(ls labels.Labels) labels.Labels {
	if log, ok := p.log.(sharer); ok {
		return log.Share(ls)
	}
	return ls
}

// find is the series of these labels, or nil. p.mu must be held.
func (p *Path) find(hash uint64, ls labels.Labels) *series {
	return p.byHash.Find(hash, func(s *series) bool { return labels.Equal(s.labels, ls) })
}

// add makes the series of an input. p.mu must be held.
func (p *Path) add(in *Input, ls labels.Labels, tick uint32) *series {
	s := &series{labels: p.share(ls), owner: in, about: p.describe(description{}), seen: tick}
	p.byHash.Add(s)
	in.live++
	return s
}

// forget takes s out of the tables. p.mu must be held.
func (p *Path) forget(s *series) {
	if s.gone {
		return
	}
	s.gone = true
	s.owner.live--
	p.part(s)
	if p.byRef.Get(uint64(s.ref)) == s {
		p.byRef.Remove(uint64(s.ref))
	}
	p.byHash.Remove(s)
}

// describe is the shared description that equals d. p.mu must be held.
func (p *Path) describe(d description) *description {
	if shared := p.kinds[d]; shared != nil {
		return shared
	}
	if len(p.kinds) >= maxDescriptions {
		clear(p.kinds)
	}
	d.family = strings.Clone(d.family) // it may be a part of something large
	p.kinds[d] = &d
	return &d
}

// sweep forgets what has lapsed, if that is due. p.mu must be held.
func (p *Path) sweep(tick uint32) {
	if tick-p.swept < uint32(sweepEvery/time.Second) {
		return
	}
	p.swept = tick
	var ended []*series
	for s := range p.byHash.All() {
		if s.lapsed(tick) {
			ended = append(ended, s)
		}
	}
	for s, r := range p.rivals {
		if tick-r.seen > s.patience() {
			p.part(s)
		}
	}
	for _, s := range ended {
		p.forget(s)
	}
	p.endPairs()
	for key, in := range p.inputs {
		if in.closed && in.live == 0 {
			delete(p.inputs, key)
			delete(p.guards, key)
		}
	}
}

// Sample is the newest sample of a series.
type Sample struct {
	Labels labels.Labels
	T      int64 // milliseconds
	V      float64
	H      *histogram.Histogram      // nil unless it is one; must not be changed
	FH     *histogram.FloatHistogram // likewise
	Family string                    // of the metric, "" if the input did not say
	Meta   metadata.Metadata
}

// Newest appends the newest acknowledged sample of each series that has not ended to all,
// in no particular order. A series whose newest sample is older than that is left out, too: a
// sender that catches up brings values that are no present ones.
func (p *Path) Newest(all []Sample) []Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	tick, now := p.tick(), time.Now().UnixMilli()
	all = slices.Grow(all, p.byRef.Len())
	for s := range p.byHash.All() {
		if !s.committed || s.lapsed(tick) || s.native == nil && value.IsStaleNaN(s.v) || s.t < now-1000*int64(s.patience()) {
			continue
		}
		one := Sample{Labels: s.labels, T: s.t, V: s.v, Family: s.about.family, Meta: s.about.meta}
		if s.native != nil {
			one.H, one.FH = s.native.h, s.native.fh
		}
		all = append(all, one)
	}
	return all
}

// Size is how many series are known.
func (p *Path) Size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, in := range p.inputs {
		n += in.live
	}
	return n
}

// InputStatus describes an input for people.
type InputStatus struct {
	Kind, Name string
	Series     int    // at present
	MaxSeries  int    // 0: no limit
	Filtered   uint64 // samples that its relabelling removed, see [Filterer]
	Refused    uint64 // samples of series beyond its limit
	// Since when the input has been over its limit, zero if it is not; and a series
	// that was refused.
	OverSince time.Time
	Example   string
	Panics    panics.State // that its work came to, and which were contained
}

// Status describes the inputs, in the order of their names.
func (p *Path) Status() []InputStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	all := make([]InputStatus, 0, len(p.inputs))
	for _, in := range p.inputs {
		s := InputStatus{Kind: in.kind, Name: in.name, Series: in.live, MaxSeries: in.settings.MaxSeries, Filtered: in.filtered, Refused: in.refused, Panics: in.guard.State()}
		if in.over != nil && now.Sub(in.over.last) <= lapse {
			s.OverSince, s.Example = in.over.first, in.over.example
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b InputStatus) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all
}
