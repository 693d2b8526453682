// Package latebook remembers, across restarts, the newest sample that a target accepted of each series whose late samples it refused.
//
// While the host's clock is behind, a target that accepts no late samples accepts nothing of these series, so the entry stays exact;
// later it is a lower bound, like all knowledge about a series. Without it, an agent that starts during that time could not distinguish
// stored samples from late ones, nor test a held target with a sample that it accepted before. The book is not written while no sample is late.
package latebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"hwsagent/wal"
)

// Store keeps the book. Remember replaces the stored bytes by b and returns when b is durable; Recall returns the stored bytes, nil if there are
// none.
type Store interface {
	Remember(b []byte) error
	Recall() ([]byte, error)
}

// Newest is the newest sample of a series that the target accepted.
type Newest struct {
	T      int64  // the timestamp, in ms
	Commit uint64 // the commit in this log that contains it; 0: it is from an earlier log
}

// Sample is the newest float sample of any series that the target accepted.
type Sample struct {
	Hash uint64 `json:"hash"` // of the series' labels
	T    int64  `json:"t"`    // ms
	Bits uint64 `json:"bits"` // of the value
	// Labels are the series' labels as remote write 1.0 encodes them, since the series may never appear again.
	Labels []byte `json:"labels"`
}

func (a *Sample) same(b *Sample) bool { return a.Hash == b.Hash && a.T == b.T && a.Bits == b.Bits }

const (
	version = 1
	// maxSeries bounds the memory; a full book is emptied.
	maxSeries = 100_000
)

// file is the stored form of the book; a line with its checksum follows.
type file struct {
	Version int     `json:"version"`
	Log     string  `json:"log"` // the log that the commits belong to
	Taken   *Sample `json:"taken,omitempty"`
	Series  []entry `json:"series"`
}

type entry struct {
	Hash   uint64 `json:"hash"`
	T      int64  `json:"t"`
	Commit uint64 `json:"commit"`
}

// Book is the memory of one target. New makes one. Safe for concurrent use.
type Book struct {
	store Store // nil: nothing outlives the process

	mu     sync.Mutex
	series map[uint64]Newest // by hash
	taken  *Sample           // from an earlier process, until its series is seen
	saved  Sample            // the value of file.Taken at the last save
	dirty  bool
}

// New makes an empty book. A nil store keeps nothing.
func New(store Store) *Book { return &Book{store: store} }

// Note records the newest sample that the target accepted of a series, after it refused a late one.
func (b *Book) Note(hash uint64, is Newest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if was, ok := b.series[hash]; ok && was == is {
		return
	}
	if b.series == nil || len(b.series) >= maxSeries {
		b.series = map[uint64]Newest{}
	}
	b.series[hash], b.dirty = is, true
}

// Recall returns the knowledge about a series that is new to this process. taken is the sample that the target accepted last, if it is of this
// series; it is returned only once.
func (b *Book) Recall(hash uint64) (is Newest, known bool, taken *Sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	is, known = b.series[hash]
	if b.taken != nil && b.taken.Hash == hash {
		taken, b.taken = b.taken, nil
	}
	return is, known, taken
}

// Taken returns the sample of an earlier process that the target accepted last; nil if there is none or Recall has returned it.
func (b *Book) Taken() *Sample {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken
}

// Load reads the book of an earlier process. Its commits are kept only if it was written for the same log. After an error the book is empty, and the
// knowledge is collected again.
func (b *Book) Load(log wal.ID) error {
	if b.store == nil {
		return nil
	}
	raw, err := b.store.Recall()
	if err != nil || len(raw) == 0 {
		return err
	}
	body, sum, _ := bytes.Cut(raw, []byte("\n"))
	if string(sum) != checksum(body) {
		return errors.New("read which series were late: the checksum is wrong")
	}
	var f file
	if err := json.Unmarshal(body, &f); err != nil {
		return fmt.Errorf("read which series were late: %w", err)
	}
	if f.Version != version {
		return fmt.Errorf("read which series were late: format version %d, this build reads %d", f.Version, version)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.series, b.taken = make(map[uint64]Newest, len(f.Series)), f.Taken
	if f.Taken != nil {
		b.saved = *f.Taken
	}
	for _, s := range f.Series {
		if f.Log != log.String() {
			s.Commit = 0
		}
		b.series[s.Hash] = Newest{s.T, s.Commit}
	}
	return nil
}

func checksum(body []byte) string {
	return fmt.Sprintf("%08x\n", crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// Save makes the changes since the last call durable. taken (nil if there is none) changes with every delivery. Its
// change alone causes a save only if still is set: deliveries have stopped for a while, and no empty write will show
// when the target accepts data again. After an error the next call tries again.
func (b *Book) Save(log wal.ID, taken *Sample, still bool) error {
	b.mu.Lock()
	if taken == nil {
		taken = b.taken // its series was not seen yet in this process
	}
	if b.store == nil || !b.dirty && (!still || taken == nil || b.saved.same(taken)) {
		b.mu.Unlock()
		return nil
	}
	if taken != nil {
		b.saved = *taken
	}
	f := file{Version: version, Log: log.String(), Taken: taken}
	for hash, is := range b.series {
		f.Series = append(f.Series, entry{hash, is.T, is.Commit})
	}
	b.dirty = false
	b.mu.Unlock()
	body, err := json.Marshal(f)
	if err == nil {
		err = b.store.Remember(append(append(body, '\n'), checksum(body)...))
	}
	if err != nil {
		b.mu.Lock()
		b.dirty = true
		b.mu.Unlock()
		return fmt.Errorf("save which series are late: %w", err)
	}
	return nil
}
