package remotewrite

import (
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/quarantine"
	"hwsagent/remotewrite/reply"
	"hwsagent/wal/queue"
)

// aboutReason holds the facts about a reason that users see.
type aboutReason struct {
	since   time.Time
	answer  client.Answer
	example point // its seq is meaningless
	samples uint64
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

// inQuarantine returns the quarantined series by reason.
func (q *Queue) inQuarantine() (all []quarantine.Status) {
	for _, l := range q.lanes() {
		for _, x := range l.inQuarantine() {
			all = quarantine.Merge(all, x)
		}
	}
	return all
}

// inQuarantine returns the quarantined series of the lane, by reason.
func (l *lane) inQuarantine() []quarantine.Status {
	if !l.quarantine.any.Load() {
		return nil
	}
	var all []quarantine.Status
	l.quarantine.do(func(b *quarantine.Book) {
		counts := b.Counts(time.Duration(l.sinceBorn()))
		for r := range l.quarantine.about {
			about, n := &l.quarantine.about[r], counts[quarantine.Reason(r)]
			if n == 0 {
				about.since, about.samples = time.Time{}, 0
				continue
			}
			all = append(all, quarantine.Status{
				Reason: reply.Reason(r).String(), Text: reply.Reason(r).Text(), Words: about.answer.Text,
				Series: n, Example: about.example.series.labels().String(), Since: about.since, Samples: about.samples,
			})
		}
	})
	return all
}
