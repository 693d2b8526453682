package remotewrite

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/givenup"
	"hwsagent/remotewrite/quarantine"
	"hwsagent/remotewrite/reply"
	"hwsagent/wal"
)

// Series that the receiver refuses in words that say why, a limit of series above all, leave the batches. Package
// quarantine decides which and for how long; this file asks the receiver, and gives the samples their outcome:
//
//	batch ── series in quarantine ── dropped as rejected; one in a minute is sent alone, after the others
//	      ├─ new series ──────────── sent after the others, once a reason is known; refused together: a trial
//	      └─ others ──────────────── sent as ever

// quarantined is the quarantine of a lane: a lane has series of its own. Safe for concurrent use.
type quarantined struct {
	any, known atomic.Bool // as in the book, without its lock

	mu    sync.Mutex
	book  *quarantine.Book
	about [quarantine.MaxReasons]aboutReason
	doubt map[givenup.Key]uint64 // probes whose answer was lost, and their commits: they may be stored
}

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

// forget begins a new book.
func (q *quarantined) forget(seed uint64) {
	q.do(func(*quarantine.Book) {
		q.book, q.about, q.doubt = quarantine.NewBook(seed), [quarantine.MaxReasons]aboutReason{}, nil
	})
}

// do works with the book and keeps what is read without its lock.
func (q *quarantined) do(f func(b *quarantine.Book)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f(q.book)
	q.any.Store(q.book.Any())
	q.known.Store(q.book.AnyKnown())
}

// reasonOf is the reason for which an answer's samples can go into quarantine, if there is one.
func reasonOf(a client.Answer) (quarantine.Reason, bool) {
	r := a.Reply()
	return quarantine.Reason(r.Reason), r.Kind == reply.Bad && r.Reason.OfSeries() && r.Reason < quarantine.MaxReasons
}

// inQuarantine reports whether the series is in quarantine.
func (s *series) inQuarantine() bool { return s.newest == noneTakenQuarantined }

// leaveOut drops the samples of a batch that are of series in quarantine, and returns the others, in place, and the probes.
func (s *shard) leaveOut(points []point, stored bool) (others, probes []point) {
	if !slices.ContainsFunc(points, func(p point) bool { return p.series.inQuarantine() }) {
		return points, nil
	}
	q := &s.q.quarantine
	var drop, after []point // after: those of drop that follow a probe of their series
	others = points[:0]
	now, acked := s.q.sinceBorn(), s.q.acked()
	q.do(func(b *quarantine.Book) {
		for _, p := range points {
			if !p.series.inQuarantine() {
				others = append(others, p)
				continue
			}
			if p.kind == exemplarPoint {
				continue
			}
			mark, what := quarantine.Mark(p.series.newestIn), quarantine.Drop
			switch commit := s.w.commitOf(p.seq); {
			case q.doubt[keyOf(p)] > 0:
				what = quarantine.Probe
			case stored:
				mark = b.Unsure(mark, commit)
			default:
				mark, what = b.Meet(mark, commit, time.Duration(now))
			}
			switch what {
			case quarantine.Release:
				s.q.givenUp.Released(p.series.hash, quarantine.Mark(p.series.newestIn).Commit(), acked)
				p.series.newest, p.series.newestIn = noneTaken, 0
				others = append(others, p)
				continue
			case quarantine.Probe:
				probes = append(probes, p)
			case quarantine.Drop:
				drop = append(drop, p)
				q.about[mark.Reason()].dropped(p)
				if slices.ContainsFunc(probes, func(probe point) bool { return probe.series.hash == p.series.hash }) {
					after = append(after, p) // the mark would say that the probe was dropped, too
					continue
				}
			}
			p.series.newestIn = uint64(mark)
		}
	})
	clear(points[len(others):])
	s.w.remember(after, wal.Rejected)
	s.drop(drop)
	return others, probes
}

// drop gives samples of series in quarantine their outcome.
func (s *shard) drop(points []point) {
	s.q.metrics.Failed(count(points))
	s.w.settleAll(points, one(wal.Rejected))
}

