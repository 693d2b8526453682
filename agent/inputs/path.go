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

	"hwsagent/internal/panics"
	"hwsagent/internal/refs"
	"hwsagent/internal/spare"
)

// lapse is how long an input owns a series after its last sample: as long as a Prometheus shows
// a series that is not marked stale, or three of the input's intervals if that is longer.
const lapse = 5 * time.Minute

// ahead is how far ahead of this host's clock the newest sample of a series may be to be shown; a clock was wrong if it is
// further ahead. The log lets a later sample within the same bound replace it.
const ahead = 10 * time.Minute

// sweepEvery is the time between two searches for lapsed series.
const sweepEvery = time.Minute

// Log is the destination of a path. It keeps the labels and the newest sample of each series, so that the path does not
// store them again. All methods are safe for concurrent use.
type Log interface {
	storage.AppendableV2

	// Ref returns the reference of the series with these labels, or 0 if the log has none. No other series gets that reference.
	Ref(ls labels.Labels) storage.SeriesRef

	// Remember sets how long series without a sample must stay available. The log may forget them after that.
	Remember(idle time.Duration)

	// Name returns the metric name of the series with that reference, "" if it has none or the log does not know it.
	Name(ref storage.SeriesRef) string

	// Newest returns the newest committed sample of the series with that reference, as it was appended: its labels, time,
	// value, and in o the metadata and the family. ok is false if there is none; ls is empty then, unless the log knows the reference.
	Newest(ref storage.SeriesRef) (ls labels.Labels, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options, ok bool)
}

// Path is the common path of all inputs to the log. It is safe for concurrent use.
type Path struct {
	log    Log
	logger *slog.Logger
	start  time.Time

	mu     sync.Mutex
	inputs map[string]*Input           // by kind and name
	guards map[string]*panics.Guard    // likewise; of each input, and of inputs not yet made
	series refs.Values[series]         // by the log's references
	owners []*Input                    // by number; nil where no input has the number
	rivals map[storage.SeriesRef]rival // of series that a second input brings
	pairs  map[[2]*Input]*pair         // the owner, the rival
	twins  twins
	swept  uint32 // tick of the last sweep

	samples spare.Stack[[]sample] // that of a large batch takes a megabyte

	observer Observer // may be nil
}

// Observer sees the samples that inputs append. It must not block.
type Observer interface {
	// Active reports whether the observer wants samples. It is called for each batch.
	Active() bool
	// Taken passes the samples of a committed batch, and the input's kind and name. The samples
	// are invalid after the call.
	Taken(kind, name string, samples iter.Seq[Shown])
}

// Shown is a sample that an [Observer] sees.
type Shown struct {
	Labels labels.Labels
	T      int64 // ms
	V      float64
	H      *histogram.Histogram // nil for a float
	FH     *histogram.FloatHistogram
}

// Observe sets the observer of all batches. It must be called before the first batch.
func (p *Path) Observe(o Observer) { p.observer = o }

// Settings are the configuration of an input.
type Settings struct {
	// MaxSeries is how many series the input may have at a time; 0 means no limit. A series
	// counts until it is marked stale or lapses. Samples of further series are skipped, except
	// those that describe a round or scrape, such as up.
	MaxSeries int
	// Interval is the time between two samples of a series, 0 if unknown.
	Interval time.Duration
}

// Input is the entry of one source to a Path. It is a [storage.AppendableV2]; any number of its
// batches may be open at once.
type Input struct {
	path  *Path
	kind  string
	name  string
	guard *panics.Guard

	// Guarded by path.mu.
	settings Settings
	closed   bool   // removed from the configuration
	live     int    // series that it owns, and those that open batches reserve
	number   uint32 // in path.owners, while live > 0
	filtered uint64
	refused  uint64
	over     *refusal // nil if it was never over its limit
}

// refusal is the state of an input that is, or was, over its limit.
type refusal struct {
	first, last time.Time
	example     string // the series refused last
}

// series is the account of a series with recent samples. Guarded by Path.mu. The log has its labels and values. An agent may
// have a million, so it takes only 8 bytes, without a pointer.
type series struct {
	owner uint32 // number of the owner; see Path.ownerOf
	state uint32 // tick of the owner's last commit, above a bit that says whether the log has a sample since the account began
}

const hasSample = 1 // the bit of series.state

// seen is the tick of the owner's last commit.
func (s *series) seen() uint32 { return s.state >> 1 }

// see records a commit of the owner.
func (s *series) see(tick uint32) { s.state = tick<<1 | s.state&hasSample }

// committed reports whether the log has a sample since the account began.
func (s *series) committed() bool { return s.state&hasSample != 0 }

// ownerOf returns the owner of a series. p.mu must be held.
func (p *Path) ownerOf(s *series) *Input { return p.owners[s.owner] }

// count adds a series to those of an input. The first one gives the input a number. path.mu must be held.
func (in *Input) count() {
	if in.live++; in.live > 1 {
		return
	}
	p := in.path
	free := slices.Index(p.owners, nil)
	if free < 0 {
		free = len(p.owners)
		p.owners = append(p.owners, nil)
	}
	p.owners[free], in.number = in, uint32(free) // #nosec G115 -- a count of inputs
}

// discount removes a series from those of an input. Without any, the input has no number. path.mu must be held.
func (in *Input) discount() {
	if in.live--; in.live == 0 {
		in.path.owners[in.number] = nil
	}
}

