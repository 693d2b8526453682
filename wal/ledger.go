package wal

import "fmt"

// Reason says why a sample left a target's ledger without having been delivered by
// an ordinary 2xx.
type Reason uint8

// The reasons. Their order is part of the savepoint format: append only.
const (
	Budget      Reason = iota // the disk budget, max_backlog or an expired orphan queue let it go
	TooOld                    // older than queue_config.sample_age_limit
	Rejected                  // refused by the receiver; kept as a dead letter
	Unconfirmed               // a refused batch whose bad samples could not be isolated within the limit
	Resent                    // sent before a crash and known to be stored since: delivered, not lost
	Damage                    // the log's page that held it is unreadable
	PowerCut                  // acknowledged within the sync interval before a power cut
	Future                    // ahead of the target's own clock by more than future_limit
	Unsupported               // a kind of sample that the protocol or the entry's settings exclude
	Skipped                   // a person let it go: hwsagent targets skip
	NoTenant                  // of an entry with tenants: nobody's, and there is no default

	NumReasons // how many reasons there are; not a reason
)

// reasonNames are the reasons as metrics, JSON and the page spell them.
func (r Reason) String() string {
	names := [NumReasons]string{"budget", "too_old", "rejected", "unconfirmed", "resent", "damage", "power_cut", "future", "unsupported", "skipped", "no_tenant"}
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

// Sum is the number of samples that o accounts for.
func (o Outcome) Sum() uint64 {
	n := o.Delivered + o.Filtered
	for _, d := range o.Dropped {
		n += d
	}
	return n
}

// Lost is the number of samples that no receiver has: every drop but Resent.
func (o Outcome) Lost() uint64 {
	var n uint64
	for r, d := range o.Dropped {
		if Reason(r) != Resent {
			n += d
		}
	}
	return n
}

// Ledger is one target's account, in samples (floats and histograms, stale markers
// included), since the target was first known to the log.
//
// Invariant: Appended = Outcome.Sum() + Pending. It is no tautology: Pending is the
// log head's total minus the total at the savepoint, both from commit records; the
// outcomes are counted by the sender.
type Ledger struct {
	Appended uint64 // given to the log since this target began
	Outcome
	Pending uint64 // in the log, without a final outcome yet
}

// Balanced reports whether the ledger adds up.
func (l Ledger) Balanced() bool { return l.Appended == l.Sum()+l.Pending }
