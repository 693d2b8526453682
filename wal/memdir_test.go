package wal

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"hwsagent/wal/internal/disk"
)

// errOff is the error of whatever is asked of a machine that is off.
var errOff = errors.New("machine is off")

// memDir is a directory in memory that knows what a power cut may leave of it, and
// fails on request. What a cut leaves of its files is in inode.
type memDir struct {
	mu      sync.Mutex
	entries map[string]*inode
	durable map[string]*inode // as of the last sync of the directory
	changes []entryChange     // since then, in order
	settled int               // how many changes were made before those
	off     bool              // every change fails from now on
	torn    int               // files of which the cut that left this has torn a write

	// fault is asked before each operation (create, write, sync, truncate, remove,
	// syncdir; not reads). An error fails it; for a write, n bytes are written first.
	fault func(op string) (n int, err error)

	growing bool // the write that fault is asked about goes beyond the end of its file

	// linger is called before each write and sync, if it is set, so that others get a
	// turn meanwhile.
	linger func(op string)

	// struck is asked after each operation, and "sync" and "syncdir" before what they do
	// is certain (they are "synced" and "syncdired" after). An error is what the
	// operation returns. It is called without mu.
	struck func(op, name string) error

	striking sync.Mutex // guards struck, for whoever changes it under a running log

	// unlisted is the error of listing it.
	unlisted error

	// unreadable is asked before each read of a file.
	unreadable func(name string, off int64) error

	// chance, if it is set, decides what of a failed sync has reached the disk after
	// all; nothing if not.
	chance *rand.Rand

	// forgets says that a failed sync of a file drops what it could not write.
	forgets bool

	// journals says that it is as one of Windows: an fsync of a file makes its creation durable, and one of the directory
	// does nothing.
	journals bool

	freeBytes int64
	handles   int // files that are open
}

// entryChange is one change of a directory's entries.
type entryChange struct {
	name    string
	removed bool
	i       *inode
}

func newMemDir() *memDir {
	return &memDir{entries: map[string]*inode{}, durable: map[string]*inode{}, freeBytes: 1 << 40}
}

// files is the number of files.
func (d *memDir) files() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.entries)
}

// memory is about how much memory the files take, in bytes; mu is held.
func (d *memDir) memory() (n int) {
	counted, pieces := map[*inode]bool{}, map[*imagePiece]bool{}
	count := func(i *inode) {
		if !counted[i] {
			counted[i] = true
			n += i.memory(pieces)
		}
	}
	for _, i := range d.entries {
		count(i)
	}
	for _, i := range d.durable {
		count(i)
	}
	for _, c := range d.changes {
		count(c.i)
	}
	return n
}

// crash is what is left after a power cut of a disk that had written nothing but what
// it was asked to make durable.
func (d *memDir) crash() *memDir {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := newMemDir()
	for name, i := range d.durable {
		c.entries[name] = durableInode(i.durable.copy())
	}
	c.durable = maps.Clone(c.entries)
	return c
}

// cut is what one power cut leaves, of all that it may leave.
func (d *memDir) cut(rng *rand.Rand) *memDir {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := maps.Clone(d.durable)
	luck := drawLuck(rng)
	broken := map[string]bool{} // names whose last change was lost: later ones rest on it
	// Creations and removals survive in any combination, but removals among
	// themselves in order: there is no disk that unlinks the second file only.
	removing := true
	for _, r := range d.changes {
		if broken[r.name] || r.removed && !removing || !luck.kept(rng) {
			broken[r.name] = true
			removing = removing && !r.removed
			continue
		}
		delete(left, r.name)
		if !r.removed {
			left[r.name] = r.i
		}
	}
	c := newMemDir()
	for _, name := range slices.Sorted(maps.Keys(left)) {
		b, torn := left[name].cut(rng)
		c.entries[name] = durableInode(b)
		if torn {
			c.torn++
		}
	}
	c.durable = maps.Clone(c.entries)
	return c
}

// kill is what another process finds if this one ends at once.
func (d *memDir) kill() *memDir {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := newMemDir()
	copies := map[*inode]*inode{}
	twin := func(i *inode) *inode {
		if copies[i] == nil {
			copies[i] = &inode{i.data.copy(), i.durable.copy(), slices.Clone(i.changes)}
		}
		return copies[i]
	}
	for name, i := range d.entries {
		c.entries[name] = twin(i)
	}
	for name, i := range d.durable {
		c.durable[name] = twin(i)
	}
	for _, r := range d.changes {
		c.changes = append(c.changes, entryChange{r.name, r.removed, twin(r.i)})
	}
	return c
}

// switchOff makes every change fail from now on. What was read can still be read.
func (d *memDir) switchOff() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
}

func (d *memDir) fails(op string) (int, error) {
	switch {
	case d.off:
		return 0, errOff
	case d.fault == nil:
		return 0, nil
	}
	return d.fault(op)
}

func (d *memDir) pause(op string) {
	if d.linger != nil {
		d.linger(op)
	}
}

