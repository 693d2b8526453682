package wal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"hwsagent/internal/spare"
	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// writer logs batches into the active segment. See roll.go for the end of a segment, and
// recover.go for errors.
//
// Callers of its methods hold mu, except for newBatch, rollback, finish, commit, mark, run, tick,
// syncBefore, rollNow and shut. sync and await release mu during an fsync, so their callers must read
// the fields again.
type writer struct {
	// These fields do not change.
	dir     disk.Directory
	logger  *slog.Logger
	series  *seriesMap
	index   *index
	metrics *metrics
	now     func() time.Time

	// makeRoom is called with mu held, before a segment begins and when that many more bytes
	// would exceed the budget. full returns an error if that many more must be refused.
	makeRoom func(bytes int64)
	full     func(bytes int64) error
	fits     func(bytes int64) bool // reports whether that many more bytes fit without making room
	config   func() Settings        // returns the current settings
	inPlace  func() error           // returns an error if a later process would not find the log

	segmentBytes int64
	rolled       chan struct{} // wakes run to sync before; capacity 1
	free         spare.Stack[batch]

	mu   sync.Mutex // guards everything below, and batches from Commit on
	cond sync.Cond  // of mu: an fsync has ended, or a batch has become durable or has failed

	encoder encoder

	// The active segment; file is nil when there is none.
	file      disk.File
	header    segment.Header
	start     int64     // end of the header
	offset    int64     // end of the last commit written
	epoch     uint32    // identifies the file in appended.epoch; never reused
	announced announced // by the segment
	newName   bool      // the directory entry is not durable yet
	ends      bool      // the segment takes no more commits

	next    int    // number of the active segment, or if there is none, of the next one to begin
	prevID  ID     // Header.PrevID and PrevEnd for segment number next
	prevEnd int64  //
	lost    uint64 // Total - Found of the first segment; 0 once a header with it is durable

	// before is the previous segment while it is not durable; see roll.go.
	//
	// Invariant: while before is not nil, nothing in the active segment is durable.
	before *endedSegment

	// Invariant: durable.Commit <= written.Commit <= number.
	durable Mark   // of the last durable commit
	written Mark   // of the last commit in the log
	number  uint64 // the last commit number assigned

	// retained are the batches that are written but not durable, in order: in before, if it is not nil, and in the active
	// segment.
	retained      []*batch
	retainedBytes int
	kept          keptBytes // of the active segment
	spareKept     []byte    // buffer for the next segment's
	syncing       bool      // an fsync runs without mu: of before or of file

	err      error     // of the last write or fsync; nil if it succeeded
	errSince time.Time // of the first error in a row
	nextTry  time.Time // until then, Commit does not try to write
	wanted   int       // bytes of the commit that failed
	doubt    bool      // an fsync failed, or the file is gone: commits fail until repair has succeeded
	closed   bool
}

// retainBytes is the memory, in bytes, that batches may take while they are not durable.
// Beyond it, Commit waits for an fsync.
const retainBytes = 8 << 20

func (w *writer) newBatch() *batch {
	b := w.free.Take()
	if b == nil {
		b = &batch{}
		b.reset()
	}
	b.ahead = w.now().Add(clockAhead).UnixMilli()
	return b
}

// release drops a reference to b. The caller holds w.mu, unless b was never written.
func (w *writer) release(b *batch) {
	if b.refs--; b.refs <= 0 {
		b.reset()
		w.free.Put(b)
	}
}

// rollback discards an open batch.
func (w *writer) rollback(b *batch) {
	w.finish(b, false)
	w.release(b)
}

func (w *writer) finish(b *batch, committed bool) {
	w.series.mu.Lock()
	defer w.series.mu.Unlock()
	b.finishLocked(w.series, committed)
}

// commit logs b, and returns when b is as safe as the settings require.
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
		_ = w.await(b) // an error does not matter: the interval's promise holds
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

// log writes b into the active segment, or begins one. It starts over after the active segment
// has ended and after each wait, because other goroutines may have written or ended it.
func (w *writer) log(b *batch) error {
	for {
		if w.closed {
			return ErrClosed
		}
		if about := int64(b.memory() / 4); w.full(about) != nil {
			w.makeRoom(about) // by removing delivered segments
			if err := w.full(about); err != nil {
				return w.refuse(err)
			}
		}
		if w.doubt || w.err != nil && time.Now().Before(w.nextTry) {
			return w.err
		}
		if w.file == nil {
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
			w.epoch++ // the encoded announcements are not written
			return err
		}
		announced := w.announced.plus(e.announced)
		if e.pages.End() <= w.segmentLimit(announced.again(w.series.size())) || w.offset <= w.start {
			if err := w.fit(w.header.Segment); err != nil {
				w.unannounce()
				return w.refuse(err)
			}
			if err := w.write(w.file, w.offset); err != nil {
				return w.failedWrite(err)
			}
			w.announced = announced
			w.kept.add(e.pages.Buf)
			w.took(b)
			w.recovered()
			if !b.always {
				w.index.publish(w.header, w.written)
			}
			return nil
		}
		w.unannounce()
		w.ends = true
	}
}

// fit makes room for the encoded bytes of that segment. It returns an error if there is no room.
func (w *writer) fit(id ID) error {
	bytes := w.index.growth(id, w.encoder.pages.End())
	if w.fits(bytes) {
		return nil
	}
	w.makeRoom(bytes)
	return w.full(bytes)
}

