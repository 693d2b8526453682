package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hwsagent/probes/tape"
)

// Files of /proc in a recording: they describe the machine, but not programs, users and addresses.
var recordedProc = []string{
	"stat", "meminfo", "loadavg", "vmstat", "diskstats", "mdstat", "schedstat", "interrupts", "net/dev", "net/netstat", "net/snmp", "net/snmp6", "net/sockstat", "net/sockstat6", "net/softnet_stat",
	"net/rpc/nfs", "net/rpc/nfsd", "pressure/*", "fs/xfs/stat", "spl/kstat/zfs/*", "sys/fs/file-nr", "sys/kernel/random/entropy_avail", "sys/kernel/random/poolsize", "sys/kernel/threads-max",
	"sys/kernel/pid_max", "sys/net/netfilter/nf_conntrack_*",
}

// recordedSys lists directories of /sys whose entries are devices or lead to some, and how deep below such a device
// files are recorded.
var recordedSys = []struct {
	dir   string
	depth int
}{
	{"class/hwmon", 1}, {"class/thermal", 1}, {"class/power_supply", 1}, {"class/powercap", 1}, {"class/nvme", 2}, {"class/net", 2}, {"class/fc_host", 2}, {"class/infiniband", 4}, {"class/scsi_tape", 2},
	{"class/scsi_host", 1}, {"class/dmi", 1}, {"class/watchdog", 1}, {"block", 3}, {"bus/pci/devices", 1}, {"class/drm", 0}, {"class/enclosure", 1}, {"devices/system/cpu", 2}, {"devices/system/edac/mc", 3}, {"devices/system/clocksource", 2},
	{"fs/xfs", 3}, {"fs/bcache", 3},
}

// skipped reports whether to skip a name below a device: reading it is large, slow or has an effect, or it says nothing
// about the hardware.
func skipped(name string) bool {
	switch name {
	case "power", "trace", "queues", "msi_irqs", "rom", "config", "uevent", "vpd", "remove", "rescan", "reset", "driver_override", "modalias", "inquiry", "cache", "cpuidle", "microcode", "hotplug",
		"crash_notes", "crash_notes_size", "integrity", "mq", "trip_point_policy",
		"dhchap_secret", "dhchap_ctrl_secret", "config_info", "backing_file", "fw_dump", "nvram", "optrom", "dbgmsg": // secrets, files of people, and dumps
		return true
	}
	return strings.HasPrefix(name, "resource") || strings.HasPrefix(name, "virtfn") || strings.HasPrefix(name, "vpd_")
}

const (
	maxEntries  = 60_000 // of a recording
	dirsAtOnce  = 64     // that are read at a time
	maxFileSize = 64 << 10
)

// Record records the files of /proc, /sys and udev's database that describe the machine's hardware. It skips a
// directory whose files do not answer within read_timeout, and names it in the error.
func (p *Probe) Record(ctx context.Context, t *tape.Tape) error {
	w := &treeWalk{env: p.env, tape: t, seen: map[string]bool{}, depth: map[string]int{}}
	for _, pattern := range recordedProc {
		matches, err := filepath.Glob(p.env.proc(pattern))
		if err != nil {
			return fmt.Errorf("find files of %s: %w", pattern, err)
		}
		w.files = append(w.files, matches...)
	}
	for _, from := range recordedSys {
		w.class(p.env.sys(from.dir), from.depth)
	}
	w.udev()
	if w.full {
		return fmt.Errorf("the machine has more than %d files to record; the rest is left out", maxEntries)
	}
	return w.read(ctx)
}

// treeWalk finds the files to record, and then reads them.
type treeWalk struct {
	env   *environment
	tape  *tape.Tape
	files []string
	seen  map[string]bool // links and files that have been handled
	depth map[string]int  // how deep below a directory has been handled
	full  bool
}

// first reports whether a path is seen for the first time.
func (w *treeWalk) first(name string) bool {
	if w.seen[name] {
		return false
	}
	if len(w.seen) >= maxEntries {
		w.full = true
		return false
	}
	w.seen[name] = true
	return true
}

// class adds each entry of a directory with depth levels of directories below it.
func (w *treeWalk) class(dir string, depth int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // this kernel has no such devices
	}
	for _, e := range entries {
		switch name := dir + "/" + e.Name(); {
		case e.Type()&fs.ModeSymlink != 0:
			w.link(name, depth)
		case e.IsDir():
			w.device(name, depth)
		case e.Type().IsRegular() && !skipped(e.Name()) && w.first(name):
			w.files = append(w.files, name)
		}
	}
}

