package queue

import (
	"encoding/binary"
	"errors"
	"time"

	"hwsagent/wal/internal/segment"
)

// Stored is the content of a target's record.
type Stored struct {
	LastOpen int64 // last time as a non-orphan, milliseconds since the epoch
	Savepoint

	// Paused is the time since which sending is paused, milliseconds since the epoch; 0: not paused.
	Paused int64
}

// PausedSince is the time since which sending is paused; zero if it is not.
func (st *Stored) PausedSince() time.Time {
	if st.Paused == 0 {
		return time.Time{}
	}
	return time.UnixMilli(st.Paused)
}

// AppendSavepoint appends the body of a target's record. With MaxRanges ranges it is smaller than savefile.MaxBody.
func AppendSavepoint(b []byte, st Stored) []byte {
	b = binary.AppendVarint(b, st.LastOpen)
	b = segment.AppendMark(b, st.Start)
	b = segment.AppendMark(b, st.High)
	b = binary.AppendUvarint(b, uint64(len(st.Done)))
	for _, r := range st.Done {
		b = segment.AppendMark(segment.AppendMark(segment.AppendMark(b, r.From), r.To), r.High)
	}
	b = binary.AppendUvarint(b, st.Outcome.Delivered)
	b = binary.AppendUvarint(b, st.Outcome.Filtered)
	b = binary.AppendUvarint(b, uint64(len(st.Outcome.Dropped)))
	for _, n := range st.Outcome.Dropped {
		b = binary.AppendUvarint(b, n)
	}
	return binary.AppendVarint(b, st.Paused)
}

// DecodeSavepoint is the inverse of AppendSavepoint.
func DecodeSavepoint(body []byte) (Stored, error) {
	d := segment.Decoder{B: body}
	st := Stored{LastOpen: d.Varint()}
	st.Start = d.Mark()
	st.High = d.Mark()
	for n := d.Uvarint(); n > 0 && d.Err == nil; n-- {
		st.Done = append(st.Done, Range{From: d.Mark(), To: d.Mark(), High: d.Mark()})
	}
	if n := len(st.Done); n > 0 {
		st.Done[n-1].High = segment.Mark{} // st.High applies after the last range
	}
	st.Outcome.Delivered = d.Uvarint()
	st.Outcome.Filtered = d.Uvarint()
	reasons := d.Uvarint()
	for i := uint64(0); i < reasons && d.Err == nil; i++ {
		// A reason that a newer build added counts as the last one, so that the ledger
		// still adds up.
		st.Outcome.Dropped[min(i, uint64(NumReasons)-1)] += d.Uvarint()
	}
	st.Paused = d.Varint()
	if err := d.End(); err != nil {
		return Stored{}, err
	}
	at := st.Start
	for _, r := range st.Done {
		if r.From.Commit < at.Commit || r.To.Commit < r.From.Commit || r.From.Total < at.Total || r.To.Total < r.From.Total {
			return Stored{}, errors.New("ranges out of order")
		}
		at = r.To
	}
	return st, nil
}
