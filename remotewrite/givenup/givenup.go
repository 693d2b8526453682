// Package givenup remembers the samples that were given up, each with its reason, until the
// savepoint is past them.
//
// A window that is thrown away is read again, and what was given
// up must then neither be sent again, nor get another letter, nor pass for stored because
// what comes after it was: it was not.
package givenup

import (
	"hash/maphash"
	"slices"
	"sync"

	"hwsagent/wal"
)

// Key names a sample of a commit.
type Key struct {
	Hash uint64 // of the labels that are sent
	T    int64  // ms
}

// Letter is a dead letter of an earlier process that stands for one sample.
type Letter struct {
	Series string // the labels as they are sent, in the exposition notation
	T      int64  // ms
	Why    wal.Reason
}

// Book is what is remembered of one reader of the log. The zero Book is empty. Safe for concurrent use.
type Book struct {
	mu       sync.Mutex
	byCommit map[uint64]map[Key]wal.Reason

	// released are series that were in quarantine, by hash: up to which commit their samples were dropped as rejected.
	released map[uint64]uint64

	// letters are those of earlier processes, by timestamp.
	letters map[int64][]lettered
	seed    maphash.Seed
}

// lettered is a sample that has a letter of its own.
type lettered struct {
	series uint64 // a hash of its labels
	why    wal.Reason
}

// Add remembers a sample of that commit.
func (b *Book) Add(commit uint64, k Key, why wal.Reason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.byCommit[commit]
	if of == nil {
		of = map[Key]wal.Reason{}
		if b.byCommit == nil {
			b.byCommit = map[uint64]map[Key]wal.Reason{}
		}
		b.byCommit[commit] = of
	}
	of[k] = why
}

// Forget forgets a commit whose outcome is in the savepoint.
func (b *Book) Forget(commit uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byCommit, commit)
	for hash, last := range b.released {
		if last <= commit {
			delete(b.released, hash)
		}
	}
}

// Released remembers that samples of a series, by its hash, were dropped as rejected up to the commit last, while it was in quarantine. acked is the commit
// that the savepoint is at.
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

// Any reports whether a sample of that commit may have been given up. unsure says that an
// earlier process may have sent it.
func (b *Book) Any(commit uint64, unsure bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.byCommit[commit]) > 0 || len(b.released) > 0 || unsure && len(b.letters) > 0
}

// Why is the reason for which the sample of that commit was given up, if it was. series gives its labels as a letter has them.
func (b *Book) Why(commit uint64, k Key, series func() string, unsure bool) (wal.Reason, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if why, ok := b.byCommit[commit][k]; ok {
		return why, true
	}
	if last, ok := b.released[k.Hash]; ok && commit <= last {
		return wal.Rejected, true
	}
	if of := b.letters[k.T]; unsure && len(of) > 0 {
		hash := maphash.String(b.seed, series())
		if i := slices.IndexFunc(of, func(l lettered) bool { return l.series == hash }); i >= 0 {
			return of[i].why, true
		}
	}
	return 0, false
}

// Recall learns what earlier processes gave up, in place of what it learnt before.
func (b *Book) Recall(letters []Letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.letters, b.seed = map[int64][]lettered{}, maphash.MakeSeed()
	for _, l := range letters {
		b.letters[l.T] = append(b.letters[l.T], lettered{maphash.String(b.seed, l.Series), l.Why})
	}
}
