//go:build linux

package host

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sys/unix"

	"hwsagent/probes/tape"
	"hwsagent/probes/tape/tapetest"
)

// A recording read elsewhere gives the same hw_*; redacted, the same but for serial numbers and addresses.
func TestReplay(t *testing.T) {
	for name, c := range map[string]Config{"server": server(t, unchanged), "fixtures": fixtures(t)} {
		c.Collectors = hardwareNames
		want := tapetest.Collect(t, mustNew(t, c))
		ids := numbersOf(t, c)
		for _, keep := range [][]string{tape.Kinds(), nil} {
			taped, p := tape.New("host"), mustNew(t, c)
			if err := p.Record(t.Context(), taped); err != nil {
				t.Fatal(err)
			}
			read, text := tapetest.File(t, taped, p, keep...)
			again, err := Replay(read, t.TempDir(), quiet())
			if err != nil {
				t.Fatal(err)
			}
			bare := keep == nil
			got, want := tapetest.Lines(tapetest.Collect(t, again), bare), tapetest.Lines(want, bare)
			for _, l := range got {
				if !slices.Contains(want, l) {
					t.Errorf("%s, kept %q: more: %s", name, keep, l)
				}
			}
			for _, l := range want {
				if !slices.Contains(got, l) {
					t.Errorf("%s, kept %q: less: %s", name, keep, l)
				}
			}
			for _, id := range ids {
				if strings.Contains(strings.ToLower(text), strings.ToLower(id)) != (keep != nil) {
					t.Errorf("%s, kept %q: whether %q is in the recording is %v", name, keep, id, keep == nil)
				}
			}
		}
	}
}

// numbersOf returns the serial numbers and hardware addresses that the tree has in files of these names.
func numbersOf(t *testing.T, c Config) (all []string) {
	t.Helper()
	word := regexp.MustCompile(`^[0-9A-Za-z:-]{6,40}$`)
	for _, pattern := range []string{"class/dmi/id/*_serial", "class/net/*/address", "class/nvme/*/serial", "block/*/device/wwid", "class/power_supply/*/serial_number", "class/drm/*/device/unique_id"} {
		files, _ := filepath.Glob(filepath.Join(c.SysPath, pattern))
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				continue
			}
			if id := strings.TrimSpace(string(b)); word.MatchString(id) && strings.Trim(id, "0:") != "" && !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
	}
	if len(all) < 2 {
		t.Fatalf("the tree has no serial numbers: %q", all)
	}
	return all
}

// A driver that hangs costs the files of its directory, and is named.
func TestRecordHung(t *testing.T) {
	c := server(t, unchanged)
	c.ReadTimeout = model.Duration(200 * time.Millisecond)
	file := filepath.Join(c.SysPath, "devices/virtual/thermal/thermal_zone0/temp")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	taped := tape.New("host")
	err := mustNew(t, c).Record(t.Context(), taped)
	if err != nil { // a fifo is not a regular file, and is skipped
		t.Fatal(err)
	}
	for _, e := range taped.Exchanges {
		if strings.HasSuffix(e.Ask, "thermal_zone0/temp") {
			t.Errorf("%+v", e)
		}
	}
	name := strings.Replace(file, "/temp", "/type", 1)
	w := &treeWalk{env: mustNew(t, c).env, tape: tape.New("host"), seen: map[string]bool{}, files: []string{file, name, c.SysPath + "/devices/virtual/net/lo/operstate"}}
	err = w.read(t.Context())
	if err == nil || !strings.Contains(err.Error(), "thermal_zone0: no answer within") || len(w.tape.Exchanges) != 1 {
		t.Errorf("%v, %d files", err, len(w.tape.Exchanges))
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0) // lets the read that hangs end
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

// A recording writes nothing outside of its directory.
func TestReplayStaysInside(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	for _, e := range []tape.Exchange{
		{Ask: "../outside", Status: tape.OK}, {Ask: "/etc/outside", Status: tape.OK}, {Ask: "sys/../../outside", Status: tape.OK}, {Ask: "home/outside", Status: tape.OK},
		{Ask: "sys/a", Status: isLink, Answer: []byte("/etc")}, {Ask: "sys/a", Status: isLink, Answer: []byte("../../..")}, {Ask: "sys", Status: tape.OK},
	} {
		if err := os.MkdirAll(inside, 0o700); err != nil {
			t.Fatal(err)
		}
		taped := tape.New("host")
		taped.Exchanges = []tape.Exchange{e, {Ask: "sys/a/outside", Status: tape.OK}}
		if _, err := Replay(taped, inside, quiet()); err == nil {
			t.Errorf("%+v: no error", e)
		}
		if err := os.RemoveAll(inside); err != nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%+v: wrote %v", e, left)
		}
	}
}

// TestRecordingReadsNoEndlessFile: a file that is longer than a recording may have is left out, without reading all of it.
func TestRecordingReadsNoEndlessFile(t *testing.T) {
	f := file{path: "/dev/zero"}
	if _, err := f.readUpTo(maxFileSize); !errors.Is(err, errTooLong) || cap(f.buf) > 4*maxFileSize {
		t.Errorf("%v, with %d bytes of memory", err, cap(f.buf))
	}
	exact := filepath.Join(t.TempDir(), "exact")
	if err := os.WriteFile(exact, bytes.Repeat([]byte("x"), maxFileSize), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := contents([]string{"/dev/zero", exact}); len(got) != 1 || got[0].name != exact || len(got[0].text) != maxFileSize {
		t.Errorf("%d files were read", len(got))
	}
}
