package wal

import (
	"errors"
	"sync"
)

// reading is the one reading of the log that the live lanes at its head share, so that each commit is read and decoded
// once, and each reference of the head is in one table, whatever the number of targets.
//
// The first lane that reaches the head gives its cursor to the reading; a later one releases its own. Both then follow
// the reading from entry to entry. A lane that is behind, that begins again, or that cannot be given the next entry has
// a cursor of its own, so the others never wait for it. The zero value has no followers.
type reading struct {
	mu sync.Mutex

	// cursor reads for the followers. It is nil if there are none. noted are its findings since the newest entry, and released
	// the series that it would have released since.
	cursor   *cursor
	noted    notes
	released releases

	// The entries that followers have or will get, oldest first.
	//
	// Invariant: with followers, newest.end is cursor.last.
	oldest, newest *shared
	followers      int
	bytes          int // memory of these entries, about

	spare *shared // to be used for the next entry; may be nil
	ahead int     // replaces maxAhead in tests, if not 0
}

// maxAhead bounds the memory, in bytes, of entries that some followers have not got yet, and of series that are kept for
// these entries. It holds 100,000 samples: a
// target that takes seconds for them is not cut off, because reading a segment from its beginning takes longer than
// decoding these samples once.
const maxAhead = 4 << 20

// shared is one entry of a reading. The reading's mutex guards all fields except what followers read: end, found, and
// the entry itself do not change while a lane is there.
type shared struct {
	*decoded
	end   Mark  // of the entry
	found notes // between the entry before it and this one
	next  *shared

	// released are series that entries before this one may have, but this one and those after it have not.
	released releases

	users int  // followers that got this entry last
	bytes int  // memory of the entry, about
	kept  bool // a lane that no longer follows may use the entry
	cut   bool // followers here were too slow: the entries after this one are gone
}

// notes are the findings of a reading, which each follower counts when it gets the entry after them.
type notes []finding

func (n *notes) add(f finding) {
	if f.skipped > 0 || f.missing > 0 {
		*n = append(*n, f)
	}
}

// errCut means that a follower was too slow for the reading.
var errCut = errors.New("the reading has gone on")

// join makes a lane whose own cursor c is at the head follow the reading. It returns where the lane is in it, and owns c
// then. It returns nil if the reading is further than c.
func (r *reading) join(c *cursor) *shared {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readUpTo(c.last)
	if r.followers == 0 {
		at := &shared{decoded: c.decode.to, end: c.last, users: 1}
		r.cursor, r.oldest, r.newest, r.followers = c, at, at, 1
		c.found, c.decode.series.later = &r.noted, &r.released
		return at
	}
	if r.newest.end != c.last {
		return nil
	}
	c.abandon()
	r.newest.users++
	r.followers++
	return r.newest
}

// readUpTo reads up to a mark for the followers, so that they need not read their segment again. If too much would have
// to be kept for them, or the read fails, it cuts all of them off.
func (r *reading) readUpTo(m Mark) {
	for r.followers > 0 && r.newest.end.Commit < m.Commit {
		if to, _ := r.read(false); to == nil { // each follower tries again on its own
			break
		}
		r.bound()
	}
	if r.cursor == nil || r.followers > 0 && r.newest.end.Commit >= m.Commit {
		return
	}
	for r.oldest != nil {
		r.cutOldest()
	}
	r.takeCursor().abandon()
}

// leave removes a follower. The last one gets the cursor of the reading, and, if it has every entry, the findings after
// its entry. Others get nil: they hold no series any more. The follower may still use its entry.
func (r *reading) leave(at *shared) (c *cursor, found notes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.kept = true; at.cut {
		return nil, nil
	}
	at.users--
	if r.followers--; r.followers > 0 {
		r.trim()
		return nil, nil
	}
	if at == r.newest {
		found = r.noted
	}
	for r.oldest != nil {
		r.removeOldest()
	}
	return r.takeCursor(), found
}

// takeCursor removes the cursor of a reading without entries. The cursor does not decode over an entry of the reading, because
// a lane that has left may use it.
func (r *reading) takeCursor() *cursor {
	c := r.cursor
	c.decode.to = &decoded{}
	c.decode.series.later = nil
	c.decode.series.pool.letGo(r.released)
	r.cursor, r.noted, r.released, r.spare = nil, nil, releases{}, nil
	return c
}

// next moves a follower to the entry after at, and returns that. It reads the entry if no follower has. Without one up
// to the head it returns nil. The error is that of the cursor, or errCut; after it, the lane must leave. The entry at at
// is not valid any more.
func (r *reading) next(at *shared) (*shared, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.cut {
		return nil, errCut
	}
	to := at.next
	if to == nil {
		var err error
		if to, err = r.read(r.followers == 1 && !at.kept); to == nil {
			return nil, err
		}
	}
	if to != at {
		at.users--
		to.users++
		r.trim()
		r.bound()
	}
	return to, nil
}

// read reads the entry after the newest. If over is true, it replaces the newest, which no other lane may use then.
//
// It reads up to the present head: an older one, of a lane that was slow since, would make the cursor skip commits that it
// can see already.
func (r *reading) read(over bool) (*shared, error) {
	to := r.newest
	if !over {
		if to, r.spare = r.spare, nil; to == nil {
			to = &shared{decoded: &decoded{}}
		}
	}
	r.cursor.decode.to = to.decoded
	e, err := r.cursor.next(r.cursor.tail.head())
	if e == nil {
		if !over {
			r.spare = to
		}
		return nil, err
	}
	const series = 256 // bytes, about
	r.bytes -= to.bytes
	to.end, to.found, to.released, to.bytes = e.End, r.noted, r.released, to.memory()+series*r.released.size()
	r.noted, r.released = nil, releases{}
	r.bytes += to.bytes
	if over {
		r.releaseFor(to)
	} else {
		r.newest.next, r.newest = to, to
	}
	return to, nil
}

// releaseFor releases the series that are not needed any more once no entry is before that one.
func (r *reading) releaseFor(e *shared) {
	if len(e.released.series)+len(e.released.tables) > 0 {
		r.cursor.decode.series.pool.letGo(e.released)
		e.released = releases{}
	}
}

// trim removes entries that all followers have passed.
func (r *reading) trim() {
	for r.oldest != r.newest && r.oldest.users == 0 {
		if o := r.removeOldest(); !o.kept {
			o.bytes, o.entry.Ended, r.spare = 0, nil, o
		}
	}
}

// bound cuts off followers for which too much would have to be kept.
func (r *reading) bound() {
	most := r.ahead
	if most == 0 {
		most = maxAhead
	}
	for r.oldest != r.newest && r.bytes-r.oldest.bytes-r.newest.bytes > most {
		r.cutOldest()
		r.trim()
	}
}

// cutOldest removes the oldest entry; its followers will leave.
func (r *reading) cutOldest() {
	o := r.removeOldest()
	o.cut = true
	r.followers -= o.users
}

// removeOldest removes the oldest entry.
func (r *reading) removeOldest() *shared {
	o := r.oldest
	if r.oldest = o.next; r.oldest == nil {
		r.newest = nil
	} else {
		r.releaseFor(r.oldest)
	}
	o.next = nil
	r.bytes -= o.bytes
	return o
}
