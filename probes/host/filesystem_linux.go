package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hwsagent/probes"
)

// filesystem reads the size of every mounted file system. A mount whose server is gone may block statfs(2)
// indefinitely, so each is read under guard.
type filesystem struct {
	mounts, fallback          file
	root                      string // directory of the mount points, "" for /
	excludePoint, excludeType *regexp.Regexp
	guard                     guard[statfsAnswer]
	statfs                    func(path string, buf *unix.Statfs_t) error

	size, free, avail, files, filesFree, readonly, failed, info *probes.Family
}

type statfsAnswer struct {
	unix.Statfs_t
	err error
}

// mount is one line of mountinfo(5).
type mount struct {
	device, point, fstype, major, minor string
	readonly                            bool
}

func newFilesystem(e *environment) reader {
	return &filesystem{
		// Process 1 sees the machine's mounts even if the agent has its own mount namespace; hidepid may forbid reading
		// them.
		mounts:       file{path: e.proc("1/mountinfo")},
		fallback:     file{path: e.proc("self/mountinfo")},
		root:         strings.TrimRight(e.RootFSPath, "/"),
		excludePoint: e.pattern(&e.MountPointsExclude),
		excludeType:  e.pattern(&e.FSTypesExclude),
		guard:        guard[statfsAnswer]{limit: e.limit, panics: e.panics},
		statfs:       unix.Statfs,
		size:         gauge("node_filesystem_size_bytes", "Size of the file system."),
		free:         gauge("node_filesystem_free_bytes", "Free space, including what is reserved for root."),
		avail:        gauge("node_filesystem_avail_bytes", "Free space that is there for ordinary users."),
		files:        gauge("node_filesystem_files", "Inodes of the file system."),
		filesFree:    gauge("node_filesystem_files_free", "Free inodes."),
		readonly:     gauge("node_filesystem_readonly", "Whether the file system is mounted read-only."),
		failed:       gauge("node_filesystem_device_error", "Whether the file system did not tell its size, or not in time."),
		info:         gauge("node_filesystem_mount_info", "The device numbers behind the mount point; always 1."),
	}
}

func (f *filesystem) read(ctx context.Context, r *probes.Round) error {
	b, err := readMounts(&f.mounts, &f.fallback)
	if err != nil {
		return err
	}
	mounts := f.parse(b)
	points := make([]string, 0, len(mounts))
	for _, m := range mounts {
		if !slices.Contains(points, m.point) {
			points = append(points, m.point)
		}
	}
	answers := make(map[string]outcome[statfsAnswer], len(points))
	for i, a := range f.guard.all(ctx, points, f.ask) {
		answers[points[i]] = a
	}
	var errs []error
	for _, m := range mounts {
		a := answers[m.point]
		labels := []string{"device", m.device, "fstype", m.fstype, "mountpoint", m.point}
		r.Add(f.readonly, boolean(m.readonly), labels...)
		r.Add(f.failed, boolean(a.err != nil || a.value.err != nil), labels...)
		switch {
		case a.err != nil: // it hangs
			errs = append(errs, fmt.Errorf("%s: %w", m.point, a.err))
			continue
		case a.value.err != nil: // it returned an error, which node_filesystem_device_error reports
			continue
		}
		block := float64(a.value.Bsize)
		r.Add(f.size, float64(a.value.Blocks)*block, labels...)
		r.Add(f.free, float64(a.value.Bfree)*block, labels...)
		r.Add(f.avail, float64(a.value.Bavail)*block, labels...)
		r.Add(f.files, float64(a.value.Files), labels...)
		r.Add(f.filesFree, float64(a.value.Ffree), labels...)
		r.Add(f.info, 1, "device", m.device, "major", m.major, "minor", m.minor, "mountpoint", m.point)
	}
	return errors.Join(errs...)
}

// readMounts reads mountinfo of process 1, or that of the agent if the first is missing or unreadable.
func readMounts(first, fallback *file) ([]byte, error) {
	b, err := first.read()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return fallback.read()
	}
	return b, err
}

// ask calls statfs(2), which may hang.
func (f *filesystem) ask(point string) statfsAnswer {
	path := f.root + point
	var a statfsAnswer
	for {
		a.err = f.statfs(path, &a.Statfs_t)
		if !errors.Is(a.err, unix.EINTR) {
			return a
		}
	}
}

// parse returns the selected mounts, each once: a later mount of the same device, point and type hides the earlier one.
func (f *filesystem) parse(b []byte) []mount {
	var mounts []mount
	for line := range lines(b) {
		m, ok := parseMount(line)
		if !ok {
			continue
		}
		if f.root != "" {
			m.point = strings.TrimPrefix(m.point, f.root)
			if m.point == "" {
				m.point = "/"
			}
		}
		if f.excludePoint.MatchString(m.point) || f.excludeType.MatchString(m.fstype) {
			continue
		}
		same := func(o mount) bool {
			return o.device == m.device && o.point == m.point && o.fstype == m.fstype
		}
		if !slices.ContainsFunc(mounts, same) {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

// parseMount reads "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw".
func parseMount(line []byte) (m mount, ok bool) {
	left, right, ok := bytes.Cut(line, []byte(" - "))
	fields, super := bytes.Fields(left), bytes.Fields(right)
	if !ok || len(fields) < 6 || len(super) < 3 {
		return m, false
	}
	m.major, m.minor, ok = strings.Cut(string(fields[2]), ":")
	m.point = unescape(fields[4])
	m.fstype = unescape(super[0])
	m.device = unescape(super[1])
	m.readonly = option(fields[5], "ro") || option(super[2], "ro") || option(super[2], "emergency_ro")
	return m, ok
}

func option(options []byte, name string) bool {
	for o := range bytes.SplitSeq(options, []byte(",")) {
		if string(o) == name {
			return true
		}
	}
	return false
}

// unescape replaces the octal escapes that the kernel writes for white space,
// backslash and # in mountinfo.
func unescape(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b)
	}
	var out []byte
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+4 <= len(b) {
			if v, err := strconv.ParseUint(string(b[i+1:i+4]), 8, 8); err == nil {
				out = append(out, byte(v))
				i += 3
				continue
			}
		}
		out = append(out, b[i])
	}
	return string(out)
}