// link adds a link and, within /sys, the device that it leads to.
func (w *treeWalk) link(name string, depth int) {
	to, err := os.Readlink(name)
	if err != nil || filepath.IsAbs(to) {
		return
	}
	real := path.Join(path.Dir(name), to)
	if !strings.HasPrefix(real, w.env.SysPath+"/") || !w.first(name) {
		return
	}
	w.tape.Add(w.recorded(name), isLink, []byte(to))
	if depth >= 0 && strings.HasPrefix(real, w.env.sys("devices/")) {
		w.device(real, depth)
		w.above(real)
	}
}

// device adds the files of a directory, the links to the device and its driver, and depth levels of directories.
func (w *treeWalk) device(dir string, depth int) {
	if before, done := w.depth[dir]; done && before >= depth {
		return
	}
	w.depth[dir] = depth
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := dir + "/" + e.Name()
		switch {
		case skipped(e.Name()):
		case e.Type()&fs.ModeSymlink != 0 && e.Name() == "device":
			w.link(name, 0)
		case e.Type()&fs.ModeSymlink != 0:
			w.link(name, -1)
		case e.IsDir() && depth > 0:
			w.device(name, depth-1)
		case e.Type().IsRegular() && w.first(name):
			w.files = append(w.files, name)
		}
	}
}

// above adds the files in the directories above a device that are needed for the name of its place.
func (w *treeWalk) above(real string) {
	for dir := path.Dir(real); strings.HasPrefix(dir, w.env.sys("devices/")); dir = path.Dir(dir) {
		for _, name := range [...]string{"name", "type", "model", "serial", "wwid"} {
			if file := dir + "/" + name; w.first(file) {
				w.files = append(w.files, file)
			}
		}
		if strings.HasPrefix(path.Base(dir), "ata") {
			w.device(dir+"/ata_port", 1)
		}
	}
}

// udev adds the properties of block devices, whether one is a part of an array, and its name; and the names of PCI devices.
func (w *treeWalk) udev() {
	for _, pattern := range [...]string{"/b*:*", "/+pci:*"} {
		matches, _ := filepath.Glob(w.env.UdevPath + pattern) // the pattern is valid
		w.files = append(w.files, matches...)
	}
}

// recorded returns a path of this machine in its recorded form.
func (w *treeWalk) recorded(name string) string {
	for _, part := range [...]struct{ name, root string }{{procPart, w.env.ProcPath}, {sysPart, w.env.SysPath}, {udevPart, w.env.UdevPath}} {
		if rest, ok := strings.CutPrefix(name, strings.TrimRight(part.root, "/")+"/"); ok {
			return part.name + "/" + rest
		}
	}
	return name
}

type content struct {
	name string
	text []byte
}

// read reads the files, directory by directory: if a driver hangs, only its directory is lost.
func (w *treeWalk) read(ctx context.Context) error {
	byDir := map[string][]string{}
	var dirs []string
	for _, name := range w.files {
		dir := path.Dir(name)
		if byDir[dir] == nil {
			dirs = append(dirs, dir)
		}
		byDir[dir] = append(byDir[dir], name)
	}
	slow := guard[[]content]{limit: w.env.limit, panics: w.env.panics}
	var errs []error
	for some := range slices.Chunk(dirs, dirsAtOnce) {
		if ctx.Err() != nil {
			return errors.Join(append(errs, fmt.Errorf("not all was read: %w", context.Cause(ctx)))...)
		}
		for i, o := range slow.all(ctx, some, func(dir string) []content { return contents(byDir[dir]) }) {
			if o.err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", some[i], o.err))
			}
			for _, c := range o.value {
				w.tape.Add(w.recorded(c.name), isFile, c.text)
			}
		}
	}
	return errors.Join(errs...)
}

// contents reads the files that can be read and are text.
func contents(names []string) (all []content) {
	for _, name := range names {
		if skipped(path.Base(name)) {
			continue
		}
		b, err := (&file{path: name}).readUpTo(maxFileSize)
		if err != nil || bytes.IndexByte(b, 0) >= 0 {
			continue
		}
		if base := path.Base(name); strings.HasPrefix(base, "b") && strings.Contains(base, ":") || strings.HasPrefix(base, "+pci:") { // a file of udev's database
			b = udevKept(b)
		}
		all = append(all, content{name, bytes.Clone(b)})
	}
	return all
}

// udevKept returns the lines of a device's properties that describe its type, without its serial number and the names
// of file systems and volumes.
func udevKept(b []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(b) {
		for _, key := range [...]string{"E:ID_ATA", "E:MD_UUID=", "E:MD_LEVEL=", "E:ID_MODEL=", "E:ID_REVISION=", "E:ID_BUS=", "E:ID_PATH=", "E:ID_VENDOR_FROM_DATABASE=", "E:ID_MODEL_FROM_DATABASE="} {
			if bytes.HasPrefix(line, []byte(key)) {
				out.Write(line)
				break
			}
		}
	}
	return out.Bytes()
}
