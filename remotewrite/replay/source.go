package replay

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/tenant"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// Archive is the log to read; *wal.Archive implements it.
type Archive interface {
	Next() (*wal.Entry, error) // the entry is valid until the next call; io.EOF at the end
	Head() wal.Mark            // the last commit of the archive
}

// source gives a queue the selected samples of an archive, with their final labels. It implements remotewrite.Source. Its
// marks have the numbers of the log's commits, and totals that count the selected samples only. It keeps the entries
// without an outcome in memory, as many as a queue's window has: an archive cannot go back.
type source struct {
	o       *Options
	archive Archive
	series  seriesForms
	mayRead time.Time     // the rate limit allows no entry before; used by the reader
	done    chan struct{} // closed when all selected samples have their outcome

	mu      sync.Mutex
	count   Count
	seen    map[uint64]bool // the selected series, by hash
	kept    []*wal.Entry    // those after acked, oldest first
	next    int             // the one that Next returns
	read    wal.Mark        // the last commit read, with the archive's total
	last    wal.Mark        // of the last selected entry
	acked   wal.Mark
	ended   bool  // nothing is left to read
	stopped bool  // no entry is handed out any more
	broken  error // why the archive was not read to its end
}

func newSource(o *Options) *source {
	s := &source{
		o: o, archive: o.Archive, done: make(chan struct{}), seen: map[uint64]bool{},
		series: seriesForms{labels: config.NewRelabeler(o.ExternalLabels, o.Config.WriteRelabelConfigs), matchers: o.Matchers},
		acked:  wal.Mark{Commit: o.After}, last: wal.Mark{Commit: o.After},
	}
	if o.Config.Role() != config.RoleNone {
		s.series.tenant = tenant.NewFilter(&o.Config, nil)
	}
	return s
}

// Next implements remotewrite.Source. After the last entry it ends the window once, so that the queue sends what it holds.
func (s *source) Next(ctx context.Context) (*wal.Entry, error) {
	if wait := time.Until(s.mayRead); wait > 0 {
		if err := gate.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
	for {
		e, err := s.step()
		if err == nil && s.o.Progress != nil {
			s.o.Progress(s.counts())
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errWaits):
			<-ctx.Done()
			return nil, ctx.Err()
		case err != nil || e != nil:
			return e, err
		}
	}
}

// errWaits means that every entry was handed out.
var errWaits = errors.New("nothing is left to send")

// step returns the next entry with selected samples; it is nil if the commit that it read has none.
func (s *source) step() (*wal.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.ended && s.next > len(s.kept) {
		return nil, errWaits
	}
	if s.next == len(s.kept) {
		e, err := s.archive.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.broken = err
			}
			s.ended = true
			s.next++
			s.finish()
			return nil, wal.ErrCaughtUp
		}
		s.read = e.End
		to := s.pick(e)
		if to == nil {
			return nil, nil
		}
		s.last = to.End
		s.kept = append(s.kept, to)
	}
	e := s.kept[s.next]
	s.next++
	if s.o.Rate > 0 {
		s.mayRead = time.Now().Add(time.Duration(min(float64(e.Count())/s.o.Rate*float64(time.Second), math.MaxInt64/4)))
	}
	return e, nil
}

// pick copies the selected samples of an entry; nil if there are none.
func (s *source) pick(e *wal.Entry) *wal.Entry {
	from, to := s.o.From.UnixMilli(), s.o.To.UnixMilli()
	if e.Count() == 0 || e.MaxT < from || e.MinT >= to {
		return nil
	}
	picked := &wal.Entry{MinT: e.MinT, MaxT: e.MaxT}
	selects := func(of *wal.Series, t int64) *wal.Series {
		if t < from || t >= to {
			return nil
		}
		form := s.series.get(of)
		switch {
		case form.sent == nil:
			s.count.Filtered++
			return nil
		case !form.matches:
			return nil
		}
		s.note(form.hash, t)
		return form.sent
	}
	for _, x := range e.Samples {
		if x.Series = selects(x.Series, x.T); x.Series != nil {
			picked.Samples = append(picked.Samples, x)
		}
	}
	for _, x := range e.Histograms {
		if x.Series = selects(x.Series, x.T); x.Series == nil {
			continue
		}
		if x.H != nil { // the archive owns the value
			x.H = x.H.Copy()
		} else {
			x.FH = x.FH.Copy()
		}
		picked.Histograms = append(picked.Histograms, x)
	}
	if picked.Count() == 0 {
		return nil
	}
	picked.End = wal.Mark{Commit: e.End.Commit, Total: s.last.Total + picked.Count()}
	return picked
}

