package pushgateway

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Limits of the store.
const (
	maxGroups   = 10_000   // groups with an accepted push
	maxUnpushed = 1000     // groups with only refused pushes
	maxBytes    = 64 << 20 // of all groups together
)

// Suffixes of file names: of a group's file, and of one being written.
const (
	fileEnd = ".group"
	newEnd  = ".new"
)

// Store keeps the groups, each in its own file: everything that was answered without an error is durable. It is safe
// for concurrent use.
type Store struct {
	dir     string
	log     *slog.Logger
	syncDir func(dir string) error // makes the names in dir durable; tests replace it

	mu     sync.Mutex
	groups map[string]*group // by key
	shown  map[uint64]string // the group's key for each exposed series, by the hash of its labels
	kinds  kinds             // types of the groups' families
	bytes  int64
	// unpushed counts groups with only refused pushes. They have their own limit, so that a sender of nonsense under
	// ever new names takes no room from others.
	unpushed int
	// unsynced are the directories with names that may not be durable: dir and its parent at first, because a start does
	// not know which syncs before it failed.
	unsynced []string
}

var (
	errFull  = fmt.Errorf("%d groups or %d bytes are kept already: delete groups that are no longer needed", maxGroups, maxBytes)
	errDisk  = errors.New("keep the group")
	errSync  = errors.New("make the group durable") // the group is changed, but a power cut may undo that
	errClash = errors.New("a series is there twice, in this group or in another one")
	errKind  = errors.New("a family has another type than its name allows")
)

// Folder is the usual directory of a store, below the storage path.
const Folder = "pushgateway"

// OpenStore reads the groups in dir. It logs and leaves alone a file that cannot be read.
func OpenStore(dir string, logger *slog.Logger) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of pushed groups: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read pushed groups: %w", err)
	}
	s := &Store{dir: dir, log: logger, syncDir: syncDir, groups: map[string]*group{}, shown: map[uint64]string{}, kinds: kinds{}, unsynced: []string{filepath.Dir(dir), dir}}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), fileEnd+newEnd) { // left over from a kill before the rename
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				logger.Warn("Cannot remove a temporary file of a pushed group", "err", err)
			}
		}
		if !strings.HasSuffix(e.Name(), fileEnd) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		var g *group
		if err == nil {
			g, err = decode(text)
		}
		if err == nil && s.file(key(g.labels)) != filepath.Join(dir, e.Name()) {
			err = errors.New("its name is that of another group")
		}
		if err != nil {
			logger.Error("Cannot read a pushed group; leaving its file alone", "file", filepath.Join(dir, e.Name()), "err", err)
			continue
		}
		s.put(key(g.labels), g)
	}
	return s, nil
}

func (s *Store) file(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:])+fileEnd)
}

// put sets the group of a key to next; nil removes it. s.mu must be held, or s be new.
func (s *Store) put(k string, next *group) {
	if old := s.groups[k]; old != nil {
		s.bytes -= old.size()
		s.kinds.add(old, -1)
		if old.unpushed() {
			s.unpushed--
		}
		for hash := range old.series() {
			if s.shown[hash] == k {
				delete(s.shown, hash)
			}
		}
		delete(s.groups, k)
	}
	if next == nil {
		return
	}
	s.groups[k] = next
	s.bytes += next.size()
	s.kinds.add(next, 1)
	if next.unpushed() {
		s.unpushed++
	}
	for hash := range next.series() {
		s.shown[hash] = k
	}
}

// clashes reports whether next would expose a series that already exists. s.mu must be held.
func (s *Store) clashes(k string, next *group) bool {
	mine := map[uint64]bool{}
	for hash := range next.series() {
		if other, ok := s.shown[hash]; mine[hash] || ok && other != k {
			return true
		}
		mine[hash] = true
	}
	return false
}

// change replaces a group by the result of f, durably, and returns it. f gets nil for a missing group, and returns nil
// to remove it. The result must not be changed afterwards. With errSync the group is replaced, too, because its file is.
func (s *Store) change(labels map[string]string, f func(old *group) *group) (*group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key(labels)
	old := s.groups[k]
	next := f(old)
	if next == old {
		return old, s.sync() // old may be the result of a change that could not be made durable
	}
	if next == nil {
		if err := os.Remove(s.file(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", errDisk, err)
		}
		return nil, s.renamed(k, nil)
	}
	switch {
	case s.full(old, next):
		return nil, errFull
	case s.clashes(k, next):
		return nil, errClash
	}
	if why := s.kinds.conflict(old, next); why != "" {
		return nil, fmt.Errorf("%w: %s", errKind, why)
	}
	if err := s.save(s.file(k), next); err != nil {
		return nil, fmt.Errorf("%w: %w", errDisk, err)
	}
	return next, s.renamed(k, next)
}

// renamed sets the group of a key to next, as its file is already, and makes that durable. s.mu must be held.
func (s *Store) renamed(k string, next *group) error {
	s.put(k, next)
	if !slices.Contains(s.unsynced, s.dir) {
		s.unsynced = append(s.unsynced, s.dir)
	}
	return s.sync()
}

// sync makes all names durable. s.mu must be held.
func (s *Store) sync() error {
	for len(s.unsynced) > 0 {
		if err := s.syncDir(s.unsynced[0]); err != nil {
			return fmt.Errorf("%w: %w: %w", errDisk, errSync, err)
		}
		s.unsynced = s.unsynced[1:]
	}
	return nil
}

// full reports whether there is no room to replace old, which may be nil, by next. s.mu must be held.
func (s *Store) full(old, next *group) bool {
	if next.deleted {
		return false
	}
	bytes := s.bytes + next.size()
	if old != nil {
		bytes -= old.size()
	}
	if bytes > maxBytes && bytes > s.bytes {
		return true
	}
	if next.unpushed() {
		return !old.unpushed() && s.unpushed >= maxUnpushed
	}
	return (old == nil || old.unpushed()) && len(s.groups)-s.unpushed >= maxGroups
}

// unsettled returns the groups with series whose stale markers the log does not have yet.
func (s *Store) unsettled() (all []*group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if g.deleted || len(g.ended) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// isShown reports whether a group exposes the series with that hash.
func (s *Store) isShown(hash uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.shown[hash]
	return ok
}

// settle records that the log has the stale markers of g, unless g has been changed meanwhile. That need not be durable:
// at worst, a power cut has the markers written again.
func (s *Store) settle(g *group) error {
	_, err := s.change(g.labels, func(now *group) *group {
		switch {
		case now != g:
			return now
		case g.deleted:
			return nil
		}
		next := *g
		next.ended = nil
		return &next
	})
	if errors.Is(err, errSync) {
		return nil
	}
	return err
}

// all returns the groups in a stable order.
func (s *Store) all() []*group {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*group, 0, len(s.groups))
	for _, k := range slices.Sorted(maps.Keys(s.groups)) {
		if g := s.groups[k]; !g.deleted {
			out = append(out, g)
		}
	}
	return out
}

// save replaces the file by g; after a power cut it has either the old or the new content.
func (s *Store) save(name string, g *group) error {
	text, err := encode(g)
	if err != nil {
		return err
	}
	next := name + newEnd
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return os.Rename(next, name)
}

// syncDir makes the names in a directory durable, if directories can be synced.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission) {
		err = nil // Windows keeps the order without it
	}
	return errors.Join(err, d.Close())
}
