package receivers

import (
	"hash/maphash"
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
	// knownFor is how long a generation of known series grows. A series that is not sent for two of them is forgotten.
	knownFor = 10 * time.Minute
	// knownOverhead is the memory of a known series beside its key, in bytes.
	knownOverhead = 160
)

// Known is a series that a receiver has passed to the log, with the outcome of the checks and of relabelling.
type Known struct {
	key    string
	name   string // as sent
	size   int64  // of the labels as sent, in bytes
	labels labels.Labels
	hash   uint64        // of labels
	ref    atomic.Uint64 // the log's reference
	fault  Reason        // Relabelled if the rules drop the series, otherwise ""
}

// Name returns the name of the series as it was sent.
func (s *Known) Name() string { return s.name }

// knownSeries finds series by the bytes of their labels as the sender encodes them, so that only new ones are decoded
// and checked. The hash has a key of its own in each process: no sender can make series collide. Two series with one
// hash are told apart by their bytes, and then only the later one is found. When a generation is full, further series
// are decoded each time. It is safe for concurrent use.
type knownSeries struct {
	seed maphash.Seed

	mu         sync.Mutex
	young, old map[uint64]*Known // by hash
	bytes      int               // of young
	until      time.Time         // when young becomes old
}

func newKnownSeries() *knownSeries {
	return &knownSeries{seed: maphash.MakeSeed(), young: map[uint64]*Known{}}
}

// find returns the series with that key, nil if it is not known.
func (k *knownSeries) find(key []byte, now time.Time) *Known {
	hash := maphash.Bytes(k.seed, key)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !now.Before(k.until) {
		k.old, k.young, k.bytes, k.until = k.young, make(map[uint64]*Known, len(k.young)), 0, now.Add(knownFor)
	}
	if s := k.young[hash]; s != nil {
		if s.key == string(key) {
			return s
		}
		return nil
	}
	s := k.old[hash]
	if s == nil || s.key != string(key) {
		return nil
	}
	k.putLocked(hash, s)
	return s
}

// put adds a series, if there is room.
func (k *knownSeries) put(s *Known) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.putLocked(maphash.String(k.seed, s.key), s)
}

func (k *knownSeries) putLocked(hash uint64, s *Known) {
	bytes := k.bytes + s.memory()
	if before := k.young[hash]; before != nil {
		bytes -= before.memory()
	}
	if bytes > knownBytes {
		return
	}
	k.young[hash], k.bytes = s, bytes
}

// memory counts the labels as well: if the log forgets the series, only the table holds them.
func (s *Known) memory() int { return knownOverhead + len(s.key) + int(s.labels.ByteSize()) } // #nosec G115 -- labels are bounded

// sharer is implemented by appendables that keep labels of their own.
type sharer interface {
	Share(ls labels.Labels) labels.Labels
}

// Find returns the series that [Batch.Learn] stored under that key, nil if there is none. The caller sets it by
// [Batch.Repeat].
func (b *Batch) Find(key []byte) *Known { return b.g.known.find(key, b.now) }

// Learn stores the series set by Series, so that Find returns it for equal keys. A key must determine the labels. A
// series that is refused is not stored: each request says why.
func (b *Batch) Learn(key []byte) {
	if b.fault != "" && b.fault != Relabelled {
		return
	}
	s := &Known{key: string(key), name: strings.Clone(b.name), size: b.size, fault: b.fault}
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
	b.g.known.put(s)
}

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
