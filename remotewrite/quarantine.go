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
	"hwsagent/wal/queue"
)

// Series that the receiver refuses for a stated reason, above all a limit of series, leave the batches. Package
// quarantine decides which ones, and for how long; this file sends the requests and records the outcomes:
//
//	batch ── series in quarantine ── dropped as rejected; one in a minute is sent alone, after the others
//	      ├─ new series ──────────── sent after the others, once a reason is known; refused together: a trial
//	      └─ others ──────────────── sent as usual

// quarantined is the quarantine of one lane, because each lane has its own series. Safe for concurrent use.
type quarantined struct {
	any, known atomic.Bool // copied from the book, to be read without its lock

	mu    sync.Mutex
	book  *quarantine.Book
	about [quarantine.MaxReasons]aboutReason
	doubt map[givenup.Key]uint64 // commits of probes whose answer was lost: they may be stored
}

// forget starts a new book.
func (q *quarantined) forget(seed uint64) {
	q.do(func(*quarantine.Book) {
		q.book, q.about, q.doubt = quarantine.NewBook(seed), [quarantine.MaxReasons]aboutReason{}, nil
	})
}

// do calls f with the book, then updates any and known.
func (q *quarantined) do(f func(b *quarantine.Book)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f(q.book)
	q.any.Store(q.book.Any())
	q.known.Store(q.book.AnyKnown())
}

// reasonOf returns the reason for which an answer puts series into quarantine, if it has one.
func reasonOf(a client.Answer) (quarantine.Reason, bool) {
	return quarantine.Reason(a.Row), a.OfSeries() && a.Row < quarantine.MaxReasons
}

// inQuarantine reports whether the series is in quarantine.
func (s *series) inQuarantine() bool { return s.newest() == noneTakenQuarantined }

// leaveOut drops the samples of quarantined series from a batch. It returns the others, in place, and the probes.
func (s *shard) leaveOut(points []point, stored bool) (others, probes []point) {
	if !slices.ContainsFunc(points, func(p point) bool { return p.series.inQuarantine() }) {
		return points, nil
	}
	q := &s.q.quarantine
	var drop []point
	var after []point // in drop, behind a probe of their series
	var again []point // a discarded window dropped and counted them
	others = points[:0]
	now, acked := s.q.sinceBorn(), s.q.acked()
	q.do(func(b *quarantine.Book) {
		before := droppedBefore(points)
		for _, p := range points {
			if !p.series.inQuarantine() {
				others = append(others, p)
				continue
			}
			if p.kind == exemplarPoint {
				drop = append(drop, p) // it is counted; it has no outcome
				continue
			}
			mark, what := quarantine.Mark(p.series.known.in), quarantine.Drop
			commit := s.w.commitOf(p.seq)
			switch {
			case q.doubt[keyOf(p)] > 0:
				what = quarantine.Probe
			case stored:
				mark = b.Unsure(mark, commit)
			default:
				mark, what = b.Meet(mark, commit, time.Duration(now))
			}
			switch what {
			case quarantine.Release:
				s.q.givenUp.Released(p.series.hash, quarantine.Mark(p.series.known.in).Commit(), acked)
				p.series.known = nil
				others = append(others, p)
				continue
			case quarantine.Probe:
				probes = append(probes, p)
			case quarantine.Drop:
				if commit <= before[p.series.hash] {
					again = append(again, p)
					continue
				}
				drop = append(drop, p)
				q.about[mark.Reason()].dropped(p)
				if slices.ContainsFunc(probes, func(probe point) bool { return probe.series.hash == p.series.hash }) {
					after = append(after, p) // the mark would record the probe as dropped, too
					continue
				}
			}
			p.series.known.in = uint64(mark)
		}
	})
	clear(points[len(others):])
	s.w.remember(after, queue.Rejected)
	s.drop(drop)
	s.w.settleAll(again, queue.One(queue.Rejected))
	return others, probes
}

// droppedBefore returns the last commit of which samples were dropped, by quarantined series.
func droppedBefore(points []point) map[uint64]uint64 {
	commits := make(map[uint64]uint64)
	for i := range points {
		if s := points[i].series; s.inQuarantine() {
			commits[s.hash] = quarantine.Mark(s.known.in).Commit()
		}
	}
	return commits
}

// drop settles samples of quarantined series as rejected.
func (s *shard) drop(points []point) {
	s.q.metrics.Failed(count(points))
	s.w.settleAll(points, queue.One(queue.Rejected))
}

// probe sends a sample of a quarantined series alone. The error is ctx's.
func (s *shard) probe(ctx context.Context, p point) error {
	q, mark := &s.q.quarantine, p.series.newestIn()
	if s.doubts(p) {
		return s.deliverProbe(ctx, p)
	}
	p.series.known = nil // during the probe
	l := &parcel{points: []point{p}}
	f, a, err := s.try(ctx, l, parts)
	if err == nil && f == settled && p.series.newest() > noneTakenQuarantined {
		s.q.leftQuarantine(p.series.hash, quarantine.Mark(mark))
		return nil
	}
	p.series.known = &known{newest: noneTakenQuarantined, in: mark}
	switch {
	case err == nil && f == settled:
		return nil // it was not sent, because it is too old by now
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
		p.series.known.in = uint64(m)
		about := &q.about[m.Reason()]
		if about.dropped(p); err == nil {
			about.answer = a
		}
	})
	s.drop([]point{p})
	return nil
}

// doubts reports whether a sample was sent as a probe and may be stored.
func (s *shard) doubts(p point) (is bool) {
	q := &s.q.quarantine
	q.do(func(*quarantine.Book) { is = q.doubt[keyOf(p)] > 0 })
	return is
}

// deliverProbe settles a probe that may be stored, like any other sample in doubt. The error is ctx's.
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

// leftQuarantine records that a sample of a quarantined series was accepted.
func (l *lane) leftQuarantine(hash uint64, mark quarantine.Mark) {
	l.quarantine.do(func(b *quarantine.Book) { b.Probed(mark, 0, true, time.Duration(l.sinceBorn())) })
	l.givenUp.Released(hash, mark.Commit(), l.acked())
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
	p.series.known = &known{newest: noneTakenQuarantined, in: uint64(b.Put(r, commit, now))}
}

// refusedAlone records that a sample of a series without an accepted sample was refused alone, with proof. If the
// reason is a known one, the series goes into quarantine.
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

// acked returns the last commit for which the savepoint has the outcomes of the lane's samples.
func (l *lane) acked() uint64 {
	reach, _ := l.source.Reach()
	return reach.Acked.Commit
}