// unannounce makes later commits announce their series again if the encoded bytes, which are not in the file, announce some. Announcing
// all again after each refused commit would make the next one larger while space is short.
func (w *writer) unannounce() {
	if w.encoder.announced.bytes > 0 {
		w.epoch++
	}
}

// refuse records that the budget, not the disk, refuses a commit.
func (w *writer) refuse(err error) error {
	w.index.fail(err, w.now())
	return err
}

// enlist assigns b its number and total, after the last commit written. Callers encode and
// write b next, so the order of numbers is the order of bytes.
func (w *writer) enlist(b *batch) {
	w.number++
	b.number, b.total = w.number, w.written.Total+b.count()
}

// write writes the encoded bytes.
func (w *writer) write(f disk.File, offset int64) error {
	n, err := f.WriteAt(w.encoder.pages.Buf, offset)
	if err == nil && n < len(w.encoder.pages.Buf) {
		err = errors.New("short write")
	}
	if err != nil {
		return fmt.Errorf("write commit: %w", err)
	}
	w.series.saidEnded(w.encoder.ended)
	return nil
}

// took records that b is the last commit of the active segment.
func (w *writer) took(b *batch) {
	w.offset = w.encoder.pages.End()
	w.written = w.markOf(b)
	w.retain(b)
}

// retain keeps b until it is durable.
func (w *writer) retain(b *batch) {
	b.waits = true
	b.refs++
	w.retained = append(w.retained, b)
	w.retainedBytes += b.memory()
}

// markOf returns the mark of b at the end of the active segment.
func (w *writer) markOf(b *batch) Mark {
	return Mark{
		Position:  Position{Segment: w.header.Number, Offset: w.offset},
		Log:       w.header.Log,
		SegmentID: w.header.Segment,
		Commit:    b.number,
		Total:     b.total,
	}
}

// segmentLimit returns the size limit of a segment if the next one announces series again in that many
// bytes: large enough for repeated announcements to be a small part, and small enough for the
// budget to remove data in small pieces. Announcements of series that have ended are not repeated and do not count:
// otherwise a segment with many short-lived series would hardly end, and readers would keep all of its series.
func (w *writer) segmentLimit(again int64) int64 {
	limit := max(w.segmentBytes, 8*again)
	if budget := w.config().MaxBytes; budget > 0 {
		limit = min(limit, budget/8)
	}
	return limit
}

// begin makes a new segment the active one. b, if not nil, is its first commit.
func (w *writer) begin(b *batch) error {
	w.makeRoom(w.segmentLimit(0)) // for the whole segment, so that few of its commits have to wait for room
	if err := w.tryBegin(b); errors.Is(err, ErrFull) {
		return w.refuse(err)
	} else if errors.Is(err, errHugeCommit) {
		return err // b is too large; the disk has not failed
	} else if err != nil {
		w.failed(err)
		return err
	}
	w.recovered()
	return nil
}

func (w *writer) tryBegin(b *batch) error {
	if err := w.inPlace(); err != nil {
		return err
	}
	h := w.newHeader(w.next, w.written)
	h.PrevID, h.PrevEnd = w.prevID, w.prevEnd
	w.epoch++
	e := &w.encoder
	e.reset(h.Number, 0)
	e.header(h)
	start := e.pages.End()
	if b != nil {
		w.enlist(b)
		if err := e.commit(b, w.series, w.epoch); err != nil {
			return err
		}
	}

	// The empty commit of mark is logged even beyond the budget: without it, a target that is ahead of the log would wait
	// forever, and keep its queue.
	if err := w.fit(h.Segment); err != nil && b != nil && !b.empty() {
		return err
	}
	f, err := w.dir.Open(segment.Name(h.Number), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("create segment: %w", err)
	}
	if err := w.write(f, 0); err != nil {
		// The file stays, empty if truncating works; the next try overwrites it.
		if b != nil {
			w.index.refuse(b.number)
		}
		return errors.Join(err, f.Truncate(0), f.Close())
	}
	w.take(f, h, start)
	if b != nil {
		w.took(b)
		if !b.always {
			w.index.publish(w.header, w.written)
		}
	}
	w.metrics.segmentsCreated.Inc()
	return nil
}

// take makes a file, which has the encoded bytes, the active segment. start is the end of its header.
func (w *writer) take(f disk.File, h segment.Header, start int64) {
	w.file, w.header, w.newName = f, h, true
	w.start, w.offset, w.announced = start, w.encoder.pages.End(), w.encoder.announced
	w.kept.reset()
	w.kept.add(w.encoder.pages.Buf)
}

// newHeader returns the header of a segment that begins behind the commit before.
func (w *writer) newHeader(number int, before Mark) segment.Header {
	h := segment.Header{
		Version: segment.Version, Log: before.Log, Number: number, CreatedAt: w.now().UnixMilli(),
		Commit: before.Commit, Total: before.Total, Found: before.Total,
		// No durable header records yet that a power cut lost w.lost samples.
		DurableCommit: w.durable.Commit, DurableTotal: w.durable.Total - w.lost,
	}
	if before.Total == w.durable.Total { // another power cut may take the header before, which is the only one with the loss
		h.Found -= w.lost
	}
	if proven := w.index.unproven(); proven != nil {
		h.DurableCommit, h.DurableTotal = proven.Commit, proven.Total
	}
	_, _ = rand.Read(h.Segment[:]) // it never fails
	return h
}
