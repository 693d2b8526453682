package targets

import (
	"sync"

	"hwsagent/wal/queue"
)

// ledgers turns ledgers into counters that begin with the process. A ledger is an account: it continues from the
// process before, and it is corrected when a request in flight is answered after the log gave its samples up. A counter
// starts at 0 and never decreases. Safe for concurrent use.
type ledgers struct {
	mu     sync.Mutex
	counts map[string]*tallied // by target, including removed ones, which may come back
}

// tallied holds the counters of one target.
type tallied struct {
	seen, since queue.Ledger // the highest value of each figure, and its growth since the start
}

// begin records the ledger of a target before it does any work.
func (c *ledgers) begin(target string, l queue.Ledger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]*tallied{}
	}
	if c.counts[target] == nil {
		c.counts[target] = &tallied{seen: l}
	}
}

// count returns the counters of a target whose ledger is l.
func (c *ledgers) count(target string, l queue.Ledger) queue.Ledger {
	c.begin(target, l)
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.counts[target]
	if l.Appended < t.seen.Appended {
		t.seen = queue.Ledger{} // another queue has this name now
	}
	grow(&t.since.Appended, &t.seen.Appended, l.Appended)
	grow(&t.since.Delivered, &t.seen.Delivered, l.Delivered)
	grow(&t.since.Filtered, &t.seen.Filtered, l.Filtered)
	for r, n := range l.Dropped {
		grow(&t.since.Dropped[r], &t.seen.Dropped[r], n)
	}
	return t.since
}

// grow adds to a sum the amount by which a figure exceeds its highest value so far.
func grow(sum, seen *uint64, now uint64) {
	if now > *seen {
		*sum += now - *seen
		*seen = now
	}
}