// probe sends a sample of a series in quarantine alone. The error is ctx's.
func (s *shard) probe(ctx context.Context, p point) error {
	q, mark := &s.q.quarantine, p.series.newestIn
	if s.doubts(p) {
		return s.deliverProbe(ctx, p)
	}
	p.series.newest = noneTaken // so long
	l := &parcel{points: []point{p}}
	f, a, err := s.try(ctx, l, parts)
	if err == nil && f == settled && p.series.newest > noneTakenQuarantined {
		s.q.leftQuarantine(p.series.hash, quarantine.Mark(mark))
		return nil
	}
	p.series.newest, p.series.newestIn = noneTakenQuarantined, mark
	switch {
	case err == nil && f == settled:
		return nil // it was not sent: it is too old by now
	case l.unsure || l.attempts > 0 && s.sending.Err() != nil:
		acked, commit := s.q.acked(), s.w.commitOf(p.seq)
		q.do(func(*quarantine.Book) {
			maps.DeleteFunc(q.doubt, func(_ givenup.Key, of uint64) bool { return of <= acked })
			if q.doubt == nil {
				q.doubt = make(map[givenup.Key]uint64)
			}
			q.doubt[keyOf(p)] = commit
		})
		if err == nil || errors.Is(err, errHeld) {
			return s.deliverProbe(ctx, p)
		}
		return err
	case err != nil && !errors.Is(err, errHeld):
		return err
	}
	q.do(func(b *quarantine.Book) {
		m := b.Probed(quarantine.Mark(mark), s.w.commitOf(p.seq), false, time.Duration(s.q.sinceBorn()))
		p.series.newestIn = uint64(m)
		about := &q.about[m.Reason()]
		if about.dropped(p); err == nil {
			about.answer = a
		}
	})
	s.drop([]point{p})
	return nil
}

// doubts reports whether a sample was sent as a probe, and may be stored.
func (s *shard) doubts(p point) (is bool) {
	q := &s.q.quarantine
	q.do(func(*quarantine.Book) { is = q.doubt[keyOf(p)] > 0 })
	return is
}

// deliverProbe brings a probe that may be stored to its outcome, as any other sample that may be. The error is ctx's.
func (s *shard) deliverProbe(ctx context.Context, p point) error {
	q := &s.q.quarantine
	err := s.deliver(ctx, &parcel{points: []point{p}, stored: !s.q.behind})
	if err == nil {
		q.do(func(*quarantine.Book) { delete(q.doubt, keyOf(p)) })
	}
	return err
}

