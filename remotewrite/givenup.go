package remotewrite

import (
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"

	"hwsagent/remotewrite/quarantine"
	"hwsagent/wal"
)

// givenUp remembers the samples that were given up, each with its reason, until the
// savepoint is past them. A window that is thrown away is read again, and what was given
// up must then neither be sent again, nor get another letter, nor pass for stored because
// what comes after it was: it was not. Safe for concurrent use.
type givenUp struct {
	mu       sync.Mutex
	byCommit map[uint64]map[sampleKey]wal.Reason

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

// sampleKey names a sample of a commit. hash is of the labels that are sent.
type sampleKey struct {
	hash uint64
	t    int64
}

// add remembers a sample of that commit.
func (g *givenUp) add(commit uint64, p point, why wal.Reason) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.byCommit[commit]
	if of == nil {
		of = map[sampleKey]wal.Reason{}
		if g.byCommit == nil {
			g.byCommit = map[uint64]map[sampleKey]wal.Reason{}
		}
		g.byCommit[commit] = of
	}
	of[sampleKey{p.series.hash, p.t}] = why
}

// forget forgets a commit whose outcome is in the savepoint.
func (g *givenUp) forget(commit uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byCommit, commit)
	for hash, last := range g.released {
		if last <= commit {
			delete(g.released, hash)
		}
	}
}

// release ends the quarantine of a series. acked is the commit that the savepoint is at.
func (g *givenUp) release(s *series, acked uint64) {
	g.releasedAt(s.hash, quarantine.Mark(s.newestIn), acked)
	s.newest, s.newestIn = noneTaken, 0
}

// releasedAt remembers up to where samples of a released series were dropped, if the savepoint is not past that.
func (g *givenUp) releasedAt(hash uint64, mark quarantine.Mark, acked uint64) {
	if mark.Commit() <= acked {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.released == nil {
		g.released = map[uint64]uint64{}
	}
	g.released[hash] = mark.Commit()
}

// any reports whether a sample of that commit may have been given up. unsure says that an
// earlier process may have sent it.
func (g *givenUp) any(commit uint64, unsure bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.byCommit[commit]) > 0 || len(g.released) > 0 || unsure && len(g.letters) > 0
}

// why is the reason for which the sample of that commit was given up, if it was.
func (g *givenUp) why(commit uint64, to *series, t int64, unsure bool) (wal.Reason, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if why, ok := g.byCommit[commit][sampleKey{to.hash, t}]; ok {
		return why, true
	}
	if last, ok := g.released[to.hash]; ok && commit <= last {
		return wal.Rejected, true
	}
	if of := g.letters[t]; unsure && len(of) > 0 {
		series := maphash.String(g.seed, to.labels().String())
		if i := slices.IndexFunc(of, func(l lettered) bool { return l.series == series }); i >= 0 {
			return of[i].why, true
		}
	}
	return 0, false
}

// recall learns what earlier processes gave up. Letters that stand for several samples do
// not say which.
func (g *givenUp) recall(letters []Letter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.letters, g.seed = map[int64][]lettered{}, maphash.MakeSeed()
	for i := range letters {
		l := &letters[i]
		for _, why := range [...]wal.Reason{wal.Rejected, wal.Unconfirmed} {
			if l.Reason == why.String() && l.Samples <= 1 {
				g.letters[l.Timestamp] = append(g.letters[l.Timestamp], lettered{maphash.String(g.seed, l.Series), why})
			}
		}
	}
}

// recall reads the letters of earlier processes.
func (l *lane) recall() {
	if l.letters == nil {
		return
	}
	letters, err := l.letters.List()
	if err != nil {
		l.log.Warn("Cannot read the dead letters: what was given up before the start may be sent again", slog.Any("err", err))
	}
	l.givenUp.recall(letters)
}
