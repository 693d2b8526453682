package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"hwsagent/probes"
)

// zfsKinds are the files of /proc/spl/kstat/zfs, and their names in node_exporter's metrics.
var zfsKinds = []struct{ file, name string }{
	{"abdstats", "abd"}, {"arcstats", "arc"}, {"dbufstats", "dbuf"}, {"dmu_tx", "dmu_tx"}, {"dnodestats", "dnode"}, {"fm", "fm"},
	{"vdev_cache_stats", "vdev_cache"}, {"vdev_mirror_stats", "vdev_mirror"}, {"xuio_stats", "xuio"}, {"zfetchstats", "zfetch"}, {"zil", "zil"},
}

// zfsStates are the states of a pool.
var zfsStates = []string{"online", "degraded", "faulted", "offline", "removed", "unavail", "suspended"}

// zfs reads ZFS: the statistics of the module and of each pool. A pool may hang, so each is read under guard.
type zfs struct {
	dir    string
	module *once
	pools  *devices
}

// zfsFamilies are the families of the fields that this version of ZFS has. It is safe for concurrent use, because pools are read at the same time.
type zfsFamilies struct {
	mu  sync.Mutex
	all map[string]*probes.Family
}

// of returns the family of a name: a field of a file.
func (c *zfsFamilies) of(name, field, of string) *probes.Family {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.all[name]
	if f == nil {
		f = untyped(name, "The field "+field+" of kstat zfs/"+of+".")
		c.all[name] = f
	}
	return f
}

func newZFS(e *environment) reader {
	dir := e.proc("spl/kstat/zfs")
	families := &zfsFamilies{all: make(map[string]*probes.Family)}
	z := &zfs{dir: dir, module: newOnce(e, func() (samples, error) { return zfsModule(dir, families) })}
	z.pools = &devices{dir: dir, guard: guard[samples]{limit: e.limit, panics: e.panics}}
	z.pools.query = func(name string) samples { return zfsPool(dir, name, families) }
	return z
}

func (z *zfs) read(ctx context.Context, r *probes.Round) error {
	err := z.module.read(ctx, r)
	if errors.Is(err, errAbsent) {
		return err
	}
	pools := z.pools.read(ctx, r)
	if errors.Is(pools, errAbsent) {
		pools = nil // no pool is imported
	}
	return errors.Join(err, pools)
}

// zfsModule reads the statistics that do not belong to a pool.
func zfsModule(dir string, families *zfsFamilies) (samples, error) {
	var s samples
	var errs []error
	found := false
	for _, kind := range zfsKinds {
		b, err := (&file{path: dir + "/" + kind.file}).read()
		if errors.Is(err, fs.ErrNotExist) {
			continue // they vary between versions of ZFS
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = true
		values, _ := kstats(b)
		if values == nil {
			errs = append(errs, fmt.Errorf("parse %s/%s: it has no table", dir, kind.file))
		}
		for _, v := range values {
			name := "node_zfs_" + kind.name + "_" + strings.ReplaceAll(v.name, "-", "_")
			s.add(families.of(name, v.name, kind.file), v.value)
		}
	}
	if !found && len(errs) == 0 {
		return nil, errAbsent
	}
	return s, errors.Join(errs...)
}

// zfsPool reads the files of a pool, which may be exported meanwhile.
func zfsPool(dir, pool string, families *zfsFamilies) samples {
	var s samples
	if b, err := (&file{path: dir + "/" + pool + "/io"}).read(); err == nil {
		s.addZFSIO(b, pool, families)
	}
	sets, _ := filepath.Glob(dir + "/" + pool + "/objset-*") // the pattern is valid
	for _, set := range sets {
		b, err := (&file{path: set}).read()
		if err != nil {
			continue
		}
		values, dataset := kstats(b)
		for _, v := range values {
			s.add(families.of("node_zfs_zpool_dataset_"+v.name, v.name, "POOL/objset-*"), v.value, "zpool", pool, "dataset", dataset)
		}
	}
	if state := strings.ToLower(text(dir + "/" + pool + "/state")); state != "" {
		f := gauge("node_zfs_zpool_state", "1 for the state that the pool is in, 0 for the others.")
		for _, name := range zfsStates {
			s.add(f, boolean(name == state), "zpool", pool, "state", name)
		}
	}
	return s
}

// addZFSIO adds the table of a pool's io: after a line of its own kind a line of names, and a line of values.
func (s *samples) addZFSIO(b []byte, pool string, families *zfsFamilies) {
	var names []string
	for line := range lines(b) {
		fields := strings.Fields(string(line))
		if names == nil {
			if len(fields) > 0 && fields[0] == "nread" {
				names = fields
			}
			continue
		}
		for i := range min(len(names), len(fields)) {
			if v, ok := float([]byte(fields[i])); ok {
				s.add(families.of("node_zfs_zpool_"+names[i], names[i], "POOL/io"), v, "zpool", pool)
			}
		}
	}
}

// kstat is a number of a kstat table.
type kstat struct {
	name  string
	value float64
}

// kstats reads a table of names, types and data (kstat(3kstat) of illumos, which ZFS on Linux writes as text). Types 3 and 4
// are numbers of 64 bits. dataset is the field dataset_name, if there is one. No table gives nil.
func kstats(b []byte) (values []kstat, dataset string) {
	for line := range lines(b) {
		name, rest := word(line)
		kind, data := word(rest)
		if values == nil {
			if string(name) == "name" && string(kind) == "type" {
				values = []kstat{}
			}
			continue
		}
		if string(name) == "dataset_name" {
			dataset = strings.TrimSpace(string(data))
			continue
		}
		first, _ := word(data)
		if v, ok := float(first); ok && (string(kind) == "3" || string(kind) == "4") {
			values = append(values, kstat{string(name), v})
		}
	}
	return values, dataset
}
