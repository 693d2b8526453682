package remotewrite

import (
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/quarantine"
	"hwsagent/remotewrite/reply"
	"hwsagent/wal"
)

// What people see of the quarantine: the status and the dead letters.

// aboutReason is what people are told of a reason.
type aboutReason struct {
	since   time.Time
	answer  client.Answer
	example point // its seq means nothing
	samples uint64
}

// Quarantined says which series of a target are not sent at present because the receiver refuses them for a reason.
type Quarantined struct {
	Reason  string    // a stable key, of [reply.Reason]
	Text    string    // that reason in words for people, as a part of a sentence
	Words   string    // of the receiver, when it last refused one
	Series  int       // how many; those of which no sample came for two hours do not count
	Example string    // the labels of one of them
	Since   time.Time // when the first one was put there
	Samples uint64    // that were dropped meanwhile
}

// dropped notes a sample that was dropped.
func (a *aboutReason) dropped(p point) {
	if a.since.IsZero() { // all of its series were gone for long, and one comes again
		a.since = time.Now()
	}
	a.samples++
	a.example = p
}

// quarantineLetters writes the letters that are due; all says that the queue ends.
func (q *Queue) quarantineLetters(all bool) {
	var letters []Letter
	for _, l := range q.lanes() {
		l.quarantine.do(func(b *quarantine.Book) {
			for r, n := range b.Letters(time.Duration(q.sinceBorn()), all) {
				about := &l.quarantine.about[r]
				letters = append(letters, letterOf(about.example, n, about.answer, wal.Rejected))
			}
		})
	}
	if len(letters) > 0 {
		q.keep(letters, 0)
	}
}

// lanes returns the lanes of the queue: the backlog's is the second one, if there is one.
func (q *Queue) lanes() []*lane {
	if q.back == nil {
		return []*lane{q.live}
	}
	return []*lane{q.live, q.back}
}

// inQuarantine tells which series are in quarantine, by reason. Those of a backlog are those of the live samples, as a
// rule: they count once.
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

// inQuarantine tells which series of the lane are in quarantine, by reason.
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
