package wal

import (
	"errors"
	"fmt"
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
