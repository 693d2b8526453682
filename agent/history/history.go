// Package history keeps the figures of targets for a day, one point a minute, in files of a fixed size. Only plots use
// the figures, so points are written every ten minutes: a kill or a power cut may lose the last ones, and damage loses
// the points that it hits.
package history

import (
	"context"
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

// Every is the distance between points; For is how long they are kept. WriteEvery is the distance between writes: the
// kernel writes whole pages, so each write of a point costs some 12 KiB of disk, whether it has one point or ten.
const (
	Every      = time.Minute
	For        = 24 * time.Hour
	WriteEvery = 10 * time.Minute
)

// A file is a ring of slots, one for each minute of a day. The time of a point determines its slot, so the file has no
// other state: the checksum and the time of a slot show whether it is valid.
//
//	0  minutes since 1970, 64 bits; all numbers are little endian
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

// ring holds the points of one target.
type ring struct {
	slots     [slots]slot
	unwritten []int // places of the points that are in memory only
}

// Store holds the points of all targets. Safe for concurrent use; only Write and Prune wait for the disk.
type Store struct {
	dir string

	disk sync.Mutex // held while a file is written or removed

	mu      sync.Mutex       // guards the fields below
	targets map[string]*ring // by the name of the file
}

// Folder is the usual directory of a store, below the storage path.
const Folder = "history"

// Open reads the points below dir, which need not exist. The error says which parts cannot be read; the store can be
// used all the same.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, targets: map[string]*ring{}}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	errs := []error{err}
	for _, e := range entries[:min(len(entries), maxTargets)] {
		if !ours(e.Name()) {
			continue
		}
		r, err := readRing(filepath.Join(dir, e.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.targets[e.Name()] = r
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

func readRing(path string) (r *ring, err error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, int64(FileSize)))
	if err != nil {
		return nil, err
	}
	r = new(ring)
	for i := range slots {
		if len(text) < (i+1)*slotSize {
			break
		}
		if p, ok := decode(text[i*slotSize : (i+1)*slotSize]); ok && place(p.minute) == i {
			r.slots[i] = p
		}
	}
	return r, nil
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

// Run adds the points that note returns, by target, each minute until ctx ends. It writes them each ten minutes; after an
// error, which failed gets, each minute. The caller writes the last ones, after everything that matters more than plots.
func (s *Store) Run(ctx context.Context, note func() map[string]Point, failed func(error)) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	written := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for target, p := range note() {
			s.Add(target, p)
		}
		now := time.Now()
		err := s.Prune(now)
		if now.Sub(written) >= WriteEvery {
			if err = errors.Join(err, s.Write()); err == nil {
				written = now
			}
		}
		failed(err)
	}
}

// Add stores a point of a target in memory, replacing one of the same minute.
func (s *Store) Add(target string, p Point) {
	minute := p.Time.Unix() / int64(Every/time.Second)
	if minute <= 0 {
		return // the clock is not set yet
	}
	name := nameOf(target)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.targets[name]
	if r == nil {
		if len(s.targets) >= maxTargets {
			return
		}
		r = new(ring)
		s.targets[name] = r
	}
	i := place(minute)
	r.slots[i] = slot{minute, float32(p.In), float32(p.Out), float32(p.Lag), float32(p.Backlog)}
	r.owes(i)
}

// owes records that the points at these places must be written.
func (r *ring) owes(places ...int) {
	for _, i := range places {
		if !slices.Contains(r.unwritten, i) {
			r.unwritten = append(r.unwritten, i)
		}
	}
}

// Write writes the points that are in memory only. After an error they remain to be written, and are in memory until the
// process ends.
func (s *Store) Write() error {
	s.disk.Lock()
	defer s.disk.Unlock()
	var errs []error
	for name, points := range s.take() {
		if err := s.write(name, points); err != nil {
			errs = append(errs, err)
			s.giveBack(name, points)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write the history of targets: %w", err)
	}
	return nil
}

// take returns the unwritten points by file, and counts them as written.
func (s *Store) take() map[string][]slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string][]slot)
	for name, r := range s.targets {
		for _, i := range r.unwritten {
			all[name] = append(all[name], r.slots[i])
		}
		r.unwritten = r.unwritten[:0]
	}
	return all
}

// giveBack makes points count as unwritten again.
func (s *Store) giveBack(name string, points []slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.targets[name]; r != nil {
		for _, p := range points {
			r.owes(place(p.minute))
		}
	}
}

func (s *Store) write(name string, points []slot) (err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := openFile(filepath.Join(s.dir, name), os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, p := range points {
		if _, err := f.WriteAt(encode(p), int64(place(p.minute)*slotSize)); err != nil {
			return err
		}
	}
	return nil
}

// Points returns a target's points of the last day before now, oldest first.
func (s *Store) Points(target string, now time.Time) []Point {
	last := now.Unix() / int64(Every/time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.targets[nameOf(target)]
	if r == nil {
		return nil
	}
	var points []Point
	for _, p := range r.slots {
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
	for name, r := range s.targets {
		if !slices.ContainsFunc(r.slots[:], func(p slot) bool { return p.minute >= oldest }) {
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
