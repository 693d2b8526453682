// Package history keeps the figures of targets for a day, one point a minute, in files of a fixed size. The figures
// serve plots only, so a power cut may take the last points, and damage costs the points that it hits.
package history

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Every is the distance between points; For is how long they are kept.
const (
	Every = time.Minute
	For   = 24 * time.Hour
)

// A file is a ring of slots, one for each minute of a day. The slot of a point follows from its time, so
// there is nothing else to keep right: a slot is valid by itself, by its checksum and its time.
//
//	0  minutes since 1970, 64 bits, little endian, as all
//	8  in, out, lag, backlog: each a float of 32 bits
//	24 zero, 32 bits
//	28 CRC-32C of the 28 bytes before
const (
	slots    = int(For / Every)
	slotSize = 32
	// FileSize is the maximum size of a target's file, in bytes.
	FileSize = slots * slotSize // 46,080
)

// maxTargets bounds how many files are read and written.
const maxTargets = 1000

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // a table of constants

// Point holds the figures of a target for one minute.
type Point struct {
	Time    time.Time // to the minute
	In, Out float64   // samples a second
	Lag     float64   // seconds
	Backlog float64   // bytes
}

// slot is a point in memory.
type slot struct {
	minute                int64 // 0: none
	in, out, lag, backlog float32
}

// Store holds the points of all targets. Safe for concurrent use; only Add and Prune wait for the disk.
type Store struct {
	dir string

	disk sync.Mutex // held while a file is written or removed

	mu      sync.Mutex // guards the fields below
	targets map[string]*[slots]slot
}

// Open reads the points below dir, which need not exist. The error says which parts cannot be read; the store can be
// used all the same.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, targets: map[string]*[slots]slot{}}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	errs := []error{err}
	for _, e := range entries[:min(len(entries), maxTargets)] {
		if !ours(e.Name()) {
			continue
		}
		ring, err := readRing(filepath.Join(dir, e.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.targets[e.Name()] = ring
	}
	if err := errors.Join(errs...); err != nil {
		return s, fmt.Errorf("read the history of targets: %w", err)
	}
	return s, nil
}

// suffix is the suffix of file names.
const suffix = ".ring"

// nameOf returns the name of a target's file; all file names have the same length.
func nameOf(target string) string {
	sum := sha256.Sum256([]byte(target))
	return hex.EncodeToString(sum[:16]) + suffix
}

func ours(name string) bool { return len(name) == 32+len(suffix) && strings.HasSuffix(name, suffix) }

func readRing(path string) (ring *[slots]slot, err error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, int64(FileSize)))
	if err != nil {
		return nil, err
	}
	ring = new([slots]slot)
	for i := range slots {
		if len(text) < (i+1)*slotSize {
			break
		}
		if p, ok := decode(text[i*slotSize : (i+1)*slotSize]); ok && place(p.minute) == i {
			ring[i] = p
		}
	}
	return ring, nil
}

// openFile opens a regular file. It does not follow a symbolic link.
func openFile(path string, flag int) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.OpenFile(path, flag, 0o600) // #nosec G304 -- below the storage path
}

// place returns the index of the slot for a minute.
func place(minute int64) int { return int(minute % int64(slots)) }

func encode(p slot) []byte {
	b := make([]byte, 0, slotSize)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.minute)) // #nosec G115 -- not negative
	for _, v := range []float32{p.in, p.out, p.lag, p.backlog} {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	b = binary.LittleEndian.AppendUint32(b, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decode(b []byte) (slot, bool) {
	if crc32.Checksum(b[:28], castagnoli) != binary.LittleEndian.Uint32(b[28:]) {
		return slot{}, false
	}
	float := func(at int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[at:])) }
	minute := binary.LittleEndian.Uint64(b)
	if minute == 0 || minute > math.MaxInt64 {
		return slot{}, false
	}
	return slot{int64(minute), float(8), float(12), float(16), float(20)}, true
}

// Add stores a point of a target, replacing one of the same minute. After a disk error the point stays in memory until
// the process ends.
func (s *Store) Add(target string, p Point) error {
	name, minute := nameOf(target), p.Time.Unix()/int64(Every/time.Second)
	if minute <= 0 {
		return nil // the clock is not set yet
	}
	one := slot{minute, float32(p.In), float32(p.Out), float32(p.Lag), float32(p.Backlog)}
	if !s.keep(name, one) {
		return nil
	}
	s.disk.Lock()
	defer s.disk.Unlock()
	if err := s.write(name, one); err != nil {
		return fmt.Errorf("write the history of target %q: %w", target, err)
	}
	return nil
}

// keep stores a point in memory, unless there are too many targets.
func (s *Store) keep(name string, p slot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ring := s.targets[name]
	if ring == nil {
		if len(s.targets) >= maxTargets {
			return false
		}
		ring = new([slots]slot)
		s.targets[name] = ring
	}
	ring[place(p.minute)] = p
	return true
}

func (s *Store) write(name string, p slot) (err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := openFile(filepath.Join(s.dir, name), os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.WriteAt(encode(p), int64(place(p.minute)*slotSize))
	return err
}

// Points returns a target's points of the last day before now, oldest first.
func (s *Store) Points(target string, now time.Time) []Point {
	last := now.Unix() / int64(Every/time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	ring := s.targets[nameOf(target)]
	if ring == nil {
		return nil
	}
	var points []Point
	for _, p := range ring {
		if p.minute > max(0, last-int64(slots)) && p.minute <= last {
			points = append(points, Point{time.Unix(p.minute*int64(Every/time.Second), 0), float64(p.in), float64(p.out), float64(p.lag), float64(p.backlog)})
		}
	}
	slices.SortFunc(points, func(a, b Point) int { return a.Time.Compare(b.Time) })
	return points
}

// Prune removes the files of targets without a point in the last day, and files that belong to no target.
func (s *Store) Prune(now time.Time) error {
	oldest := now.Add(-For).Unix() / int64(Every/time.Second)
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	var old []string
	for name, ring := range s.targets {
		if !slices.ContainsFunc(ring[:], func(p slot) bool { return p.minute >= oldest }) {
			old = append(old, name)
			delete(s.targets, name)
		}
	}
	s.mu.Unlock()
	var errs []error
	for _, name := range old {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
