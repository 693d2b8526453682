package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"
)

// A savepoint file has two slots, written in turn: whatever a crash does to the one
// being written, the other holds the savepoint before. A slot is
//
//	magic, version, sequence number (8 bytes), payload length (4), payload, checksum
//
// and the valid one with the greater sequence number counts. Both slots have their
// full size from the beginning, so that a full disk does not stop savepoints.
const (
	slotSize         = 16 * 1024
	slotHeaderSize   = 4 + 1 + 8 + 4
	slotMagic        = "hwsp"
	savepointVersion = 2

	// A savepoint with one range says nothing that version 1 did not know: it is written as
	// that, so that an older build can still read it.
	savepointOneRange = 1

	maxOrphan        = uint64(math.MaxInt64 / time.Millisecond)
	maxSavepointName = 255          // bytes of a file name
	creating         = ".creating-" // prefix of files that are not complete yet
)

var (
	errSavepointDamaged = errors.New("no slot is valid")
	errSavepointTooLong = errors.New("savepoint has too many ranges for its slot")
)

// storedSavepoint is what a savepoint file holds.
type storedSavepoint struct {
	Name     string // of the target
	LastOpen int64  // when it was last known to be open, milliseconds since the epoch; for people
	Savepoint

	// Orphan is for how long an agent has run without this target, milliseconds.
	Orphan int64

	// Durable is the last commit of the log that was durable at that time, whether the
	// target had got it or not. Without it nobody would know of samples at the log's end
	// that become unreadable.
	Durable Mark

	// Paused is since when nothing shall be sent, milliseconds since the epoch; 0: it shall.
	Paused int64

	// Adopted is the name of the target that this savepoint was taken from, until that
	// one's file is certain to be gone: only one of the two may be used.
	Adopted string
}

// savepointFile is the open savepoint file of one target. It is not safe for
// concurrent use.
type savepointFile struct {
	dir  directory
	name string // in dir
	f    file   // nil after an error: it is not trusted any more
	seq  uint64 // of the newest savepoint that is durable
	slot int    // where that one is
	buf  []byte
}

// createSavepointFile makes a savepoint durable under a new name.
func createSavepointFile(dir directory, st storedSavepoint) (*savepointFile, error) {
	name, err := escapeName(st.Name)
	if err != nil {
		return nil, err
	}
	s := &savepointFile{dir: dir, name: name, seq: 1}
	if s.buf, err = appendSlot(nil, 1, st); err != nil {
		return nil, err
	}
	// Under its final name the file is complete: an empty one there means damage.
	temp := creating + name
	if err := s.create(temp); err != nil {
		return nil, fmt.Errorf("create savepoint: %w", errors.Join(err, removeIfThere(dir, temp)))
	}
	if err := dir.rename(temp, name); err != nil {
		return nil, fmt.Errorf("create savepoint: %w", errors.Join(err, removeIfThere(dir, temp)))
	}
	if err := dir.sync(); err != nil {
		return nil, fmt.Errorf("create savepoint: %w", errors.Join(err, removeIfThere(dir, name)))
	}
	return s, nil
}

