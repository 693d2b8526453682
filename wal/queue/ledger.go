package queue

import "fmt"

// Reason is the reason for a final outcome other than an ordinary delivery with a 2xx.
type Reason uint8

// The reasons. Their order is part of the savepoint format: append only.
const (
	Budget      Reason = iota // dropped for the disk budget, for max_backlog or with an expired orphan queue
	TooOld                    // older than queue_config.sample_age_limit
	Rejected                  // refused by the receiver; kept as a dead letter
	Unconfirmed               // given up, but it may be stored
	Damage                    // its page of the log is unreadable
	PowerCut                  // acknowledged within the sync interval before a power cut
	Future                    // ahead of the target's own clock by more than future_limit
	Unsupported               // a kind of sample that the protocol or the target's settings exclude
	Skipped                   // dropped by hwsagent targets skip
	NoTenant                  // the target has tenants, but the sample has none and there is no default

	NumReasons // the number of reasons; not a reason
)

// String is the reason as metrics, JSON and the status page spell it.
func (r Reason) String() string {
	names := [NumReasons]string{"budget", "too_old", "rejected", "unconfirmed", "damage", "power_cut", "future", "unsupported", "skipped", "no_tenant"}
	if r >= NumReasons {
		return fmt.Sprintf("reason(%d)", uint8(r))
	}
	return names[r]
}

// Outcome counts the final outcomes of samples. The zero Outcome is empty.
type Outcome struct {
	Delivered uint64             // answered by a 2xx
	Filtered  uint64             // removed by write_relabel_configs
	Dropped   [NumReasons]uint64 // by Reason
}

// Add adds p to o.
func (o *Outcome) Add(p Outcome) {
	o.Delivered += p.Delivered
	o.Filtered += p.Filtered
	for r, n := range p.Dropped {
		o.Dropped[r] += n
	}
}

// One returns the outcome of one sample that was dropped for reason r.
func One(r Reason) (o Outcome) {
	o.Dropped[r] = 1
	return o
}

// Times returns o, the outcome of one sample, for n samples.
func (o Outcome) Times(n uint64) Outcome {
	o.Delivered *= n
	o.Filtered *= n
	for r := range o.Dropped {
		o.Dropped[r] *= n
	}
	return o
}

// Sum is the number of samples that o accounts for.
func (o Outcome) Sum() uint64 { return o.Delivered + o.Filtered + o.GivenUp() }

// GivenUp is the number of samples dropped for any reason.
func (o Outcome) GivenUp() uint64 {
	var n uint64
	for _, d := range o.Dropped {
		n += d
	}
	return n
}

// AtMost returns o without as many samples as it has more than n: those are the ones that were settled before, as dropped. It
// leaves out delivered samples first, so that no loss is hidden.
func (o Outcome) AtMost(n uint64) Outcome {
	over := o.Sum() - min(n, o.Sum())
	take := func(count *uint64) {
		less := min(over, *count)
		*count -= less
		over -= less
	}
	take(&o.Delivered)
	take(&o.Filtered)
	for r := range o.Dropped {
		take(&o.Dropped[r])
	}
	return o
}

// Lost is the number of samples that the receiver does not have: those given up, except Unconfirmed, which may be stored.
func (o Outcome) Lost() uint64 { return o.GivenUp() - o.Dropped[Unconfirmed] }

// Ledger is the account of one target, in samples (floats and histograms, including stale
// markers), since the target began.
//
// Invariant: Appended = Outcome.Sum() + Pending. This is a real check: Pending is the
// total at the head of the log minus the total at the savepoint, both from commit
// records, while the sender counts the outcomes.
type Ledger struct {
	Appended uint64 // committed to the log since this target began
	Outcome
	Pending uint64 // in the log, without a final outcome yet
}

// Balanced reports whether the ledger adds up.
func (l Ledger) Balanced() bool { return l.Appended == l.Sum()+l.Pending }
