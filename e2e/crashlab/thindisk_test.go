//go:build linux

package crashlab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hwsagent/internal/tools/results"
	"hwsagent/internal/tools/tier"
)

// newThin returns a file system whose medium has no room for new data after starve: a write of a block that was never written fails
// when the kernel writes it back, so fsync fails, and the kernel forgets the pages. Blocks of metadata have their room.
func newThin(t *testing.T, kind string) *disk {
	t.Helper()
	var d *disk
	switch kind {
	case "ext4":
		d = newImage(t, kind, "100m", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0")
		d.allocate(d.usedByExt4())
	case "btrfs":
		d = newImage(t, kind, "200m", "-K")
		d.allocate(d.metadataOfBtrfs())
	default:
		d = newImage(t, kind, "140m", "-K") // mkfs.xfs writes its log
	}
	d.mountImage()
	return d
}

// extent is a part of an image, in bytes.
type extent struct{ from, to int64 }

// allocate gives parts of the image room on the medium.
func (d *disk) allocate(all []extent) {
	d.t.Helper()
	f, err := os.OpenFile(d.image, os.O_RDWR, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for _, e := range all {
		b := make([]byte, e.to-e.from)
		if _, err := f.ReadAt(b, e.from); err != nil {
			d.t.Fatal(err)
		}
		if _, err := f.WriteAt(b, e.from); err != nil {
			d.t.Fatal(err)
		}
	}
}

// usedByExt4 returns the blocks that a new ext4 uses: its metadata, with the journal.
func (d *disk) usedByExt4() (used []extent) {
	d.t.Helper()
	size, from := int64(0), int64(0)
	for line := range strings.Lines(d.output("/usr/sbin/dumpe2fs", d.image)) {
		line = strings.TrimSpace(line)
		if n, ok := strings.CutPrefix(line, "Block size:"); ok {
			if _, err := fmt.Sscan(n, &size); err != nil {
				d.t.Fatalf("dumpe2fs says %q: %v", line, err)
			}
		}
		list, ok := strings.CutPrefix(line, "Free blocks: ")
		if !ok || !strings.Contains(list, "-") {
			continue
		}
		for span := range strings.SplitSeq(list, ", ") { // ascending
			var first, last int64
			if n, _ := fmt.Sscanf(span, "%d-%d", &first, &last); n == 1 {
				last = first
			}
			used = append(used, extent{from, first * size})
			from = (last + 1) * size
		}
	}
	if len(used) == 0 {
		d.t.Fatal("dumpe2fs names no free blocks")
	}
	return used
}

// metadataOfBtrfs returns where a btrfs has its metadata, of which it never overwrites a block.
func (d *disk) metadataOfBtrfs() (all []extent) {
	d.t.Helper()
	var length, at int64
	var stripe int
	is := false
	for line := range strings.Lines(d.output("btrfs", "inspect-internal", "dump-tree", "-t", "chunk", d.image)) {
		line = strings.TrimSpace(line)
		if n, _ := fmt.Sscanf(line, "length %d", &length); n == 1 {
			is = !strings.Contains(line, "type DATA")
		}
		if n, _ := fmt.Sscanf(line, "stripe %d devid 1 offset %d", &stripe, &at); n == 2 && is {
			all = append(all, extent{at, at + length})
		}
	}
	if len(all) == 0 {
		d.t.Fatal("btrfs names no chunk of metadata")
	}
	return append(all, extent{0, 1 << 20}) // the superblock
}

func (d *disk) output(program string, args ...string) string {
	d.t.Helper()
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		d.t.Fatalf("%s: %v", program, err)
	}
	return string(out)
}

// starve takes the medium's room, feed gives it back.
func (d *disk) starve() { d.t.Helper(); d.fillUp(filepath.Join(d.under, "ballast")) }

func (d *disk) feed() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.under, "ballast")); err != nil {
		d.t.Error(err)
	}
}

// forget makes the kernel forget all pages below a directory that it need not write.
func (d *disk) forget(dir string) {
	d.t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, name := range names {
		is, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) || err == nil && !is.Mode().IsRegular() {
			continue
		}
		f, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			d.t.Fatal(err)
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			d.t.Fatalf("fadvise %s: %v", name, err)
		}
		f.Close()
	}
}

// dropsPages proves the fault: a file that was written meanwhile cannot be synced, and its bytes are gone.
func (d *disk) dropsPages() {
	d.t.Helper()
	dir := filepath.Join(d.dir, "proof", "proof")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	text := bytes.Repeat([]byte("proof"), 20_000)
	if _, err := f.Write(text); err != nil {
		d.t.Fatal(err)
	}
	if err := f.Sync(); err == nil {
		d.t.Errorf("%s: fsync succeeds although the medium has no room", d.kind)
	}
	d.forget(filepath.Dir(dir))
	have := make([]byte, len(text))
	if n, err := f.ReadAt(have, 0); err == nil && bytes.Equal(have[:n], text) {
		d.t.Errorf("%s: the kernel still has the bytes that it could not write", d.kind)
	}
}