// create writes the first slot into a file of that name and makes its contents durable.
func (s *savepointFile) create(temp string) error {
	f, err := s.dir.open(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	slots := make([]byte, 2*slotSize)
	copy(slots, s.buf)
	if _, err = f.WriteAt(slots, 0); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func removeIfThere(dir directory, name string) error {
	if err := dir.remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// openSavepointFile opens the savepoint file of that name in dir. With
// errSavepointDamaged the file is usable for writing. doubt says that a slot was
// damaged, so that a newer savepoint may have been lost.
func openSavepointFile(dir directory, name string) (s *savepointFile, st storedSavepoint, doubt bool, err error) {
	s = &savepointFile{dir: dir, name: name}
	if s.f, err = dir.open(name, os.O_RDWR); err != nil {
		return nil, st, false, fmt.Errorf("open savepoint: %w", err)
	}
	st, doubt, err = s.load()
	if err != nil && !errors.Is(err, errSavepointDamaged) {
		return nil, st, false, errors.Join(err, s.f.Close())
	}
	return s, st, doubt, err
}

// load reads both slots and picks the newest.
func (s *savepointFile) load() (st storedSavepoint, doubt bool, err error) {
	buf := make([]byte, 2*slotSize)
	n, err := s.f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return st, false, fmt.Errorf("read savepoint: %w", err)
	}
	clear(buf[n:])
	doubt = n < len(buf) // the file had its full size from the beginning
	for i := range 2 {
		slot := buf[i*slotSize : (i+1)*slotSize]
		seq, got, err := decodeSlot(slot)
		if name, _ := escapeName(got.Name); err == nil && name != s.name {
			err = errSavepointDamaged // another target's: a copy of its file, or of a page of it
		}
		if newer := (*newerSavepointError)(nil); errors.As(err, &newer) {
			return st, false, err
		}
		if err != nil {
			doubt = doubt || !allZero(slot)
			continue
		}
		if seq > s.seq {
			s.seq, s.slot, st = seq, i, got
		}
	}
	if s.seq == 0 {
		return st, true, errSavepointDamaged
	}
	return st, doubt, nil
}

// write makes st durable. After an error the savepoint before is still there: the
// same slot is tried again the next time, through a new descriptor.
func (s *savepointFile) write(st storedSavepoint) (err error) {
	if s.buf, err = appendSlot(s.buf[:0], s.seq+1, st); err != nil {
		return err
	}
	if s.f == nil {
		if s.f, err = s.dir.open(s.name, os.O_RDWR|os.O_CREATE); err != nil {
			s.f = nil
			return fmt.Errorf("open savepoint: %w", err)
		}
	}
	slot := 1 - s.slot
	if _, err = s.f.WriteAt(s.buf, int64(slot)*slotSize); err == nil {
		err = s.f.Sync()
	}
	if err != nil {
		err = fmt.Errorf("write savepoint: %w", errors.Join(err, s.f.Close()))
		s.f = nil
		return err
	}
	s.seq, s.slot = s.seq+1, slot
	return nil
}

func (s *savepointFile) close() error {
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	return f.Close()
}

// remove closes the file and unlinks it. After an error it may be called again.
func (s *savepointFile) remove() error {
	err := errors.Join(s.close(), removeIfThere(s.dir, s.name))
	if err == nil {
		err = s.dir.sync()
	}
	if err != nil {
		return fmt.Errorf("remove savepoint: %w", err)
	}
	return nil
}

// newerSavepointError says that a newer build wrote the savepoint. Overwriting it
// would lose the position.
type newerSavepointError struct{ version byte }

func (e *newerSavepointError) Error() string {
	return fmt.Sprintf("savepoint has format version %d, this build reads up to %d: use a newer hwsagent or another --storage.path", e.version, savepointVersion)
}

// appendSlot appends the encoding of a slot to b.
func appendSlot(b []byte, seq uint64, st storedSavepoint) ([]byte, error) {
	start := len(b)
	b = append(b, slotMagic...)
	b = append(b, st.version())
	b = binary.BigEndian.AppendUint64(b, seq)
	b = append(b, 0, 0, 0, 0)
	b = appendSavepoint(b, st)
	binary.BigEndian.PutUint32(b[start+slotHeaderSize-4:], uint32(len(b)-start-slotHeaderSize))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	if len(b)-start > slotSize {
		return b[:start], fmt.Errorf("encode savepoint of %q: %w: %d ranges", st.Name, errSavepointTooLong, len(st.Done))
	}
	return b, nil
}

// decodeSlot decodes a slot, which has slotSize bytes.
func decodeSlot(b []byte) (seq uint64, st storedSavepoint, err error) {
	damaged := func(what string) (uint64, storedSavepoint, error) {
		return 0, storedSavepoint{}, fmt.Errorf("decode savepoint: %s: %w", what, errSavepointDamaged)
	}
	if len(b) < slotHeaderSize || string(b[:4]) != slotMagic {
		return damaged("no magic")
	}
	n := uint64(binary.BigEndian.Uint32(b[slotHeaderSize-4:]))
	if n > uint64(len(b)-slotHeaderSize-4) {
		return damaged("length")
	}
	end := slotHeaderSize + int(n)
	if crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return damaged("checksum")
	}
	if b[4] > savepointVersion {
		return 0, st, &newerSavepointError{b[4]}
	}
	seq = binary.BigEndian.Uint64(b[5:])
	if seq == 0 {
		return damaged("sequence number 0")
	}
	if st, err = decodeSavepoint(b[slotHeaderSize:end], b[4]); err != nil {
		return damaged(err.Error())
	}
	return seq, st, nil
}

// version is that of the oldest format which has room for what the savepoint says.
func (st *storedSavepoint) version() byte {
	if len(st.Done) > 1 {
		return savepointVersion
	}
	return savepointOneRange
}

func appendSavepoint(b []byte, st storedSavepoint) []byte {
	b = binary.AppendUvarint(b, uint64(len(st.Name)))
	b = append(b, st.Name...)
	b = binary.AppendVarint(b, st.LastOpen)
	b = appendMark(b, st.Start)
	b = appendMark(b, st.High)
	b = binary.AppendUvarint(b, uint64(len(st.Done)))
	for _, r := range st.Done {
		b = appendMark(appendMark(b, r.From), r.To)
		if st.version() > savepointOneRange {
			b = binary.AppendUvarint(appendMark(b, r.High), uint64(r.Shards))
		}
	}
	b = binary.AppendUvarint(b, st.Outcome.Delivered)
	b = binary.AppendUvarint(b, st.Outcome.Filtered)
	b = binary.AppendUvarint(b, uint64(len(st.Outcome.Dropped)))
	for _, n := range st.Outcome.Dropped {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(st.Shards))
	// What follows is left out where it says nothing, so that builds that do not know it
	// can read that.
	adopted := st.Adopted != ""
	paused := st.Paused > 0 || adopted
	known := st.Durable.Log != (ID{}) || paused
	if st.Orphan > 0 || known {
		b = binary.AppendUvarint(b, uint64(st.Orphan))
	}
	if known {
		b = appendMark(b, st.Durable)
	}
	if paused {
		b = binary.AppendVarint(b, st.Paused)
	}
	if adopted {
		b = binary.AppendUvarint(b, uint64(len(st.Adopted)))
		b = append(b, st.Adopted...)
	}
	return b
}

func decodeSavepoint(b []byte, version byte) (storedSavepoint, error) {
	d := decoder{b: b}
	st := storedSavepoint{Name: string(d.bytes(d.uvarint())), LastOpen: d.varint()}
	st.Start = d.mark()
	st.High = d.mark()
	for n := d.uvarint(); n > 0 && d.err == nil; n-- {
		r := Range{From: d.mark(), To: d.mark()}
		if version > savepointOneRange {
			r.High, r.Shards = d.mark(), int(min(d.uvarint(), 1<<16))
		}
		st.Done = append(st.Done, r)
	}
	if n := len(st.Done); n > 0 {
		st.Done[n-1].High, st.Done[n-1].Shards = Mark{}, 0 // behind it, High says it
	}
	st.Outcome.Delivered = d.uvarint()
	st.Outcome.Filtered = d.uvarint()
	reasons := d.uvarint()
	for i := uint64(0); i < reasons && d.err == nil; i++ {
		// A reason that a newer build added counts as the last one, so that the ledger
		// still adds up.
		st.Outcome.Dropped[min(i, uint64(NumReasons)-1)] += d.uvarint()
	}
	if d.err == nil {
		st.Shards = int(min(d.uvarint(), 1<<16))
	}
	if d.err == nil && len(d.b) > 0 {
		st.Orphan = int64(min(d.uvarint(), maxOrphan))
	}
	if d.err == nil && len(d.b) > 0 {
		st.Durable = d.mark()
	}
	if d.err == nil && len(d.b) > 0 {
		st.Paused = d.varint()
	}
	if d.err == nil && len(d.b) > 0 {
		st.Adopted = string(d.bytes(d.uvarint()))
	}
	if d.err != nil {
		return storedSavepoint{}, d.err
	}
	if len(d.b) > 0 {
		return storedSavepoint{}, errors.New("bytes left over")
	}
	at := st.Start
	for _, r := range st.Done {
		if r.From.Commit < at.Commit || r.To.Commit < r.From.Commit || r.From.Total < at.Total || r.To.Total < r.From.Total {
			return storedSavepoint{}, errors.New("ranges out of order")
		}
		at = r.To
	}
	return st, nil
}

func appendMark(b []byte, m Mark) []byte {
	b = append(b, m.Log[:]...)
	b = append(b, m.SegmentID[:]...)
	b = binary.AppendVarint(b, int64(m.Segment))
	b = binary.AppendVarint(b, m.Offset)
	b = binary.AppendUvarint(b, m.Commit)
	return binary.AppendUvarint(b, m.Total)
}

func (d *decoder) mark() Mark {
	var m Mark
	copy(m.Log[:], d.bytes(uint64(len(m.Log))))
	copy(m.SegmentID[:], d.bytes(uint64(len(m.SegmentID))))
	m.Segment = int(d.varint())
	m.Offset = d.varint()
	m.Commit = d.uvarint()
	m.Total = d.uvarint()
	return m
}

// escapeName turns a target's name into a file name that is the same on file systems
// that ignore case. Small letters, digits, '-' and '_' stand for themselves, every
// other byte is %xx.
func escapeName(name string) (string, error) {
	if name == "" {
		return "", errors.New("target has no name")
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plainByte(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	if b.Len() > maxSavepointName-len(creating) {
		return "", fmt.Errorf("target's name %q is too long for a file name: give it a shorter one", name)
	}
	return b.String(), nil
}

// unescapeName is the inverse of escapeName; other file names are not ok.
func unescapeName(file string) (name string, ok bool) {
	var b []byte
	for i := 0; i < len(file); i++ {
		c := file[i]
		if c == '%' && i+2 < len(file) {
			if _, err := fmt.Sscanf(file[i+1:i+3], "%02x", &c); err != nil {
				return "", false
			}
			i += 2
		}
		b = append(b, c)
	}
	again, err := escapeName(string(b))
	return string(b), err == nil && again == file
}

func plainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
