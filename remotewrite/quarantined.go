package remotewrite

import (
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/quarantine"
	"hwsagent/remotewrite/reply"
	"hwsagent/wal/queue"
)

// This file shows the quarantine to users: in the status, and in dead letters.

// aboutReason holds the facts about a reason that users see.
type aboutReason struct {
	since   time.Time
	answer  client.Answer
	example point // its seq is meaningless
	samples uint64
}

// Quarantined describes the series of a target that are not sent at present because the receiver refuses them for one
// reason.
type Quarantined struct {
	Reason  string    // a stable key, from [reply.Reason]
	Text    string    // the reason in words, as a part of a sentence
	Words   string    // the receiver's text when it last refused one
	Series  int       // number of series, except those without a sample for two hours
	Example string    // the labels of one of them
	Since   time.Time // when the first one went into quarantine
	Samples uint64    // dropped since then
}

// dropped records a dropped sample.
func (a *aboutReason) dropped(p point) {
	if a.since.IsZero() { // all its series had been gone for long, and one came back
		a.since = time.Now()
	}
	a.samples++
	a.example = p
}

// quarantineLetters writes the dead letters that are due; all writes the others, too, because the queue or the backlog
// ends.
func (q *Queue) quarantineLetters(all bool) {
	var letters []Letter
	for _, l := range q.lanes() {
		l.quarantine.do(func(b *quarantine.Book) {
			for r, n := range b.Letters(time.Duration(q.sinceBorn()), all) {
				about := &l.quarantine.about[r]
				letters = append(letters, letterOf(about.example, n, about.answer, queue.Rejected))
			}
		})
	}
	if len(letters) > 0 {
		q.keep(letters...)
	}
}

// lanes returns the lanes of the queue; the backlog's comes second, if there is one.
func (q *Queue) lanes() []*lane {
	if q.back == nil {
		return []*lane{q.live}
	}
	return []*lane{q.live, q.back}
}

// inQuarantine returns the quarantined series by reason. The series of a backlog are usually those of the live samples,
// so they count once.
func (q *Queue) inQuarantine() []Quarantined {
	var all []Quarantined
	for _, l := range q.lanes() {
		for _, x := range l.inQuarantine() {
			i := slices.IndexFunc(all, func(y Quarantined) bool { return y.Reason == x.Reason })
			if i < 0 {
				all = append(all, x)
				continue
			}
			y := &all[i]
			y.Series, y.Samples = max(y.Series, x.Series), y.Samples+x.Samples
			if x.Since.Before(y.Since) {
				y.Since = x.Since
			}
		}
	}
	return all
}

// inQuarantine returns the quarantined series of the lane, by reason.
func (l *lane) inQuarantine() []Quarantined {
	if !l.quarantine.any.Load() {
		return nil
	}
	var all []Quarantined
	l.quarantine.do(func(b *quarantine.Book) {
		counts := b.Counts(time.Duration(l.sinceBorn()))
		for r := range l.quarantine.about {
			about, n := &l.quarantine.about[r], counts[quarantine.Reason(r)]
			if n == 0 {
				about.since, about.samples = time.Time{}, 0
				continue
			}
			all = append(all, Quarantined{
				Reason: reply.Reason(r).String(), Text: reply.Reason(r).Text(), Words: about.answer.Text,
				Series: n, Example: about.example.series.labels().String(), Since: about.since, Samples: about.samples,
			})
		}
	})
	return all
}