func (s *shard) probeEach(ctx context.Context, probes []point) error {
	for _, p := range probes {
		if err := s.probe(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// leftQuarantine says that a sample of a series in quarantine was taken.
func (l *lane) leftQuarantine(hash uint64, mark quarantine.Mark) {
	l.quarantine.do(func(b *quarantine.Book) { b.Probed(mark, 0, true, time.Duration(l.sinceBorn())) })
	l.givenUp.Released(hash, mark.Commit(), l.acked())
}

// tryNewcomers decides about samples of series of which none was taken, which were refused together with the answer a. It
// reports whether all went into quarantine; else those that were taken leave the parcel. The error is ctx's.
func (s *shard) tryNewcomers(ctx context.Context, l *parcel, a client.Answer) (all bool, err error) {
	r, ok := reasonOf(a)
	if !ok || !s.q.quarantine.knows(r) {
		return false, nil
	}
	first := firstOfEach(l.points)
	_, passed, err := s.trial(ctx, l, first, func(b *quarantine.Book) *quarantine.Trial {
		return b.Try(r, len(first), time.Duration(s.q.sinceBorn()))
	})
	if err != nil || !passed {
		return false, err
	}
	s.intoQuarantine(l.points, r, a)
	return true, nil
}

// tryDoubted does that for samples that may be stored already. They are never sent together, so more of them are asked for alone.
func (s *shard) tryDoubted(ctx context.Context, l *parcel) error {
	if !s.q.quarantine.known.Load() {
		return nil
	}
	apart := apartOf(l.points, true)
	var newcomers, others []point
	for _, p := range l.points {
		if apart[p.series.hash] == newcomer {
			newcomers = append(newcomers, p)
		} else {
			others = append(others, p)
		}
	}
	first := firstOfEach(newcomers)
	if len(first) == 0 {
		return nil
	}
	a, passed, err := s.trial(ctx, l, first, func(b *quarantine.Book) *quarantine.Trial { return b.TryDoubted(len(first)) })
	if err != nil || !passed {
		return err
	}
	r, _ := reasonOf(a)
	s.intoQuarantine(newcomers, r, a)
	l.points = others
	return nil
}

// trial asks for samples of some series alone, of which it gets the first. It has passed if all are refused for reasons that are known, and then a control is taken;
// the answer is the last refusal. Samples that are taken leave the parcel. The error is ctx's.
func (s *shard) trial(ctx context.Context, l *parcel, first []point, begin func(*quarantine.Book) *quarantine.Trial) (last client.Answer, passed bool, err error) {
	q := &s.q.quarantine
	var trial *quarantine.Trial
	q.do(func(b *quarantine.Book) { trial = begin(b) })
	for i, ok := trial.Next(); ok; i, ok = trial.Next() {
		f, a, err := s.try(ctx, &parcel{points: []point{first[i]}}, parts)
		switch {
		case err != nil && !errors.Is(err, errHeld):
			return a, false, err
		case err == nil && f == settled:
			l.points = slices.DeleteFunc(l.points, first[i].same)
		}
		r, known := reasonOf(a)
		if known = known && err == nil && f == refused && q.knows(r); known {
			last = a
			q.do(func(b *quarantine.Book) { b.Stop(r, time.Duration(s.q.sinceBorn())) })
		}
		trial.Tell(known)
	}
	if !trial.Passed() {
		return last, false, nil
	}
	passed, err = s.takesControl(ctx)
	return last, passed, err
}

// takesControl reports whether the target takes a sample that it took before. The error is ctx's.
func (s *shard) takesControl(ctx context.Context) (bool, error) {
	sample, ok, err := s.controlSample(ctx)
	if err != nil || !ok {
		return err == nil && sample.series != nil, err // if so, another shard has delivered meanwhile
	}
	taken, _, err := s.control(ctx, sample)
	return taken, err
}

// intoQuarantine puts the series of samples into quarantine and drops the samples.
func (s *shard) intoQuarantine(points []point, r quarantine.Reason, a client.Answer) {
	points = s.withoutExemplars(points)
	q := &s.q.quarantine
	q.do(func(b *quarantine.Book) {
		for i := range points {
			q.put(b, &points[i], s.w.commitOf(points[i].seq), time.Duration(s.q.sinceBorn()), r, a)
		}
		b.Dropped(r, len(points))
		q.about[r].samples += uint64(len(points))
	})
	s.q.quarantineLetters(false)
	s.drop(points)
}

// put puts the series of a sample into quarantine.
func (q *quarantined) put(b *quarantine.Book, p *point, commit uint64, now time.Duration, r quarantine.Reason, a client.Answer) {
	if p.series.inQuarantine() {
		return
	}
	about := &q.about[r]
	if !b.Has(r) {
		*about = aboutReason{since: time.Now()}
	}
	about.answer, about.example = a, *p
	p.series.newest, p.series.newestIn = noneTakenQuarantined, uint64(b.Put(r, commit, now))
}

// refusedAlone notes that a sample of a series of which none was taken was refused alone, with proof. If that is a known reason, the
// series goes into quarantine.
func (s *shard) refusedAlone(p point, a client.Answer) (put bool) {
	r, ok := reasonOf(a)
	if !ok || p.series.inQuarantine() {
		return ok
	}
	q := &s.q.quarantine
	q.do(func(b *quarantine.Book) {
		b.Refused(r, p.series.hash)
		if put = b.Known(r); put {
			b.Stop(r, time.Duration(s.q.sinceBorn()))
			q.put(b, &p, s.w.commitOf(p.seq), time.Duration(s.q.sinceBorn()), r, a)
		}
	})
	return put
}

func (q *quarantined) knows(r quarantine.Reason) (known bool) {
	q.do(func(b *quarantine.Book) { known = b.Known(r) })
	return known
}

// dropped notes a sample that was dropped.
func (a *aboutReason) dropped(p point) {
	if a.since.IsZero() { // all of its series were gone for long, and one comes again
		a.since = time.Now()
	}
	a.samples++
	a.example = p
}

// firstOfEach returns the first sample of each series.
func firstOfEach(points []point) []point {
	var first []point
	seen := make(map[uint64]bool)
	for _, p := range points {
		if p.kind != exemplarPoint && !seen[p.series.hash] {
			seen[p.series.hash] = true
			first = append(first, p)
		}
	}
	return first
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

// acked is up to which commit the lane's samples have their outcome in the savepoint.
func (l *lane) acked() uint64 {
	reach, _ := l.source.Reach()
	return reach.Acked.Commit
}
