package receivers

import (
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/refs"
)

const (
	// knownBytes bounds the memory of known series.
	knownBytes = 64 << 20
	// knownFor is how long a generation of a [Table] lasts. An entry that no request uses for two generations is forgotten.
	knownFor = 10 * time.Minute
	// knownOverhead is the memory of an entry of a [Table] beside the texts of its value, in bytes.
	knownOverhead = 80
)

// Known is a series that a receiver has passed to the log, which has its labels. A receiver may know a million.
type Known struct {
	ref    atomic.Uint64 // the log's reference
	active atomic.Uint32 // the generation of the active series in which this one is known to count; 0: none
	bytes  uint32        // of its labels; 0 if the rules drop the series
}

// ErrUnknown means that a series must be decoded, because the receiver does not know it or the log has forgotten it. After it,
// the caller must call [Batch.Abandon] and decode all series of the request.
var ErrUnknown = errors.New("a series is not known")

// Table finds what a receiver knows by bytes that senders repeat. It keeps digests of these keys, with seeds of its own: a
// sender can make no other key with the same digest, and by chance there is none. When the table is full, it takes no new
// entry, and the receiver decodes such series in each request. It is safe for concurrent use.
type Table[V any] struct {
	most   int
	size   func(*V) int // the memory of what a value refers to
	low    maphash.Seed // of entry.low
	higher maphash.Seed // of entry.high

	mu         sync.Mutex
	entries    *refs.Chains[entry[V]]
	bytes      int           // of entries
	generation atomic.Uint32 // the present one
	until      time.Time     // when it ends
}

// entry is a value with the digest of its key.
type entry[V any] struct {
	low   uint64
	high  uint32
	used  atomic.Uint32            // the last generation in which it was found
	link  *entry[V]                // of Table.entries
	next  atomic.Pointer[entry[V]] // found after this one the last time: senders repeat the order of series, too
	value V
}

// NewTable returns an empty table of at most that many bytes. size returns the memory that a value refers to.
func NewTable[V any](most int, size func(*V) int) *Table[V] {
	return &Table[V]{
		most: most, size: size, low: maphash.MakeSeed(), higher: maphash.MakeSeed(),
		entries: refs.NewChains(func(e *entry[V]) uint64 { return e.low }, func(e *entry[V]) **entry[V] { return &e.link }),
	}
}

// Find returns the value of a key, nil if it has none.
func (t *Table[V]) Find(key []byte, now time.Time) *V {
	if e := t.find(nil, key, now); e != nil {
		return &e.value
	}
	return nil
}

// find is Find. after is the entry that the caller found before at that time, nil if there is none: the one that follows it is
// found without the table's lock, if it was used in the present generation.
func (t *Table[V]) find(after *entry[V], key []byte, now time.Time) *entry[V] {
	low, high := t.digest(key)
	var e *entry[V]
	if after != nil {
		if e = after.next.Load(); e != nil && (e.low != low || e.high != high) {
			e = nil
		}
	}
	if e != nil && e.used.Load() == t.generation.Load() {
		return e
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	generation := t.generation.Load()
	if e == nil || e.used.Load()+1 < generation { // the last one is not in the table any more
		if e = t.get(low, high); e == nil {
			return nil
		}
		if after != nil {
			after.next.Store(e)
		}
	}
	e.used.Store(generation)
	return e
}

// Put stores a value with its key, if there is room and none with that key.
func (t *Table[V]) Put(key []byte, v V) { t.put(&entry[V]{value: v}, key) }

// put is Put.
func (t *Table[V]) put(e *entry[V], key []byte) {
	e.low, e.high = t.digest(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	bytes := t.bytes + knownOverhead + t.size(&e.value)
	if bytes > t.most || t.get(e.low, e.high) != nil {
		return
	}
	t.bytes = bytes
	e.used.Store(t.generation.Load())
	t.entries.Add(e)
}

func (t *Table[V]) digest(key []byte) (low uint64, high uint32) {
	return maphash.Bytes(t.low, key), uint32(maphash.Bytes(t.higher, key)) // #nosec G115 -- half of it
}

// get returns the entry with that digest, nil if there is none. t.mu must be held.
func (t *Table[V]) get(low uint64, high uint32) *entry[V] {
	return t.entries.Find(low, func(e *entry[V]) bool { return e.low == low && e.high == high })
}

// turn begins the next generation if it is time. t.mu must be held.
func (t *Table[V]) turn(now time.Time) {
	if now.Before(t.until) {
		return
	}
	generation := t.generation.Add(1)
	t.until = now.Add(knownFor)
	t.entries.RemoveIf(func(e *entry[V]) bool {
		if e.used.Load()+1 >= generation {
			return false
		}
		e.next.Store(nil) // an entry that leads here must not keep all that followed
		t.bytes -= knownOverhead + t.size(&e.value)
		return true
	})
}

// Find returns the series that [Batch.Learn] stored under that key, nil if there is none. The caller sets it by
// [Batch.Repeat].
func (b *Batch) Find(key []byte) *Known {
	if b.r.decodes {
		return nil
	}
	e := b.g.known.find(b.found, key, b.now)
	if e == nil {
		return nil
	}
	b.found = e
	return &e.value
}

// Learn stores the series set by Series, so that Find returns it for equal keys. A key must determine the labels. A
// series that is refused is not stored: each request says why.
func (b *Batch) Learn(key []byte) {
	if b.fault != "" && b.fault != Relabelled {
		return
	}
	if e := b.g.known.find(nil, key, b.now); e != nil { // the log had forgotten the series
		e.value.ref.Store(uint64(b.ref))
		return
	}
	e := &entry[Known]{}
	if s := &e.value; b.fault == "" {
		s.bytes = uint32(b.labels.ByteSize()) // #nosec G115 -- labels are bounded
		s.ref.Store(uint64(b.ref))
	}
	b.g.known.put(e, key)
}

// Described returns the family and the metadata of the series set by Series.
func (b *Batch) Described() (family string, meta metadata.Metadata) { return b.family, b.meta }

// Repeat is [Batch.Series] for a series that Find returned. It may return [ErrUnknown].
func (b *Batch) Repeat(s *Known, family string, meta metadata.Metadata) error {
	if err := b.begin(int64(s.bytes), family, meta); err != nil {
		return err
	}
	if s.bytes == 0 {
		b.fault = Relabelled
		return nil
	}
	b.ref = storage.SeriesRef(s.ref.Load())
	if s.active.Load() == b.generation {
		return nil
	}
	if err := b.recall(); err != nil {
		return err
	}
	if b.admit() {
		s.active.Store(b.generation)
	}
	return nil
}

// recall sets the labels of a series that is repeated.
func (b *Batch) recall() error {
	if b.labels = b.g.o.Out.Labels(b.ref); b.labels.IsEmpty() {
		return b.unknown()
	}
	return nil
}

// unknown makes Find return nothing for the rest of the request.
func (b *Batch) unknown() error {
	b.r.decodes = true
	return ErrUnknown
}

// textBytes bounds the memory of texts.
const textBytes = 4 << 20

// Text returns the bytes as a string, which is the same one for equal bytes as long as they are repeated.
func (b *Batch) Text(bytes []byte) string {
	if len(bytes) == 0 {
		return ""
	}
	if s := b.g.texts.Find(bytes, b.now); s != nil {
		return *s
	}
	s := string(bytes)
	b.g.texts.Put(bytes, s)
	return s
}

func textSize(s *string) int { return len(*s) }
