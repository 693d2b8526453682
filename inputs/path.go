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

// Log is where a path appends. It has the labels of each series, and the newest sample, so that the path need not have
// them, too. All methods are safe for concurrent use.
type Log interface {
	storage.AppendableV2

	// Share returns labels that equal ls: those that the log has in memory, where it has such a series, else ls.
	Share(ls labels.Labels) labels.Labels

	// Ref is the reference of the series with these labels, 0 if the log has none. No other series gets that reference.
	Ref(ls labels.Labels) storage.SeriesRef

	// Remember says for how long series without a sample are asked for. The log may forget others earlier.
	Remember(idle time.Duration)

	// Newest is the newest committed sample of the series with that reference, as it was appended: its labels, time, value, and
	// of o the metadata and the family. ok is false if there is none.
	Newest(ref storage.SeriesRef) (ls labels.Labels, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options, ok bool)
}

// Path is what all inputs append through. It is safe for concurrent use.
type Path struct {
	log    Log
	logger *slog.Logger
	start  time.Time

	mu     sync.Mutex
	inputs map[string]*Input           // by kind and name
	guards map[string]*panics.Guard    // likewise; of each input, and of those that are about to come
	series refs.Values[series]         // by the log's references
	rivals map[storage.SeriesRef]rival // of the series that a second input brings
	pairs  map[[2]*Input]*pair         // the owner, the other
	swept  uint32                      // tick of the last sweep

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

// series is the account of one that some input has appended to lately. Guarded by Path.mu. The log has the rest.
type series struct {
	owner     *Input // whose it is; never nil
	seen      uint32 // tick of the owner's last commit
	committed bool   // it has a sample in the log since the account began
}

// NewPath makes the way to log.
func NewPath(log Log, logger *slog.Logger) *Path {
	return &Path{
		log: log, logger: logger, start: time.Now(),
		inputs: map[string]*Input{}, guards: map[string]*panics.Guard{},
		rivals: map[storage.SeriesRef]rival{}, pairs: map[[2]*Input]*pair{},
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

func (s *series) patience() uint32 { return uint32(s.owner.patience() / time.Second) } // #nosec G115 -- an interval is under a year

// patience is how long a series is the input's own after its last sample. path.mu must be held.
func (in *Input) patience() time.Duration { return max(lapse, 3*in.settings.Interval) }

// get is the account of a series, nil if there is none. p.mu must be held.
func (p *Path) get(ref storage.SeriesRef) *series { return p.series.Get(uint64(ref)) }

// refer notes that the log now knows a series by another reference than before.
func (p *Path) refer(before, now storage.SeriesRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.get(before)
	if s == nil {
		return
	}
	moved, r, twice := *s, p.rivals[before], p.get(now) != nil
	if twice {
		p.forget(before)
		return
	}
	p.series.Remove(uint64(before))
	p.series.Put(uint64(now), moved)
	if r.input != nil {
		delete(p.rivals, before)
		p.rivals[now] = r
	}
}

// Share returns labels that equal ls: those that are in memory already, else ls. An input that keeps the labels of
// what it appends keeps these.
func (in *Input) Share(ls labels.Labels) labels.Labels { return in.path.log.Share(ls) }

// forget ends the account of a series, if there is one. p.mu must be held.
func (p *Path) forget(ref storage.SeriesRef) {
	s := p.get(ref)
	if s == nil {
		return
	}
	p.part(ref, s)
	s.owner.live--
	p.series.Remove(uint64(ref))
}

// sweep forgets what has lapsed, if that is due. p.mu must be held.
func (p *Path) sweep(tick uint32) {
	if tick-p.swept < uint32(sweepEvery/time.Second) {
		return
	}
	p.swept = tick
	for ref, s := range p.series.All() {
		if s.lapsed(tick) {
			p.forget(storage.SeriesRef(ref))
		}
	}
	for ref, r := range p.rivals {
		if s := p.get(ref); tick-r.seen > s.patience() {
			p.part(ref, s)
		}
	}
	p.endPairs()
	longest := lapse
	for key, in := range p.inputs {
		if in.closed && in.live == 0 {
			delete(p.inputs, key)
			delete(p.guards, key)
		}
		longest = max(longest, in.patience())
	}
	p.log.Remember(longest + sweepEvery)
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
	all = slices.Grow(all, p.size())
	for ref, s := range p.series.All() {
		if !s.committed || s.lapsed(tick) {
			continue
		}
		ls, t, v, h, fh, o, ok := p.log.Newest(storage.SeriesRef(ref))
		if !ok || h == nil && fh == nil && value.IsStaleNaN(v) || t < now-1000*int64(s.patience()) {
			continue
		}
		all = append(all, Sample{Labels: ls, T: t, V: v, H: h, FH: fh, Family: o.MetricFamilyName, Meta: o.Metadata})
	}
	return all
}

// Size is how many series are known.
func (p *Path) Size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size()
}

// size is Size. p.mu must be held.
func (p *Path) size() (n int) {
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
