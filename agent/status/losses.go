package status

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// LossStatus describes the samples of one target that were given up for one reason in the last 24 hours.
type LossStatus struct {
	Target  string `json:"target,omitempty"` // empty: samples that the log refused and thus no target gets
	Reason  string `json:"reason"`           // as in dropped; "refused": by the log
	Samples uint64 `json:"samples"`
	AtMost  bool   `json:"at_most,omitempty"` // Samples is an upper bound, see lost_at_most of the target

	FirstAt time.Time `json:"first_at,omitzero"` // when the first one was noticed; absent if the agent no longer knows
	LastAt  time.Time `json:"last_at"`           // when the last one was noticed
	Until   time.Time `json:"until,omitzero"`    // how long it causes a warning; absent: for 24 hours after LastAt

	Acknowledged bool `json:"acknowledged"` // acknowledged with hwsagent events ack
}

// The reasons of losses that are in no target's ledger.
const (
	ReasonRefused = "refused"           // by the log
	ReasonUnread  = "unreadable_record" // not known: the record of losses could not be read. Samples is 0
)

// ReasonRejected is the reason of samples that a receiver refused.
const ReasonRejected = "rejected"

// reasonUnconfirmed is the reason of samples that may be stored: they are a warning, but not lost.
const reasonUnconfirmed = "unconfirmed"

// The words for what became of samples that were not delivered, on the page, in the history and in commands.
const (
	OutcomeRefused     = "refused"     // by the receiver or the log
	OutcomeUnconfirmed = "unconfirmed" // they may be stored
	OutcomeLost        = "lost"
)

// Outcome returns the word for what became of the samples.
func (l LossStatus) Outcome() string {
	switch l.Reason {
	case ReasonRejected, ReasonRefused:
		return OutcomeRefused
	case reasonUnconfirmed:
		return OutcomeUnconfirmed
	}
	return OutcomeLost
}

// Ends returns how long a loss is shown.
func (l LossStatus) Ends() time.Time {
	if l.Until.IsZero() {
		return l.LastAt.Add(LossesFor)
	}
	return l.Until
}

// alarms reports whether a loss causes a warning.
func (l LossStatus) alarms(now time.Time) bool {
	return !l.Acknowledged && (l.Samples > 0 || l.Reason == ReasonUnread) && now.Before(l.Ends())
}

// Bound marks the losses whose number is an upper bound. s must have its targets.
func Bound(s Status) {
	for i := range s.Losses {
		l := &s.Losses[i]
		l.AtMost = l.Reason == "budget" && slices.ContainsFunc(s.Targets, func(t TargetStatus) bool { return t.Name == l.Target && t.LostAtMost })
	}
}

// AtMost returns the words before a number that may be an upper bound.
func AtMost(bound bool) string {
	if bound {
		return "at most "
	}
	return ""
}

// lossesOf sums the unacknowledged losses of a target, "" for the log, and says when the last one was of which more must be expected.
func lossesOf(s Status, target string) (sum Undelivered, last time.Time) {
	for _, l := range s.Losses {
		if l.Target != target || l.Reason == reasonUnconfirmed || !l.alarms(s.Now) {
			continue
		}
		sum.add(l)
		if l.LastAt.After(last) && !l.over(s) {
			last = l.LastAt
		}
	}
	return sum, last
}

// sameMoment allows for the rounding of times that were converted after a clock was set.
const sameMoment = 100 * time.Millisecond

// over reports whether the receiver has refused no sample since the agent started, or since an outage of the receiver.
func (l LossStatus) over(s Status) bool {
	if l.Reason != ReasonRejected {
		return false
	}
	if !s.Started.IsZero() && !l.LastAt.After(s.Started.Add(sameMoment)) {
		return true
	}
	return slices.ContainsFunc(s.Targets, func(t TargetStatus) bool {
		return t.Name == l.Target && !t.LastRefusalAt.IsZero() && t.LastErrorAt.After(t.LastRefusalAt)
	})
}

// refusedUntil returns when a receiver refused the last sample; zero if the losses are not refusals of receivers alone.
func refusedUntil(s Status) (last time.Time) {
	for _, l := range s.Losses {
		switch {
		case l.Reason == reasonUnconfirmed || !l.alarms(s.Now):
		case l.Reason != ReasonRejected:
			return time.Time{}
		case l.LastAt.After(last):
			last = l.LastAt
		}
	}
	return last
}

