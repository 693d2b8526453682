package wal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// writer logs batches into the active segment. How a segment ends is in roll.go, what happens
// after errors in recover.go.
//
// Its methods are called with mu held, but for newBatch, rollback, finish, commit, mark, run, tick,
// syncBefore, rollNow and shut, which take it. sync, salvage and await let it go while an fsync runs: whoever
// calls them looks at the fields anew.
type writer struct {
	// These do not change.
	dir     disk.Directory
	logger  *slog.Logger
	series  *seriesMap
	index   *index
	metrics *metrics
	now     func() time.Time

	// makeRoom is called, with mu held, before a segment begins and when so many bytes more
	// would go beyond the budget. full says why so many more must be refused.
	makeRoom func(bytes int64)
	full     func(bytes int64) error
	fits     func(bytes int64) bool // reports whether so many more are within the bounds already
	config   func() Settings        // at present
	inPlace  func() error           // why a later process would not find the log; nil if it would

	segmentBytes int64
	rolled       chan struct{} // wakes run to sync before; has room for one
	free         sync.Pool     // of *batch

	mu   sync.Mutex // guards everything below, and batches from Commit on
	cond sync.Cond  // of mu: an fsync has ended, or a batch has become durable or has failed

	encoder encoder

	// The active segment; file is nil when there is none.
	file      disk.File
	header    segment.Header
	start     int64  // end of the header
	offset    int64  // end of the last commit written
	epoch     uint32 // names the file in memSeries.epoch; never used twice
	announced int64  // bytes of it that announce series
	newName   bool   // the directory entry is not durable yet
	ends      bool   // it takes no more commits

	next    int    // number of the segment after the active one, if that gets published
	prevID  ID     // Header.PrevID and PrevEnd for segment number next
	prevEnd int64  //
	lost    uint64 // Total - Found of the first segment; 0 once one is durable that says so

	// before is the segment before the active one, while that is not durable; see roll.go.
	//
	// Invariant: while before is not nil, nothing in the active segment is durable.
	before *endedSegment

	// Invariant: durable.Commit <= written.Commit <= number.
	durable Mark   // of the last commit that a power cut cannot take
	written Mark   // of the last commit in the log
	number  uint64 // commit number given out last

	// retained are the batches that are written but not durable, in order. If before is not
	// nil, they are in that segment and the active one, otherwise in the active one, or if
	// there is none, in one that had an error.
	retained      []*batch
	retainedBytes int
	syncing       bool      // an fsync runs without mu: of before, of disk.File, or of one that was given up meanwhile
	unsynced      disk.File // the file whose fsync failed last: no later fsync of it proves anything

	err      error     // why there is no active segment; nil when all is well
	errSince time.Time // of the first error since all was well
	nextTry  time.Time // before this, a Commit does not try a new segment
	closed   bool
}

// retainBytes is how much memory the batches that are not durable yet may take, in
// bytes, before a Commit waits for an fsync.
const retainBytes = 8 << 20

func (w *writer) newBatch() *batch {
	if b, ok := w.free.Get().(*batch); ok {
		return b
	}
	b := &batch{}
	b.reset()
	return b
}

// release gives up one of a batch's references. w.mu must be held, unless the batch
// was never written.
func (w *writer) release(b *batch) {
	if b.refs--; b.refs <= 0 {
		b.reset()
		w.free.Put(b)
	}
}

// rollback gives an open batch up.
func (w *writer) rollback(b *batch) {
	w.finish(b, false)
	w.release(b)
}

func (w *writer) finish(b *batch, committed bool) {
	w.series.mu.Lock()
	defer w.series.mu.Unlock()
	b.finishLocked(w.series, committed)
}