// TestDiskTakesNothing: at 10,000 samples a second the disk is full for a minute; or its medium takes no new data for 45 seconds, each fsync
// fails, and the kernel drops the pages that it could not write. Nothing acknowledged is lost, and nothing counts as damage; commits
// are refused meanwhile. The same with a kill in the fault. The pages stay in memory then: a process that is gone cannot write them again.
func TestDiskTakesNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ext4", "xfs", "btrfs"} {
		for _, full := range []bool{false, true} {
			for _, killed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s,full=%t,killed=%t", kind, full, killed), func(t *testing.T) {
					t.Parallel()
					takesNothing(t, kind, full, killed)
				})
			}
		}
	}
}

func takesNothing(t *testing.T, kind string, full, killed bool) {
	rnd := seeded(t)
	lasts, drops := time.Duration(amount(3, 45))*time.Second, !full && !killed
	var d *disk
	var begin, end func()
	if full {
		d = newLoop(t, kind)
		lasts, begin, end = time.Duration(amount(3, 60))*time.Second, d.fill, d.empty
	} else {
		d = newThin(t, kind)
		begin, end = d.starve, d.feed
	}
	l := newLab(t, options{storage: d.storage(), wal: "sync: 1s, max_bytes: 16MiB, min_free_bytes: 0", series: 1000, interval: 100 * time.Millisecond})
	l.run()
	l.arrived()
	time.Sleep(between(rnd, 0, 1500)) // where in a segment it happens

	refused, began := l.status().WAL.Refused, time.Now()
	eventually(t, 20*time.Second, func() string {
		begin()
		s := l.status()
		switch {
		case s.WAL.Refused == refused:
			return "the log still takes everything"
		case s.WAL.Error == "":
			return "the status does not say that the log cannot be written"
		}
		return ""
	})
	if drops {
		d.dropsPages()
	}
	for kill := began.Add(between(rnd, 1500, int(lasts.Milliseconds()))); time.Since(began) < lasts; time.Sleep(100 * time.Millisecond) {
		switch {
		case drops:
			d.forget(d.dir)
		case full:
			d.fill() // the log frees segments that are delivered
		}
		if killed && !kill.IsZero() && time.Now().After(kill) {
			l.kill()
			kill = time.Time{}
		}
	}
	ended := time.Now()
	end()
	for at := began; killed && kind == "btrfs" && at.Before(ended); at = at.Add(time.Second) {
		l.faults = append(l.faults, at) // it has no room for savepoints either, so a kill repeats what was sent meanwhile
	}
	if killed {
		l.kill()
		l.run()
	} else {
		l.figures.healed = l.acknowledgedAfter(ended)
		if limit := 2*time.Second + l.noise(); l.figures.healed > tier.Within(limit) {
			t.Errorf("the log needed %s after the fault, more than %s", l.figures.healed, limit)
		}
	}
	l.acked(10)
	r, g := l.settle()
	if killed {
		l.complete(r, g)
		l.sound(r, g)
	} else {
		l.exact(r, g)
	}
	what := "drops pages"
	if full {
		what = "is full"
	}
	results.Add(t, results.Line{
		What: fmt.Sprintf("%s %s, killed %t", kind, what, killed), Count: 1, Lost: int(r.Missing), Seed: seed(t), Figures: l.figures.values(l),
	})
}

// TestFileThatCannotBeSynced: each fsync of one segment fails for three minutes, and those of other files succeed. The log goes on in a new
// segment after a minute, and nothing acknowledged is lost.
func TestFileThatCannotBeSynced(t *testing.T) {
	t.Parallel()
	tier.OnlyNightly(t, "takes three minutes")
	l := newLab(t, options{wal: "sync: 1s, max_bytes: 16MiB, min_free_bytes: 0", series: 1000, interval: 100 * time.Millisecond})
	tr := l.trace(plan{Below: l.storage})
	l.ready()
	l.arrived()
	names, err := filepath.Glob(filepath.Join(l.storage, "wal", "0*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no segments: %v", err)
	}
	began := time.Now()
	tr.change(plan{Below: slices.Max(names), Ops: "fsync", From: 1, To: everCalls, Act: actFail, Errno: int(unix.EIO)})
	eventually(t, 90*time.Second, func() string {
		if took, ok := l.witness.ackedAfter(began.Add(10 * time.Second)); !ok {
			return "nothing is acknowledged"
		} else if took+10*time.Second < 50*time.Second {
			t.Fatalf("acknowledged %s after the fault began: it had no effect", took+10*time.Second)
		}
		return ""
	})
	for time.Since(began) < 3*time.Minute {
		time.Sleep(time.Second)
	}
	if fired := len(tr.events()); fired < 50 {
		t.Errorf("%d calls were refused", fired)
	}
	tr.change(plan{Below: l.storage})
	l.acked(10)
	r, g := l.settle()
	l.exact(r, g)
}