// lossProblems reports each loss with its time, reason, size and remedy.
func lossProblems(s Status) []Problem {
	var all []Problem
	for _, l := range s.Losses {
		if !l.alarms(s.Now) || l.goesOn(s) {
			continue
		}
		all = append(all, lossProblem(s, l))
	}
	return all
}

// goesOn reports whether the log refuses samples still: then its own problem counts them.
func (l LossStatus) goesOn(s Status) bool {
	return l.Reason == ReasonRefused && s.WAL.Error != "" && l.LastAt.After(s.WAL.ErrorSince.Add(-time.Second))
}

// lossProblem returns the problem for one loss.
func lossProblem(s Status, l LossStatus) Problem {
	p := Problem{Severity: SeverityWarning, Subject: "log", Text: l.Text(s.Now), Try: lossTry(s, l)}
	if l.Target != "" {
		p.Subject = "target " + l.Target
	}
	if words, later := refusedWith(s, l); words != "" {
		at := ""
		if !later.IsZero() {
			at = ", at " + Clock(s.Now, later)
		}
		p.Text += ". It said last" + at + ": " + words
	}
	if l.LastAt.After(s.Now.Add(-losingFor)) && l.Samples > 0 && l.Reason != reasonUnconfirmed && !l.endedBy(s) {
		p.Severity = SeverityError
	}
	return p
}

// refusedWith returns the words with which the receiver refused the newest of the samples; "" if they are not known any more. later is
// the time of that refusal if another error came after it, else zero.
func refusedWith(s Status, l LossStatus) (words string, later time.Time) {
	i := slices.IndexFunc(s.Targets, func(t TargetStatus) bool { return t.Name == l.Target })
	if i < 0 || l.Reason != ReasonRejected {
		return "", time.Time{}
	}
	t := s.Targets[i]
	if !t.LastRefusalAt.Equal(t.LastErrorAt) {
		later = t.LastRefusalAt
	}
	return refusal(t), later
}

// writtenTwice reports whether the words of a refusal say that the receiver has another sample of that time or a newer one,
// although the clocks are right.
func writtenTwice(s Status, l LossStatus) bool {
	words, _ := refusedWith(s, l)
	words = strings.ReplaceAll(strings.ToLower(words), "-", " ")
	said := strings.Contains(words, "out of order") || strings.Contains(words, "duplicate")
	i := slices.IndexFunc(s.Targets, func(t TargetStatus) bool { return t.Name == l.Target })
	return said && s.Targets[i].ClockSkew.Abs() <= skewWarn && !recent(s.Now, s.Clock.LastStepAt)
}

// refusal returns the words of a receiver that refused samples, without the status of its answer.
func refusal(t TargetStatus) string {
	words, ok := strings.CutPrefix(Brief(t, t.LastRefusal), "the receiver refuses the samples: ")
	if _, after, more := strings.Cut(words, ": "); ok && more {
		words = after
	}
	if !ok {
		return ""
	}
	return words
}

// endedBy reports whether the receiver refuses nothing more: the loss is over, or it accepts no request at all now.
func (l LossStatus) endedBy(s Status) bool {
	return l.over(s) || l.Reason == ReasonRejected && slices.ContainsFunc(s.Targets, func(t TargetStatus) bool {
		return t.Name == l.Target && (t.State == StateHeld || t.State == StateRetrying)
	})
}

// Last24 returns how many samples of a target were refused and lost in the last 24 hours, acknowledged or not.
func Last24(s Status, target string) (sum Undelivered) {
	for _, l := range s.Losses {
		if l.Target == target && s.Now.Sub(l.LastAt) < LossesFor {
			sum.add(l)
		}
	}
	return sum
}

// Undelivered counts samples that did not arrive. Those without a confirmation are not among them.
type Undelivered struct {
	Refused, Lost uint64
	atMost        bool // Lost is an upper bound
}

func (u *Undelivered) add(l LossStatus) {
	switch l.Outcome() {
	case OutcomeRefused:
		u.Refused += l.Samples
	case OutcomeLost:
		u.Lost += l.Samples
		u.atMost = u.atMost || l.AtMost
	}
}

// going says for a verdict how many samples have been lost and refused, while more must be expected.
func (u Undelivered) going() string {
	lost := "being lost: " + AtMost(u.atMost) + Count(u.Lost)
	switch {
	case u.Lost == 0:
		return "refused: " + Count(u.Refused)
	case u.Refused == 0:
		return lost
	}
	return lost + ", and " + Count(u.Refused) + " refused,"
}