// commit logs b, and returns when b is as safe as the settings ask for.
func (w *writer) commit(b *batch) error {
	if b.empty() {
		w.rollback(b)
		return nil
	}
	began := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := false
	defer func() {
		if !ended {
			w.panicked(b)
		}
	}()
	count := b.count()
	b.refs, b.always = 1, w.config().always()
	err := w.log(b)
	if err == nil && b.always {
		err = w.await(b)
	} else if err == nil && w.retainedBytes > retainBytes {
		_ = w.await(b) // acknowledged all the same: the interval's promise holds
	}
	if err == nil {
		w.index.heal()
	}
	ended = true
	w.finish(b, err == nil)
	w.release(b)
	w.metrics.committed(count, time.Since(began), err)
	return err
}

// log writes b into the active segment, or begins one. It starts over after the active
// segment has ended, and after each wait, during which others may have written or ended it.
func (w *writer) log(b *batch) error {
	for {
		if w.closed {
			return ErrClosed
		}
		if about := int64(b.memory() / 4); w.full(about) != nil {
			w.makeRoom(about) // of what is delivered and kept all the same
			if err := w.full(about); err != nil {
				return w.refuse(err)
			}
		}
		if w.file == nil {
			if w.err != nil && time.Now().Before(w.nextTry) {
				return w.err
			}
			return w.begin(b)
		}
		if w.ends {
			w.end()
			continue
		}
		e := &w.encoder
		e.reset(w.header.Number, w.offset)
		w.enlist(b)
		if err := e.commit(b, w.series, w.epoch); err != nil {
			w.epoch++ // what was built is not written
			return err
		}
		announced := w.announced + e.announced
		if e.pages.End() <= w.segmentLimit(announced) || w.offset <= w.start {
			if err := w.fit(w.header.Segment); err != nil {
				w.epoch++
				return w.refuse(err)
			}
			if err := w.write(w.file, w.offset); err != nil {
				return w.recoverWrite(err, b)
			}
			w.announced = announced
			w.took(b)
			if !b.always {
				w.index.publish(w.header, w.written)
			}
			return nil
		}
		w.epoch++ // what was built is not written
		w.ends = true
	}
}

// fit makes room for what the encoder has built of that segment, or says why there is none.
func (w *writer) fit(id ID) error {
	bytes := w.index.growth(id, w.encoder.pages.End())
	if w.fits(bytes) {
		return nil
	}
	w.makeRoom(bytes)
	return w.full(bytes)
}

// refuse notes that a commit is refused although the disk would take it.
func (w *writer) refuse(err error) error {
	w.index.fail(err, w.now())
	return err
}

// enlist gives b its place after the last commit written. Numbers are given out only
// where the bytes follow at once, so they are in the order of the bytes.
func (w *writer) enlist(b *batch) {
	w.number++
	b.number, b.total = w.number, w.written.Total+b.count()
}

// write writes what the encoder has built.
func (w *writer) write(f disk.File, offset int64) error {
	n, err := f.WriteAt(w.encoder.pages.Buf, offset)
	if err == nil && n < len(w.encoder.pages.Buf) {
		err = errors.New("short write")
	}
	if err != nil {
		return fmt.Errorf("write commit: %w", err)
	}
	return nil
}

// took notes that b is in the active segment, which now ends after it.
func (w *writer) took(b *batch) {
	w.offset = w.encoder.pages.End()
	w.written = w.markOf(b)
	w.retain(b)
}

// retain keeps b until it is durable.
func (w *writer) retain(b *batch) {
	b.state = batchWritten
	b.refs++
	w.retained = append(w.retained, b)
	w.retainedBytes += b.memory()
}

// markOf is the mark of b, at the end of the active segment.
func (w *writer) markOf(b *batch) Mark {
	return Mark{
		Position:  Position{Segment: w.header.Number, Offset: w.offset},
		Log:       w.header.Log,
		SegmentID: w.header.Segment,
		Commit:    b.number,
		Total:     b.total,
	}
}

