package wal

import "time"

// tally counts what has happened in lives.
type tally struct {
	Lives, Commits int
	Struck         map[string]int // crashes by their kind and operation
	Faults         int            // operations of the disk that failed
	Failed         map[string]int // the same by operation; "opening" are reads of a log that was being opened
	Torn           int            // files with a write of which a cut left a part
	Splits         int            // how often the newest was let go first
	Gaps           int            // savepoints with a backlog that a crash has left

	Lost       int           // acknowledged commits, all within what the promise allows
	Oldest     time.Duration // how long before the cut the oldest of them was acknowledged
	Unforgiven int           // acknowledged commits beyond that
	Survivors  int           // commits whose callers got no answer, and that a start found in the log
	Holes      int           // lives in which a cut took a commit and left one behind it
	Forgotten  int           // series that the log forgot, some of them while a batch had samples of them
	Stock      int           // logs in which Prometheus' reader found the same commits

	// Ended counts what came while a segment that had ended was synced behind the next one.
	Ended map[string]int
}

func newTally() *tally {
	return &tally{Struck: map[string]int{}, Failed: map[string]int{}, Ended: map[string]int{}}
}

func (s *tally) add(o *tally) {
	s.Lives += o.Lives
	s.Commits += o.Commits
	for k, n := range o.Struck {
		s.Struck[k] += n
	}
	for k, n := range o.Failed {
		s.Failed[k] += n
	}
	for k, n := range o.Ended {
		s.Ended[k] += n
	}
	s.Faults += o.Faults
	s.Torn += o.Torn
	s.Splits += o.Splits
	s.Gaps += o.Gaps
	s.Lost += o.Lost
	s.Oldest = max(s.Oldest, o.Oldest)
	s.Unforgiven += o.Unforgiven
	s.Survivors += o.Survivors
	s.Holes += o.Holes
	s.Forgotten += o.Forgotten
	s.Stock += o.Stock
}

func (s *tally) crashes() (n int) {
	for _, k := range s.Struck {
		n += k
	}
	return n
}