// Plus returns the sum of u and o.
func (u Undelivered) Plus(o Undelivered) Undelivered {
	return Undelivered{u.Refused + o.Refused, u.Lost + o.Lost, u.atMost || o.atMost}
}

// Undelivered returns the samples of a ledger that the receiver does not have.
func (l LedgerStatus) Undelivered() Undelivered {
	refused := min(l.Dropped[ReasonRejected], l.Lost)
	return Undelivered{Refused: refused, Lost: l.Lost - refused}
}

// Any reports whether there are such samples.
func (u Undelivered) Any() bool { return u.Refused+u.Lost > 0 }

// Text says how many samples were lost and how many refused, as in "3 lost, 5 refused".
func (u Undelivered) Text() string { return u.text(Count) }

// text is Text with the first number in the form of count.
func (u Undelivered) text(count func(uint64) string) string {
	lost := AtMost(u.atMost) + count(u.Lost) + " lost"
	switch {
	case u.Lost == 0:
		return count(u.Refused) + " refused"
	case u.Refused == 0:
		return lost
	}
	return lost + ", " + Count(u.Refused) + " refused"
}

// Text reports how many samples were given up, when, and why.
func (l LossStatus) Text(now time.Time) string {
	if l.Reason == ReasonUnread {
		return fmt.Sprintf("the record of losses before %s could not be read: samples that the log refused are missing from it, and losses that were acknowledged are reported again", Clock(now, l.LastAt))
	}
	when := "at " + Clock(now, l.LastAt)
	switch {
	case l.FirstAt.IsZero():
		when = "before " + Clock(now, l.LastAt)
	case l.Samples > 1 && l.LastAt.Sub(l.FirstAt) >= time.Second:
		when = "from " + Clock(now, l.FirstAt) + " to " + Clock(now, l.LastAt) + " (" + Span(l.LastAt.Sub(l.FirstAt)) + ")"
	}
	if l.Reason == reasonUnconfirmed {
		return fmt.Sprintf("%s may be stored or not, given up %s: the receiver failed at them, or refused them after an answer was lost", Samples(l.Samples), when)
	}
	return fmt.Sprintf("%s%s %s %s %s: %s", AtMost(l.AtMost), Samples(l.Samples), were(l.Samples), l.Outcome(), when, lossCause(l))
}

func were(n uint64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// lossCause describes a reason in words.
func lossCause(l LossStatus) string {
	switch l.Reason {
	case "budget":
		return "the log, or the target's max_backlog, was full, and the oldest samples were dropped"
	case "too_old":
		return "they were older than queue_config.sample_age_limit"
	case ReasonRejected:
		return "the receiver does not accept them"
	case "damage":
		return "a part of the log is unreadable"
	case "power_cut":
		return "a power cut or a crash of the system came before they were durable"
	case "future":
		return "they were ahead of the receiver's clock by more than future_limit"
	case "unsupported":
		return "the protocol or the target's settings exclude samples of their kind"
	case "no_tenant":
		return "they belong to no tenant, and there is no default"
	case ReasonRefused:
		return "the log could not take them"
	case reasonUnconfirmed:
		return "they may be stored or not"
	}
	return l.Reason
}

// lossTry returns how to keep the loss from happening again.
func lossTry(s Status, l LossStatus) string {
	const seen = "; `hwsagent events ack` ends this warning"
	switch l.Reason {
	case "budget":
		return "raise wal.max_bytes, or the target's max_backlog, or make room on the disk; bring the target back" + seen
	case "too_old":
		return "raise or remove queue_config.sample_age_limit" + seen
	case ReasonRejected, reasonUnconfirmed:
		if writtenTwice(s, l) {
			return "another sender may send the same series: give each agent its own external_labels; `hwsagent targets rejected " + l.Target + "` shows the samples with the receiver's words" + seen
		}
		return "`hwsagent targets rejected " + l.Target + "` shows them with the receiver's words" + seen
	case "damage":
		return "look at the disk: `hwsagent wal inspect`, dmesg, smartctl" + seen
	case "power_cut":
		return "set wal.sync: always to prevent even that" + seen
	case "future":
		return tryClock + seen
	case "unsupported":
		return "protobuf_message and send_native_histograms of the target say which kinds are sent; drop the others by write_relabel_configs" + seen
	case "no_tenant":
		return "write a default under hwsagent.tenant of the target" + seen
	case ReasonRefused:
		return "make room or repair the file system" + seen
	case ReasonUnread:
		return "look at the disk (dmesg, smartctl); the agent's log has the error" + seen
	}
	return "`hwsagent events ack` ends this warning"
}
