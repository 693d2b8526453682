package wal

import "time"

// tally counts what has happened in lives.
type tally struct {
	lives, commits int
	struck         map[string]int // crashes by their kind and operation
	faults         int            // operations of the disk that failed
	torn           int            // files with a write of which a cut left a part
	doubts         int            // savepoints with a slot that a cut has torn

	lost       int           // acknowledged commits, all within what the promise allows
	oldest     time.Duration // how long before the cut the oldest of them was acknowledged
	unforgiven int           // acknowledged commits beyond that
	survivors  int           // commits that nobody had an answer of and that were taken in
	holes      int           // lives in which a cut took a commit and left one behind it
}

func newTally() *tally { return &tally{struck: map[string]int{}} }

func (s *tally) add(o *tally) {
	s.lives += o.lives
	s.commits += o.commits
	for k, n := range o.struck {
		s.struck[k] += n
	}
	s.faults += o.faults
	s.torn += o.torn
	s.doubts += o.doubts
	s.lost += o.lost
	s.oldest = max(s.oldest, o.oldest)
	s.unforgiven += o.unforgiven
	s.survivors += o.survivors
	s.holes += o.holes
}

func (s *tally) crashes() (n int) {
	for _, k := range s.struck {
		n += k
	}
	return n
}
