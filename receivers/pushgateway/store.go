package pushgateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of what is kept.
const (
	maxGroups = 10_000
	maxBytes  = 64 << 20 // of all groups together
)

const fileEnd = ".group"

// group is what was pushed under one set of labels. It never changes.
type group struct {
	labels   map[string]string
	families map[string][]byte // delimited protobuf, by name
	pushed   time.Time         // the last push that was taken; zero if none was
	failed   time.Time         // the last that was not
}

func (g *group) size() (n int64) {
	for name, f := range g.families {
		n += int64(len(name) + len(f))
	}
	for name, value := range g.labels {
		n += int64(len(name) + len(value))
	}
	return n
}

// body is all families one behind the other, in the order of their names.
func (g *group) body() []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(g.families)) {
		b.Write(g.families[name])
	}
	return b.Bytes()
}

// key is the same for two sets of labels exactly when they are equal.
func key(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%q=%q,", name, labels[name])
	}
	return b.String()
}

// header is the first line of a group's file; the families follow.
type header struct {
	Version  int               `json:"version"` // 1
	Labels   map[string]string `json:"labels"`
	Pushed   int64             `json:"pushed"` // milliseconds; 0: never
	Failed   int64             `json:"failed"`
	Bytes    int               `json:"bytes"` // of the families
	Checksum uint32            `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Store keeps the groups, each in a file of its own: what was answered is durable. It is
// safe for concurrent use.
type Store struct {
	dir string
	log *slog.Logger

	mu     sync.Mutex
	groups map[string]*group // by key
	bytes  int64
}

var (
	errFull = fmt.Errorf("%d groups or %d bytes are kept already: delete groups that nobody needs", maxGroups, maxBytes)
	errDisk = errors.New("keep the group")
)

// OpenStore reads what is kept in dir. A file that cannot be read is left alone and told.
func OpenStore(dir string, logger *slog.Logger) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of pushed groups: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read pushed groups: %w", err)
	}
	s := &Store{dir: dir, log: logger, groups: map[string]*group{}}
	for _, e := range entries {
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
			logger.Error("A pushed group cannot be read; its file is left alone", "file", filepath.Join(dir, e.Name()), "err", err)
			continue
		}
		s.groups[key(g.labels)] = g
		s.bytes += g.size()
	}
	return s, nil
}

func (s *Store) file(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:])+fileEnd)
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func atMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func encode(g *group) ([]byte, error) {
	body := g.body()
	line, err := json.Marshal(header{
		Version: 1, Labels: g.labels, Pushed: millis(g.pushed), Failed: millis(g.failed),
		Bytes: len(body), Checksum: crc32.Checksum(body, castagnoli),
	})
	return append(append(line, '\n'), body...), err
}

func decode(text []byte) (*group, error) {
	line, body, _ := bytes.Cut(text, []byte("\n"))
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("read its first line: %w", err)
	}
	switch {
	case h.Version != 1:
		return nil, fmt.Errorf("its version is %d, this build knows 1", h.Version)
	case len(body) != h.Bytes || crc32.Checksum(body, castagnoli) != h.Checksum:
		return nil, errors.New("it is damaged")
	}
	g := &group{labels: h.Labels, families: map[string][]byte{}, pushed: atMillis(h.Pushed), failed: atMillis(h.Failed)}
	for len(body) > 0 {
		family, n := protowire.ConsumeBytes(body)
		if n < 0 {
			return nil, fmt.Errorf("read a family: %w", protowire.ParseError(n))
		}
		name, err := nameOf(family)
		if err != nil {
			return nil, err
		}
		g.families[name], body = body[:n:n], body[n:]
	}
	return g, nil
}

// nameOf reads field 1 of a family.
func nameOf(family []byte) (string, error) {
	for len(family) > 0 {
		number, kind, n := protowire.ConsumeTag(family)
		if n < 0 {
			return "", fmt.Errorf("read a family: %w", protowire.ParseError(n))
		}
		if number == 1 && kind == protowire.BytesType {
			name, n := protowire.ConsumeBytes(family[n:])
			if n < 0 {
				return "", fmt.Errorf("read a family: %w", protowire.ParseError(n))
			}
			return string(name), nil
		}
		m := protowire.ConsumeFieldValue(number, kind, family[n:])
		if m < 0 {
			return "", fmt.Errorf("read a family: %w", protowire.ParseError(m))
		}
		family = family[n+m:]
	}
	return "", errors.New("a family has no name")
}

// change makes of a group what f says, durably; f gets nil for one that is new, and returns
// nil for one that is to go. What f returns is not changed afterwards.
func (s *Store) change(labels map[string]string, f func(old *group) *group) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key(labels)
	old := s.groups[k]
	next := f(old)
	bytes := s.bytes
	if old != nil {
		bytes -= old.size()
	}
	if next == nil {
		if old == nil {
			return nil
		}
		if err := s.remove(s.file(k)); err != nil {
			return fmt.Errorf("%w: %w", errDisk, err)
		}
		delete(s.groups, k)
		s.bytes = bytes
		return nil
	}
	bytes += next.size()
	if old == nil && len(s.groups) >= maxGroups || bytes > maxBytes && bytes > s.bytes {
		return errFull
	}
	if err := s.save(s.file(k), next); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	s.groups[k], s.bytes = next, bytes
	return nil
}

// all are the groups in a steady order.
func (s *Store) all() []*group {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*group, 0, len(s.groups))
	for _, k := range slices.Sorted(maps.Keys(s.groups)) {
		out = append(out, s.groups[k])
	}
	return out
}

// save puts g in the place of the file, so that a power cut leaves one or the other.
func (s *Store) save(name string, g *group) error {
	text, err := encode(g)
	if err != nil {
		return err
	}
	next := name + ".new"
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
	if err := os.Rename(next, name); err != nil {
		return err
	}
	return s.syncDir()
}

func (s *Store) remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.syncDir()
}

// syncDir makes names in the directory durable, where directories can be synced.
func (s *Store) syncDir() error {
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission) {
		err = nil // Windows keeps the order by itself
	}
	return errors.Join(err, d.Close())
}
