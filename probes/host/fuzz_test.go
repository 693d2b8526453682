//go:build linux

package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"hwsagent/probes"
)

// FuzzReaders puts any bytes in the place of one file below /proc, /sys or udev's: nothing
// panics, the labels stay legal, and the samples bounded by what there is to read.
func FuzzReaders(f *testing.F) {
	c := fixtures(f)
	c.Collectors = hostOnly
	var files []string
	content := make(map[string][]byte)
	for _, root := range []string{c.ProcPath, c.SysPath, c.UdevPath} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			files = append(files, path)
			content[path], err = os.ReadFile(path)
			return err
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	slices.Sort(files)
	for _, name := range []string{"stat", "meminfo", "net/dev", "diskstats", "mdstat", "loadavg", "net/netstat", "net/snmp", "vmstat", "pressure/io", "mounts"} {
		for i, path := range files {
			if strings.HasSuffix(path, "/proc/"+name) || strings.HasSuffix(path, "/proc/1/"+name) {
				b := content[path]
				f.Add(uint16(i), b[:min(len(b), 4096)])
				f.Add(uint16(i), b[:len(b)/2])
				if name == "mdstat" {
					f.Add(uint16(i), []byte("Personalities : [raid1] [")) // its parser panics
				}
			}
		}
	}
	p, err := New(c, quiet(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, which uint16, b []byte) {
		path := files[int(which)%len(files)]
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.WriteFile(path, content[path], 0o600); err != nil {
				t.Error(err)
			}
		}()
		r := probes.NewRound(0)
		if err := p.Collect(t.Context(), r); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				// procfs' parser of mdstat panics on some rubbish, which is caught: TestPanicIsContained relies on it.
				known := strings.Contains(line, "mdadm: the work panicked: ") && strings.Contains(line, "/mdstat.go:")
				if strings.Contains(line, " panicked: ") && !known {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
		if n := len(r.Samples()); n > 20_000+len(b) {
			t.Errorf("%s: %d samples of %d bytes", path, n, len(b))
		}
		for _, s := range r.Samples() {
			for _, l := range s.Labels {
				if !utf8.ValidString(l) {
					t.Fatalf("%s: %s has the label text %q", path, s.Family.Name, l)
				}
			}
		}
	})
}
