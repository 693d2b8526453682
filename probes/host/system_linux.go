package host

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hwsagent/probes"
)

// uname reads kernel and machine by uname(2).
type uname struct{ info *probes.Family }

func newUname(*environment) reader {
	return &uname{gauge("node_uname_info", "The kernel and the machine's name, by uname(2); always 1.")}
}

func (u *uname) read(_ context.Context, r *probes.Round) error {
	var n unix.Utsname
	if err := unix.Uname(&n); err != nil {
		return fmt.Errorf("uname: %w", err)
	}
	str := func(b []byte) string { return unix.ByteSliceToString(b) }
	r.Add(u.info, 1,
		"domainname", str(n.Domainname[:]), "machine", str(n.Machine[:]), "nodename", str(n.Nodename[:]),
		"release", str(n.Release[:]), "sysname", str(n.Sysname[:]), "version", str(n.Version[:]))
	return nil
}

// osRelease reads os-release(5).
type osRelease struct {
	files                     [2]file
	majorMinor                *regexp.Regexp
	info, version, supportEnd *probes.Family
}

func newOSRelease(e *environment) reader {
	root := strings.TrimRight(e.RootFSPath, "/")
	return &osRelease{
		files:      [2]file{{path: root + "/etc/os-release"}, {path: root + "/usr/lib/os-release"}},
		majorMinor: regexp.MustCompile(`^[0-9]+(\.[0-9]+)?`),
		info:       gauge("node_os_info", "What /etc/os-release says; always 1."),
		version:    gauge("node_os_version", "Major and minor version of the operating system."),
		supportEnd: gauge("node_os_support_end_timestamp_seconds", "When support of the operating system ends, in seconds since the epoch."),
	}
}

func (o *osRelease) read(_ context.Context, r *probes.Round) error {
	b, err := o.files[0].read()
	if err != nil {
		if b, err = o.files[1].read(); err != nil {
			return optional(err)
		}
	}
	v := make(map[string]string)
	for line := range lines(b) {
		key, value, ok := strings.Cut(strings.TrimSpace(string(line)), "=")
		if ok && key[:min(1, len(key))] != "#" {
			v[key] = unquote(value)
		}
	}
	var labels []string
	for _, name := range [...]string{
		"build_id", "id", "id_like", "image_id", "image_version", "name", "pretty_name",
		"variant", "variant_id", "version", "version_codename", "version_id",
	} {
		labels = append(labels, name, v[strings.ToUpper(name)])
	}
	r.Add(o.info, 1, labels...)
	if n, err := strconv.ParseFloat(o.majorMinor.FindString(v["VERSION_ID"]), 64); err == nil && n > 0 {
		r.Add(o.version, n, "id", v["ID"], "id_like", v["ID_LIKE"], "name", v["NAME"])
	}
	if end, err := time.Parse(time.DateOnly, v["SUPPORT_END"]); err == nil {
		r.Add(o.supportEnd, float64(end.Unix()))
	}
	return nil
}

// unquote undoes the shell quoting that os-release(5) allows.
func unquote(s string) string {
	if n := len(s); n >= 2 && s[0] == s[n-1] && (s[0] == '"' || s[0] == '\'') {
		if s[0] == '\'' {
			return s[1 : n-1]
		}
		s = s[1 : n-1]
	}
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// fileFD reads how many files are open, and the limit.
type fileFD struct {
	file               file
	allocated, maximum *probes.Family
}

func newFileFD(e *environment) reader {
	return &fileFD{
		file:      file{path: e.proc("sys/fs/file-nr")},
		allocated: gauge("node_filefd_allocated", "Open files."),
		maximum:   gauge("node_filefd_maximum", "How many files may be open."),
	}
}

func (f *fileFD) read(_ context.Context, r *probes.Round) error {
	b, err := f.file.read()
	if err != nil {
		return err
	}
	for line := range lines(b) {
		first, rest := word(line)
		_, rest = word(rest) // allocated and unused: always 0 since Linux 2.6
		third, _ := word(rest)
		allocated, ok1 := float(first)
		maximum, ok2 := float(third)
		if !ok1 || !ok2 {
			return fmt.Errorf("parse %s: want three numbers, got %q", f.file.path, line)
		}
		r.Add(f.allocated, allocated)
		r.Add(f.maximum, maximum)
		return nil
	}
	return fmt.Errorf("parse %s: it is empty", f.file.path)
}

// entropy reads the random number generator's pool.
type entropy struct {
	dir             string
	available, size *probes.Family
}

func newEntropy(e *environment) reader {
	return &entropy{
		dir:       e.proc("sys/kernel/random"),
		available: gauge("node_entropy_available_bits", "Entropy in the kernel's pool."),
		size:      gauge("node_entropy_pool_size_bits", "Size of the kernel's entropy pool."),
	}
}

func (e *entropy) read(_ context.Context, r *probes.Round) error {
	available, ok1 := number(e.dir + "/entropy_avail")
	if ok1 {
		r.Add(e.available, available)
	}
	size, ok2 := number(e.dir + "/poolsize")
	if ok2 {
		r.Add(e.size, size)
	}
	if !ok1 && !ok2 {
		return errAbsent
	}
	return nil
}