// segmentLimit is how long a segment may get whose announcements take that many
// bytes: long enough for them not to matter, short enough for the budget to be let
// go in small pieces.
func (w *writer) segmentLimit(announced int64) int64 {
	limit := max(w.segmentBytes, 8*announced)
	if budget := w.config().MaxBytes; budget > 0 {
		limit = min(limit, budget/8)
	}
	return limit
}

// begin makes a new segment the active one. It starts with what is not durable yet, unless
// that is in the segment before it and nothing has failed; then comes b, if that is not nil.
// After an error the segment counts only once it is durable.
func (w *writer) begin(b *batch) error {
	w.makeRoom(w.segmentLimit(0)) // at once, so that few of its commits have to wait for that
	if err := w.tryBegin(b); errors.Is(err, ErrFull) {
		return w.refuse(err)
	} else if errors.Is(err, errHugeCommit) {
		return err // which is b's fault, not the disk's
	} else if err != nil {
		w.failed(err)
		return err
	}
	if w.err != nil {
		w.logger.Info("The log is written again", "segment", segment.Name(w.header.Number), "after", time.Since(w.errSince).Round(time.Millisecond))
		w.err = nil
		w.index.heal()
	}
	return nil
}

func (w *writer) tryBegin(b *batch) error {
	if err := w.inPlace(); err != nil {
		return err
	}
	recovering := w.err != nil
	h, again := w.nextHeader(recovering)
	w.epoch++
	e := &w.encoder
	e.reset(h.Number, 0)
	e.header(h)
	start := e.pages.End()
	for _, r := range again {
		if err := e.commit(r, w.series, w.epoch); err != nil { // not reached: it was written before, and metadata that has grown since is left out
			return err
		}
	}
	if b != nil {
		w.enlist(b)
		if err := e.commit(b, w.series, w.epoch); err != nil {
			return err
		}
	}

	// What was acknowledged is logged again in any case, and so is the empty commit of mark:
	// without it, a target that is ahead of the log would wait, and its queue stay, for ever.
	if err := w.fit(h.Segment); err != nil && !recovering && !(b != nil && b.empty()) {
		return err
	}
	f, err := w.dir.Open(segment.Name(h.Number), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("create segment: %w", err)
	}
	if err = w.write(f, 0); err == nil && recovering {
		err = w.syncFile(f, true)
	}
	if err != nil {
		// The file stays, empty if that can be had, and is overwritten by the next try.
		return errors.Join(err, f.Truncate(0), f.Close())
	}

	w.file, w.header, w.newName = f, h, !recovering
	w.start, w.offset, w.announced = start, e.pages.End(), e.announced
	if n := len(again); n > 0 {
		w.written = w.markOf(again[n-1])
	}
	if b != nil {
		w.took(b)
	}
	switch {
	case recovering:
		w.forgetBefore()
		w.becameDurable(w.written)
	case b != nil && !b.always:
		w.index.publish(w.header, w.written)
	}
	w.metrics.segmentsCreated.Inc()
	return nil
}

// nextHeader is the header of the next segment, and the batches that are logged again at its
// beginning.
func (w *writer) nextHeader(recovering bool) (h segment.Header, again []*batch) {
	h = segment.Header{
		Version: segment.Version, Log: w.written.Log, Number: w.next, CreatedAt: w.now().UnixMilli(),
		PrevID: w.prevID, PrevEnd: w.prevEnd,
		// Nothing durable says yet that a power cut has taken w.lost samples.
		DurableCommit: w.durable.Commit, DurableTotal: w.durable.Total - w.lost,
	}
	_, _ = rand.Read(h.Segment[:]) // it never fails
	if w.before != nil && !recovering {
		last := w.before.end
		h.Commit, h.Total, h.Found = last.Commit, last.Total, last.Total
		return h, nil
	}
	h.Commit, h.Total, h.Found = w.durable.Commit, w.durable.Total, w.durable.Total-w.lost
	if n := len(w.retained); n > 0 {
		h.Relogged = w.retained[n-1].number
	}
	return h, w.retained
}
