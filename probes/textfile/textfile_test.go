package textfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"hwsagent/probes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var written = time.Unix(1_790_000_000, 0)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, written, written); err != nil {
		t.Fatal(err)
	}
}

func collect(t *testing.T, pattern string) ([]string, error) {
	t.Helper()
	p, err := New(Config{Directory: pattern})
	if err != nil {
		t.Fatal(err)
	}
	r := probes.NewRound(0)
	err = p.Collect(t.Context(), r)
	var all []string
	for _, s := range r.Samples() {
		all = append(all, fmt.Sprintf("%s%q %v", s.Family.Name, s.Labels, s.Value))
	}
	return all, err
}

func TestCollect(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b.prom"), "# TYPE backup_ok gauge\nbackup_ok{job=\"db\"} 1\n")
	write(t, filepath.Join(dir, "a.prom"), "apt_upgrades_pending 3\n")
	write(t, filepath.Join(dir, "a.prom.tmp"), "half ")
	write(t, filepath.Join(dir, "README"), "no metrics")
	got, err := collect(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"apt_upgrades_pending[] 3",
		fmt.Sprintf("node_textfile_mtime_seconds[\"file\" %q] 1.79e+09", filepath.Join(dir, "a.prom")),
		`backup_ok["job" "db"] 1`,
		fmt.Sprintf("node_textfile_mtime_seconds[\"file\" %q] 1.79e+09", filepath.Join(dir, "b.prom")),
		"node_textfile_scrape_error[] 0",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Each bad file costs itself: the good one is read, the error metric is 1, and the bad one has no mtime.
func TestBadFiles(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"malformed": func(t *testing.T, path string) { write(t, path, "bad_before 1\nbad\n") },
		"timestamp": func(t *testing.T, path string) { write(t, path, "bad_ts 1 1790000000000\n") },
		"too large": func(t *testing.T, path string) {
			write(t, path, "x 1\n")
			if err := os.Truncate(path, maxFileBytes+1); err != nil {
				t.Fatal(err)
			}
		},
		"directory": func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"dangling link": func(t *testing.T, path string) {
			if err := os.Symlink(path+".gone", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "good.prom"), "good 1\n")
			spoil(t, filepath.Join(dir, "bad.prom"))
			got, err := collect(t, dir)
			if !errors.Is(err, probes.ErrPartial) || !strings.Contains(err.Error(), "bad.prom") {
				t.Errorf("error %v does not name the file, or is not partial", err)
			}
			want := []string{
				"good[] 1", fmt.Sprintf("node_textfile_mtime_seconds[\"file\" %q] 1.79e+09", filepath.Join(dir, "good.prom")),
				"node_textfile_scrape_error[] 1",
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestDirectories(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "one", "m", "x.prom"), "x 1\n")
	write(t, filepath.Join(root, "two", "m", "y.prom"), "y 1\n")
	got, err := collect(t, filepath.Join(root, "*", "m"))
	if err != nil || len(got) != 5 {
		t.Errorf("%v %q", err, got)
	}
	got, err = collect(t, filepath.Join(root, "absent"))
	if !errors.Is(err, os.ErrNotExist) || len(got) != 1 || got[0] != "node_textfile_scrape_error[] 1" {
		t.Errorf("a directory that is not there: %v %q", err, got)
	}
	for _, bad := range []string{"", "relative", "/a/[b"} {
		if _, err := New(Config{Directory: bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
