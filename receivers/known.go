package receivers

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
)

const (
	// knownBytes bounds the memory of one generation of known series.
	knownBytes = 32 << 20
	// knownFor is how long a generation of a [Table] grows. An entry that no request uses for two generations is forgotten.
	knownFor = 10 * time.Minute
	// knownOverhead is the memory of an entry of a [Table], with a series, beside its key and its texts, in bytes.
	knownOverhead = 176
)

// Known is a series that a receiver has passed to the log, with the outcome of the checks and of relabelling.
type Known struct {
	name   string // as sent
	size   int64  // of the labels as sent, in bytes
	labels labels.Labels
	hash   uint64        // of labels
	ref    atomic.Uint64 // the log's reference
	fault  Reason        // Relabelled if the rules drop the series, otherwise ""
}

// Name returns the name of the series as it was sent.
func (s *Known) Name() string { return s.name }

// Table finds what a receiver knows by bytes that senders repeat. Its keys are compared byte by byte; a hash of Go's maps,
// with a seed of its own, only leads to them, so no sender can make them collide. When a generation is full, it takes no
// new entry, and the receiver decodes such series in each request. It is safe for concurrent use.
type Table[V any] struct {
	most int // bytes of a generation

	mu         sync.Mutex
	young, old map[string]entry[V]
	bytes      int       // of young
	until      time.Time // when young becomes old
}

type entry[V any] struct {
	key   string // of the map, so that a move to young allocates nothing
	value V
	bytes int
}

// NewTable returns an empty table of at most 2 × most bytes.
func NewTable[V any](most int) *Table[V] {
	return &Table[V]{most: most, young: map[string]entry[V]{}}
}

// Find returns what was stored under the key.
func (t *Table[V]) Find(key []byte, now time.Time) (v V, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !now.Before(t.until) {
		t.old, t.young, t.bytes, t.until = t.young, make(map[string]entry[V], len(t.young)), 0, now.Add(knownFor)
	}
	e, ok := t.young[string(key)]
	if ok {
		return e.value, true
	}
	if e, ok = t.old[string(key)]; ok {
		t.put(e)
	}
	return e.value, ok
}

// Put stores a value that takes that many bytes with its key, if there is room.
func (t *Table[V]) Put(key string, v V, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(entry[V]{key, v, bytes})
}

// put is Put. t.mu must be held.
func (t *Table[V]) put(e entry[V]) {
	bytes := t.bytes + e.bytes - t.young[e.key].bytes
	if bytes > t.most {
		return
	}
	t.young[e.key], t.bytes = e, bytes
}

// sharer is implemented by appendables that keep labels of their own.
type sharer interface {
	Share(ls labels.Labels) labels.Labels
}

// Find returns the series that [Batch.Learn] stored under that key, nil if there is none. The caller sets it by
// [Batch.Repeat].
func (b *Batch) Find(key []byte) *Known {
	s, _ := b.g.known.Find(key, b.now)
	return s
}

// Learn stores the series set by Series, so that Find returns it for equal keys. A key must determine the labels. A
// series that is refused is not stored: each request says why.
func (b *Batch) Learn(key []byte) {
	if b.fault != "" && b.fault != Relabelled {
		return
	}
	s := &Known{name: strings.Clone(b.name), size: b.size, fault: b.fault}
	if b.fault == "" {
		s.labels, s.hash = b.labels, b.hash
		if out, ok := b.g.o.Out.(sharer); ok {
			s.labels = out.Share(b.labels)
		}
		if name := s.labels.Get(model.MetricNameLabel); name == s.name {
			s.name = name // no memory of its own
		}
		s.ref.Store(uint64(b.ref))
	}
	// The labels count as well: if the log forgets the series, only the table holds them.
	b.g.known.Put(string(key), s, knownOverhead+len(key)+int(s.labels.ByteSize())) // #nosec G115 -- labels are bounded
}

// Described returns the family and the metadata of the series set by Series.
func (b *Batch) Described() (family string, meta metadata.Metadata) { return b.family, b.meta }

// Repeat is [Batch.Series] for a series that Find returned.
func (b *Batch) Repeat(s *Known, family string, meta metadata.Metadata) error {
	if err := b.begin(s.size, family, meta); err != nil {
		return err
	}
	if s.fault != "" {
		b.fault = s.fault
		return nil
	}
	b.known, b.ref = s, storage.SeriesRef(s.ref.Load())
	b.admit(s.labels, s.hash)
	return nil
}

// textBytes bounds the memory of one generation of texts.
const textBytes = 2 << 20

// Text returns the bytes as a string, which is the same one for equal bytes as long as they are repeated.
func (b *Batch) Text(bytes []byte) string {
	if len(bytes) == 0 {
		return ""
	}
	s, ok := b.g.texts.Find(bytes, b.now)
	if !ok {
		s = string(bytes)
		b.g.texts.Put(s, s, knownOverhead+len(s))
	}
	return s
}