// note counts a selected sample. s.mu is held.
func (s *source) note(hash uint64, t int64) {
	c, at := &s.count, time.UnixMilli(t)
	c.Selected++
	s.seen[hash] = true
	if c.Oldest.IsZero() || at.Before(c.Oldest) {
		c.Oldest = at
	}
	if at.After(c.Newest) {
		c.Newest = at
	}
}

// finish closes done if every selected sample has its outcome. s.mu is held.
func (s *source) finish() {
	if s.ended && s.acked.Total == s.last.Total {
		select {
		case <-s.done:
		default:
			close(s.done)
		}
	}
}

// stop makes Next return no entry any more.
func (s *source) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

// Rewind implements remotewrite.Source.
func (s *source) Rewind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = 0
}

// Release implements remotewrite.Source. The entries stay: they cannot be read again.
func (s *source) Release() {}

// Reserve implements remotewrite.Source: a replay is not durable.
func (s *source) Reserve(wal.Mark) error { return nil }

// Advance implements remotewrite.Source.
func (s *source) Advance(to wal.Mark, o queue.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, unconfirmed, unsupported := &s.count, o.Dropped[queue.Unconfirmed], o.Dropped[queue.Unsupported]
	c.Delivered += o.Sum() - o.Filtered - o.GivenUp()
	c.Filtered += o.Filtered
	c.Unconfirmed += unconfirmed
	c.Unsupported += unsupported
	c.Refused += o.GivenUp() - unconfirmed - unsupported
	s.acked = to
	n := 0
	for n < len(s.kept) && s.kept[n].End.Commit <= to.Commit {
		n++
	}
	s.kept, s.next = append(s.kept[:0], s.kept[n:]...), max(s.next-n, 0)
	s.finish()
}

// Reach implements remotewrite.Source. Any sample may be stored already: the target's queue or another replay sent it.
func (s *source) Reach() (queue.Reach, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return queue.Reach{Acked: s.acked, High: s.headMark()}, true
}

// Head implements remotewrite.Source. Samples of other series count until they are read.
func (s *source) Head() wal.Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headMark()
}

func (s *source) headMark() wal.Mark {
	if s.ended || s.stopped {
		return s.last
	}
	head := s.archive.Head()
	return wal.Mark{Commit: head.Commit, Total: s.last.Total + head.Total - min(s.read.Total, head.Total)}
}

// counts returns the result so far.
func (s *source) counts() Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.count
	c.Series, c.Done = len(s.seen), s.acked.Commit
	if s.acked.Total == s.last.Total {
		c.Done = max(c.Done, s.read.Commit)
	}
	return c
}

// form is a series of the log and what the target gets of it.
type form struct {
	from    *wal.Series
	sent    *wal.Series // with the final labels; nil: the target does not get the series
	hash    uint64      // of its labels
	matches bool        // all matchers match
}

// seriesForms derives the form of each series once.
type seriesForms struct {
	labels   *config.Relabeler
	tenant   *tenant.Filter // excludes series of other targets of the entry; nil: no filter
	matchers []*labels.Matcher
	slots    []form // by wal.Series.Slot
}

func (f *seriesForms) get(s *wal.Series) *form {
	for s.Slot() >= len(f.slots) {
		f.slots = append(f.slots, form{})
	}
	at := &f.slots[s.Slot()]
	if at.from != s {
		*at = f.derive(s)
	}
	return at
}

func (f *seriesForms) derive(s *wal.Series) form {
	dropped := form{from: s}
	b := f.labels.Apply(s.Labels())
	if b == nil {
		return dropped
	}
	if f.tenant != nil {
		if _, mine := f.tenant.Sort(b); !mine {
			return dropped
		}
	}
	final := b.Labels()
	to := form{from: s, sent: wal.NewSeries(s.Slot(), final, s.About), hash: final.Hash(), matches: true}
	for _, m := range f.matchers {
		to.matches = to.matches && m.Matches(final.Get(m.Name))
	}
	return to
}
