package replay

import (
	"fmt"
	"time"

	"hwsagent/remotewrite/client"
)

// Count is the result of a replay so far. It is independent of the ledger of the
// target's queue: the replayed samples were appended, and accounted for, before.
//
// Invariant: Selected = Delivered + Refused + Unconfirmed + Unsupported, plus the samples without an
// outcome so far.
type Count struct {
	Selected    uint64 // samples in the requested time range and series
	Series      int    // of the selected samples
	Delivered   uint64 // answered by a 2xx
	Refused     uint64 // refused alone
	Unconfirmed uint64 // of refused requests, without proof against the sample: some may be stored; or reported as not written; or late in a continuation's first commit
	Unsupported uint64 // of a kind that the protocol or the entry's settings exclude
	Filtered    uint64 // in that time range, but not sent to this target: write_relabel_configs or the tenant exclude the series

	Requests uint64
	Bytes    uint64 // of the requests

	Oldest, Newest time.Time // timestamps of the selected samples; zero if there are none

	// Refusals are the refusals of single samples, by the receiver's answer, at most maxRefusals.
	Refusals []Refusal

	// Done is the number of the last commit up to which every selected sample has its
	// outcome: a replay that starts after it continues where this one ended.
	Done uint64
}

// Refusal is one answer of the receiver to refused samples, and the first sample
// that got it.
type Refusal struct {
	Status    int
	Text      string
	Samples   uint64
	Series    string
	Timestamp int64 // milliseconds
}

// maxRefusals bounds Count.Refusals; further ones are counted with the last one.
const maxRefusals = 20

// Error ends a replay because the target does not accept the samples. It does not affect the
// target's queue.
type Error struct {
	First  bool // no sample was accepted: this one was refused, alone, and no later one was sent
	Answer client.Answer
	Series string    // of the first sample that was not accepted
	Time   time.Time // its timestamp
}

func (e *Error) Error() string {
	if e.First {
		return fmt.Sprintf("the receiver does not accept the first sample, %s of %s: %s", e.Series, e.Time.UTC().Format(time.RFC3339), e.Answer)
	}
	return fmt.Sprintf("the receiver accepts nothing any more, from %s of %s on: %s", e.Series, e.Time.UTC().Format(time.RFC3339), e.Answer)
}

// Count returns the result so far.
func (r *Replay) Count() Count {
	c := r.count
	c.Series = len(r.selected)
	c.Done = r.read
	if len(r.batch) > 0 {
		c.Done = r.batch[0].commit - 1 // commits are numbered in order
	}
	if r.barren > 0 {
		c.Done = r.fertile
	}
	return c
}

// Sent returns how many samples were selected and delivered so far.
func (r *Replay) Sent() (selected, delivered uint64) { return r.count.Selected, r.count.Delivered }

// note counts a selected sample.
func (r *Replay) note(s *series, t int64) {
	c, at := &r.count, time.UnixMilli(t)
	c.Selected++
	r.selected[s.hash] = true
	if c.Oldest.IsZero() || at.Before(c.Oldest) {
		c.Oldest = at
	}
	if at.After(c.Newest) {
		c.Newest = at
	}
}

// refused counts a sample that was refused alone.
func (r *Replay) refused(p sample, a client.Answer) {
	if t, ok := r.newest[p.series.hash]; ok && t != p.t || r.mayBeStored(p) && a.SaysLate() {
		r.count.Unconfirmed++
		return
	}
	r.count.Refused++
	for i := range r.count.Refusals {
		if have := &r.count.Refusals[i]; have.Status == a.Status && have.Text == a.Text || i == maxRefusals-1 {
			have.Samples++
			return
		}
	}
	r.count.Refusals = append(r.count.Refusals, Refusal{
		Status: a.Status, Text: a.Text, Samples: 1, Series: p.series.labels().String(), Timestamp: p.t,
	})
}
