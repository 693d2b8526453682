package wal

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"sync"
	"time"
)

// memDir is a directory in memory that knows what a power cut would leave of it, and
// fails on request.
type memDir struct {
	mu      sync.Mutex
	entries map[string]*inode
	durable map[string]*inode // as of the last sync of the directory

	// fault is asked before each operation (create, write, sync, truncate, remove,
	// syncdir; not reads). An error fails it; for a write, n bytes are written first.
	fault func(op string) (n int, err error)

	// linger is called before each write and sync, if it is set, so that others get a
	// turn meanwhile.
	linger func(op string)

	// unreadable is asked before each read of a file.
	unreadable func(name string, off int64) error

	freeBytes int64
}

type inode struct {
	data    []byte
	durable []byte
	lost    [][2]int // what a failed sync has dropped: it reads back until a power cut
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

// crash is what is left after a power cut.
func (d *memDir) crash() *memDir {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := newMemDir()
	for name, i := range d.durable {
		b := append([]byte(nil), i.durable...)
		c.entries[name] = &inode{data: b, durable: b}
	}
	c.durable = maps.Clone(c.entries)
	return c
}

// kill is what another process finds if this one ends at once.
func (d *memDir) kill() *memDir {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := newMemDir()
	for name, i := range d.entries {
		c.entries[name] = &inode{data: append([]byte(nil), i.data...), durable: append([]byte(nil), i.durable...)}
		if d.durable[name] == i {
			c.durable[name] = c.entries[name]
		}
	}
	return c
}

func (d *memDir) fails(op string) (int, error) {
	if d.fault == nil {
		return 0, nil
	}
	return d.fault(op)
}

func (d *memDir) pause(op string) {
	if d.linger != nil {
		d.linger(op)
	}
}

func (d *memDir) open(name string, flag int) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.entries[name]
	if i == nil && flag&os.O_CREATE == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if flag&os.O_CREATE != 0 {
		if _, err := d.fails("create"); err != nil {
			return nil, err
		}
	}
	if i == nil {
		i = &inode{}
		d.entries[name] = i
	}
	if flag&os.O_TRUNC != 0 {
		i.truncate(0)
	}
	return &memFile{d, i, name}, nil
}

func (d *memDir) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.fails("remove"); err != nil {
		return err
	}
	delete(d.entries, name)
	return nil
}

func (d *memDir) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.fails("rename"); err != nil {
		return err
	}
	d.entries[to] = d.entries[from]
	delete(d.entries, from)
	return nil
}

func (d *memDir) list() ([]fileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var infos []fileInfo
	for name, i := range d.entries {
		infos = append(infos, fileInfo{name: name, size: int64(len(i.data)), modTime: time.Now()})
	}
	return infos, nil
}

func (d *memDir) sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.fails("syncdir"); err != nil {
		return err
	}
	d.durable = maps.Clone(d.entries)
	return nil
}

func (d *memDir) free() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.freeBytes, nil
}

func (d *memDir) close() error { return nil }

type memFile struct {
	d    *memDir
	i    *inode
	name string
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.unreadable != nil {
		if err := f.d.unreadable(f.name, off); err != nil {
			return 0, err
		}
	}
	if off >= int64(len(f.i.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.i.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.pause("write")
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, err := f.d.fails("write")
	if err != nil {
		p = p[:min(n, len(p))]
	}
	if grow := int(off) + len(p) - len(f.i.data); grow > 0 {
		f.i.data = append(f.i.data, make([]byte, grow)...)
	}
	return copy(f.i.data[off:], p), err
}

func (f *memFile) Sync() error {
	f.d.pause("sync")
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if _, err := f.d.fails("sync"); err != nil {
		f.i.lost = append(f.i.lost, [2]int{len(f.i.durable), len(f.i.data)})
		return err
	}
	f.i.durable = append(f.i.durable[:0], f.i.data...)
	for _, r := range f.i.lost {
		clear(f.i.durable[min(r[0], len(f.i.durable)):min(r[1], len(f.i.durable))])
	}
	return nil
}

func (f *memFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if _, err := f.d.fails("truncate"); err != nil {
		return err
	}
	f.i.truncate(int(size))
	return nil
}

func (i *inode) truncate(size int) {
	i.data = i.data[:size]
	if size == 0 {
		i.data, i.lost = nil, nil
	}
}

func (f *memFile) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(len(f.i.data)), nil
}

func (f *memFile) Close() error { return nil }
