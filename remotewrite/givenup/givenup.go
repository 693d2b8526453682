// Package givenup remembers the samples that were given up, each with its reason, until the
// savepoint is past them.
//
// A discarded window is read again. Samples already given up
// must not be sent again, get a second dead letter, or be counted as stored because
// a later sample of the series was.
package givenup

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"hwsagent/wal/queue"
)

// Key identifies a sample within a commit.
type Key struct {
	Hash uint64 // of the labels as sent
	T    int64  // ms
}

// Letter is a dead letter of an earlier process that stands for one sample.
type Letter struct {
	Series string // the labels as sent, in the exposition notation
	T      int64  // ms
	Why    queue.Reason
}

// Book is the memory of one reader of the log. The zero Book is empty. Safe for concurrent use.
type Book struct {
	mu       sync.Mutex
	byCommit map[uint64]map[Key]queue.Reason

	// released has, by series hash, the last commit whose samples were dropped as rejected while the series was in quarantine.
	released map[uint64]uint64

	// letters are the dead letters of earlier processes, by timestamp.
	letters map[int64][]lettered
	seed    maphash.Seed
}

// lettered is a sample with a letter of its own.
type lettered struct {
	series uint64 // a hash of its labels
	why    queue.Reason
}

// Add remembers a sample of a commit.
func (b *Book) Add(commit uint64, k Key, why queue.Reason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.byCommit[commit]
	if of == nil {
		of = map[Key]queue.Reason{}
		if b.byCommit == nil {
			b.byCommit = map[uint64]map[Key]queue.Reason{}
		}
		b.byCommit[commit] = of
	}
	of[k] = why
}

// Forget removes the commits up to one whose outcome is in the savepoint.
func (b *Book) Forget(commit uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.byCommit, func(of uint64, _ map[Key]queue.Reason) bool { return of <= commit })
	for hash, last := range b.released {
		if last <= commit {
			delete(b.released, hash)
		}
	}
}

// Released remembers that the samples of a series up to the commit last were dropped as rejected while it was in quarantine. acked is the commit
// of the savepoint.
func (b *Book) Released(hash, last, acked uint64) {
	if last <= acked {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.released == nil {
		b.released = map[uint64]uint64{}
	}
	b.released[hash] = last
}

// Any reports whether a sample of the commit may have been given up. unsure is set if an
// earlier process may have sent it.
func (b *Book) Any(commit uint64, unsure bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.byCommit[commit]) > 0 || len(b.released) > 0 || unsure && len(b.letters) > 0
}

// Why returns the reason for which a sample of the commit was given up, if it was. series returns its labels as a letter has them.
func (b *Book) Why(commit uint64, k Key, series func() string, unsure bool) (queue.Reason, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if why, ok := b.byCommit[commit][k]; ok {
		return why, true
	}
	if last, ok := b.released[k.Hash]; ok && commit <= last {
		return queue.Rejected, true
	}
	if of := b.letters[k.T]; unsure && len(of) > 0 {
		hash := maphash.String(b.seed, series())
		if i := slices.IndexFunc(of, func(l lettered) bool { return l.series == hash }); i >= 0 {
			return of[i].why, true
		}
	}
	return 0, false
}

// Recall replaces the letters of earlier processes, which show the samples that these gave up.
func (b *Book) Recall(letters []Letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.letters, b.seed = map[int64][]lettered{}, maphash.MakeSeed()
	for _, l := range letters {
		b.letters[l.T] = append(b.letters[l.T], lettered{maphash.String(b.seed, l.Series), l.Why})
	}
}