// NewPath makes a path to log.
func NewPath(log Log, logger *slog.Logger) *Path {
	return &Path{
		log: log, logger: logger, start: time.Now(),
		inputs: map[string]*Input{}, guards: map[string]*panics.Guard{},
		rivals: map[storage.SeriesRef]rival{}, pairs: map[[2]*Input]*pair{},
	}
}

// Input returns the input of a kind (probe, scrape, receiver) and a name unique within the kind.
// An existing input gets the new settings, which apply from the next sample on; so a reload
// keeps the state of its series.
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

// Ended returns an input that is no longer configured, for its remaining samples. The input is
// removed when its series have ended.
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

// Guard returns the guard of the input of a kind and a name. The input need not exist yet,
// since its worker may be created first. The guard is removed with the input.
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

// Keep declares that of a kind only the inputs with these names remain. The others are
// removed when their series have ended.
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

// String names the input for people, as in "probe host".
func (in *Input) String() string { return in.kind + " " + in.name }

// tick returns the seconds since the path was made. It never decreases.
func (p *Path) tick() uint32 { return uint32(time.Since(p.start) / time.Second) } // #nosec G115 -- 31 bits last 68 years

// lapsed reports whether the owner has not appended to s for so long that s has ended. p.mu must be held.
func (p *Path) lapsed(s *series, tick uint32) bool { return tick-s.seen() > p.patience(s) }

func (p *Path) patience(s *series) uint32 { return uint32(p.ownerOf(s).patience() / time.Second) } // #nosec G115 -- an interval is under a year

// patience is how long the input owns a series after its last sample. path.mu must be held.
func (in *Input) patience() time.Duration { return max(lapse, 3*in.settings.Interval) }

// get returns the account of a series, or nil if there is none. p.mu must be held.
func (p *Path) get(ref storage.SeriesRef) *series { return p.series.Get(uint64(ref)) }

// refer records that the log changed the reference of a series.
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
	if other, ok := p.twins.of[before]; ok {
		delete(p.twins.of, before)
		p.twins.of[now] = other
	}
	if r.input != nil {
		delete(p.rivals, before)
		p.rivals[now] = r
	}
}

// forget ends the account of a series, if there is one. p.mu must be held.
func (p *Path) forget(ref storage.SeriesRef) {
	s := p.get(ref)
	if s == nil {
		return
	}
	p.part(ref, s)
	p.ownerOf(s).discount()
	p.series.Remove(uint64(ref))
}

// sweep removes lapsed series, if a sweep is due. p.mu must be held.
func (p *Path) sweep(tick uint32) {
	if tick-p.swept < uint32(sweepEvery/time.Second) {
		return
	}
	p.swept = tick
	for ref, s := range p.series.All() {
		if p.lapsed(s, tick) {
			p.forget(storage.SeriesRef(ref))
		}
	}
	for ref, r := range p.rivals {
		if s := p.get(ref); tick-r.seen > p.patience(s) {
			p.part(ref, s)
		}
	}
	p.endTwins()
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
	H      *histogram.Histogram      // nil unless the sample is a histogram; must not be changed
	FH     *histogram.FloatHistogram // likewise
	Family string                    // of the metric, "" if the input did not name it
	Meta   metadata.Metadata
}

// Newest appends to all what [Path.All] yields for all names.
func (p *Path) Newest(all []Sample) []Sample {
	return slices.AppendSeq(slices.Grow(all, p.Size()), p.All(func(string) bool { return true }))
}

// All yields the newest acknowledged sample of each series that has not ended and whose metric name is wanted, in no particular
// order. Other series cost no more than their names. It omits series whose
// newest sample is older than the owner's patience, because a sender that is catching up brings past values, and those whose
// newest sample is more than 10 minutes ahead of this host's clock. The path is locked only while a few are read, so it
// neither keeps inputs waiting nor holds all samples at once.
func (p *Path) All(wanted func(name string) bool) iter.Seq[Sample] {
	return func(yield func(Sample) bool) {
		p.mu.Lock()
		known := make([]storage.SeriesRef, 0, p.size())
		for ref := range p.series.All() {
			known = append(known, storage.SeriesRef(ref))
		}
		p.mu.Unlock()
		var few []Sample
		for some := range slices.Chunk(known, 256) {
			few = p.newest(some, wanted, few[:0])
			for _, s := range few {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// newest appends the samples of these series to all, if their names are wanted.
func (p *Path) newest(series []storage.SeriesRef, wanted func(name string) bool, all []Sample) []Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	tick, now := p.tick(), time.Now().UnixMilli()
	for _, ref := range series {
		s := p.get(ref)
		if s == nil || !s.committed() || p.lapsed(s, tick) || !wanted(p.log.Name(ref)) {
			continue
		}
		ls, t, v, h, fh, o, ok := p.log.Newest(ref)
		if !ok || h == nil && fh == nil && value.IsStaleNaN(v) || t < now-1000*int64(p.patience(s)) || t > now+ahead.Milliseconds() {
			continue
		}
		all = append(all, Sample{Labels: ls, T: t, V: v, H: h, FH: fh, Family: o.MetricFamilyName, Meta: o.Metadata})
	}
	return all
}

// Size returns the number of series.
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
	Series     int    // now
	MaxSeries  int    // 0 means no limit
	Filtered   uint64 // samples that its relabelling removed, see [Filterer]
	Refused    uint64 // samples of series over its limit
	// OverSince is when the input went over its limit, zero if it is not over it. Example is a
	// refused series.
	OverSince time.Time
	Example   string
	Panics    panics.State // contained panics of its work
}

// Status describes the inputs, sorted by name.
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