// onStrike changes struck under a running log.
func (d *memDir) onStrike(struck func(op, name string) error) {
	d.striking.Lock()
	defer d.striking.Unlock()
	d.struck = struck
}

// strike is what an operation returns that would have returned err.
func (d *memDir) strike(op, name string, err error) error {
	d.striking.Lock()
	struck := d.struck
	d.striking.Unlock()
	if struck != nil { // it may wait for another operation of this directory
		if e := struck(op, name); e != nil {
			return e
		}
	}
	return err
}

func (d *memDir) Open(name string, flag int) (disk.File, error) {
	i, created, err := d.find(name, flag)
	if err != nil {
		return nil, err
	}
	if created {
		if err := d.strike("create", name, nil); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	d.handles++
	d.mu.Unlock()
	return &memFile{d: d, i: i, name: name}, nil
}

func (d *memDir) find(name string, flag int) (i *inode, created bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i = d.entries[name]
	if i == nil && flag&os.O_CREATE == 0 {
		return nil, false, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if flag&os.O_CREATE != 0 {
		if _, err := d.fails("create"); err != nil {
			return nil, false, err
		}
	}
	if i == nil {
		i = &inode{}
		d.entries[name] = i
		d.changes = append(d.changes, entryChange{name, false, i})
	}
	if flag&os.O_TRUNC != 0 {
		i.truncate(0)
	}
	return i, flag&os.O_CREATE != 0, nil
}

func (d *memDir) Remove(name string) error {
	d.mu.Lock()
	_, err := d.fails("remove")
	if i := d.entries[name]; err == nil && i != nil {
		delete(d.entries, name)
		d.changes = append(d.changes, entryChange{name, true, i})
	}
	d.mu.Unlock()
	return d.strike("remove", name, err)
}

func (d *memDir) List() ([]disk.Info, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unlisted != nil {
		return nil, d.unlisted
	}
	var infos []disk.Info
	for _, name := range slices.Sorted(maps.Keys(d.entries)) {
		infos = append(infos, disk.Info{Name: name, Size: int64(d.entries[name].data.size), ModTime: time.Now()})
	}
	return infos, nil
}

// Look has the present as the time of a change, so that the log always looks at the contents as well.
func (d *memDir) Look(name string, f disk.File) (disk.Info, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.entries[name]
	if i == nil {
		return disk.Info{}, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	if f, ok := f.(*memFile); ok && f.i != i {
		return disk.Info{}, disk.ErrReplaced
	}
	return disk.Info{Name: name, Size: int64(i.data.size), ModTime: time.Now()}, nil
}

func (d *memDir) Sync() error {
	d.mu.Lock()
	asked, made := maps.Clone(d.entries), d.settled+len(d.changes)
	d.mu.Unlock()
	if err := d.strike("syncdir", "", nil); err != nil {
		return err
	}
	d.mu.Lock()
	_, err := d.fails("syncdir")
	if n := made - d.settled; err == nil && !d.journals && n > 0 { // or another call has made more durable meanwhile
		d.durable, d.changes, d.settled = asked, slices.Clone(d.changes[n:]), made
	}
	d.mu.Unlock()
	return d.strike("syncdired", "", err)
}

func (d *memDir) Free() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.freeBytes, nil
}

func (d *memDir) Close() error { return nil }

type memFile struct {
	d    *memDir
	i    *inode
	name string
	shut bool
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.unreadable != nil {
		if err := f.d.unreadable(f.name, off); err != nil {
			return 0, err
		}
	}
	n := f.i.data.readAt(p, int(off))
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.pause("write")
	f.d.mu.Lock()
	f.d.growing = int(off)+len(p) > f.i.data.size
	n, err := f.d.fails("write")
	if err != nil {
		p = p[:min(n, len(p))]
	}
	if len(p) > 0 {
		f.i.write(p, int(off))
	}
	f.d.mu.Unlock()
	return len(p), f.d.strike("write", f.name, err)
}

// Sync makes durable what was written when it began: what is written meanwhile may be,
// or not.
func (f *memFile) Sync() error {
	f.d.mu.Lock()
	n := len(f.i.changes)
	f.d.mu.Unlock()
	f.d.pause("sync")
	if err := f.d.strike("sync", f.name, nil); err != nil {
		return err
	}
	f.d.mu.Lock()
	_, err := f.d.fails("sync")
	if err != nil {
		f.i.drop(f.d.chance, f.d.forgets)
	} else if f.i.flush(n); f.d.journals && f.d.entries[f.name] == f.i {
		f.d.durable[f.name] = f.i
	}
	f.d.mu.Unlock()
	return f.d.strike("synced", f.name, err)
}

func (f *memFile) Truncate(size int64) error {
	f.d.mu.Lock()
	_, err := f.d.fails("truncate")
	if err == nil {
		f.i.truncate(int(size))
	}
	f.d.mu.Unlock()
	return f.d.strike("truncate", f.name, err)
}

func (f *memFile) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(f.i.data.size), nil
}

func (f *memFile) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.shut {
		return fs.ErrClosed
	}
	f.shut = true
	f.d.handles--
	return nil
}
