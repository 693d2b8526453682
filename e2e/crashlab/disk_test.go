//go:build linux

package crashlab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// disk is a file system that belongs to one test, on a loop device or in memory.
type disk struct {
	t     *testing.T
	kind  string // ext4, xfs, btrfs, tmpfs
	image string // "" for tmpfs
	dir   string // where it is mounted
	under string // the tmpfs that has the image

	inodes int // how many fillInodes tried to take
}

// newLoop returns a file system of that kind on a loop device. Its image is in memory: a cut loses only what the kernel
// had not written to the image.
func newLoop(t *testing.T, kind string, options ...string) *disk {
	t.Helper()
	d := newImage(t, kind, "512m", options...)
	d.mountImage()
	return d
}

// newImage makes the image of newLoop, on a tmpfs of that size.
func newImage(t *testing.T, kind, room string, options ...string) *disk {
	t.Helper()
	d := newDisk(t, kind)
	d.under = t.TempDir()
	d.mount("tmpfs", d.under, "-t", "tmpfs", "-o", "size="+room)
	d.image = filepath.Join(d.under, "image")
	mkfs, size, args := "/usr/sbin/mkfs."+kind, int64(64<<20), append([]string{"-q"}, options...)
	switch kind {
	case "xfs":
		size = 320 << 20 // it refuses less than 300 MB
	case "btrfs":
		size = 130 << 20 // it refuses less than 109 MB
	}
	if _, err := os.Stat(mkfs); err != nil {
		cannot(t, "needs "+mkfs+" (Debian: apt-get install e2fsprogs xfsprogs btrfs-progs)")
	}
	f, err := os.Create(d.image)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, append(args, d.image)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", mkfs, err, out)
	}
	return d
}

// newMemory mounts a tmpfs with those options.
func newMemory(t *testing.T, options string) *disk {
	t.Helper()
	d := newDisk(t, "tmpfs")
	d.mount("tmpfs", d.dir, "-t", "tmpfs", "-o", options)
	return d
}

func newDisk(t *testing.T, kind string) *disk {
	t.Helper()
	endToEnd(t)
	if !mountsAreOwn() {
		cannot(t, "needs to mount file systems (root and CAP_SYS_ADMIN)")
	}
	return &disk{t: t, kind: kind, dir: t.TempDir()}
}

func (d *disk) mount(what, where string, options ...string) {
	d.t.Helper()
	if out, err := exec.Command("mount", append(options, what, where)...).CombinedOutput(); err != nil {
		cannot(d.t, fmt.Sprintf("mounting %s is not permitted here: %v %s", what, err, out))
	}
	d.t.Cleanup(func() {
		// Lazily: a failed test may have left files open. The namespace ends them all.
		_ = unix.Unmount(where, unix.MNT_DETACH)
	})
}

func (d *disk) mountImage() {
	d.t.Helper()
	d.mount(d.image, d.dir, "-o", "loop")
}

// storage returns where an agent on this disk keeps its log.
func (d *disk) storage() string { return filepath.Join(d.dir, "data") }

// unmount unmounts the disk, which must no longer be in use.
func (d *disk) unmount() {
	d.t.Helper()
	eventually(d.t, 5*time.Second, func() string {
		if err := unix.Unmount(d.dir, 0); err != nil {
			return "unmount: " + err.Error()
		}
		return ""
	})
	// A process of another test that has a mount namespace of its own keeps the file system alive until it ends. Mounting
	// the image meanwhile would give that file system again, and not the one on the medium.
	eventually(d.t, 60*time.Second, func() string {
		devices, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
		if err != nil {
			return err.Error()
		}
		for _, device := range devices {
			if file, err := os.ReadFile(device); err == nil && strings.TrimSpace(string(file)) == d.image {
				return device + " still has " + d.image
			}
		}
		return ""
	})
}

// cut is a power cut: everything that is not on the medium is gone, and the file system
// answers nothing any more. It proves itself by a file that was written just before.
// moment is called at the last moment before it: what the agent does later, nobody would
// see from a machine that has no power. (An fsync that waits for ext4's journal when the
// cut aborts it can return success.)
func (d *disk) cut(moment func()) {
	d.t.Helper()
	// The same number for ext4 (EXT4_IOC_SHUTDOWN) and xfs (XFS_IOC_GOINGDOWN); 2 is
	// "do not flush the log first".
	const shutdown, noLogFlush = 0x8004587d, 2
	root, err := os.Open(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer root.Close()
	if err := os.WriteFile(d.control(), []byte(strings.Repeat("control", 1000)), 0o600); err != nil {
		d.t.Fatal(err)
	}
	moment()
	if err := unix.IoctlSetPointerInt(int(root.Fd()), shutdown, noLogFlush); err != nil {
		d.t.Fatalf("shut %s down: %v", d.kind, err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "after"), nil, 0o600); err == nil {
		d.t.Fatalf("%s can be written after the cut: it did not take place", d.kind)
	}
}

func (d *disk) control() string { return filepath.Join(d.dir, "control") }

// restore mounts the disk again after a cut, and checks that the cut lost something.
func (d *disk) restore() {
	d.t.Helper()
	d.unmount()
	d.mountImage()
	if b, err := os.ReadFile(d.control()); err == nil && strings.Contains(string(b), "control") {
		d.t.Errorf("%s kept a file that was never synced (%d bytes): the cut lost nothing", d.kind, len(b))
	}
	_ = os.Remove(d.control())
}

// fill leaves no byte free on the disk. Called again, it takes what was freed since.
func (d *disk) fill() { d.t.Helper(); d.fillUp(d.ballast("bytes")) }

// fillUp lets a file grow to the last free byte of its file system.
func (d *disk) fillUp(file string) {
	d.t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); len(chunk) > 0; {
		if _, err := f.Write(chunk); err != nil {
			if !errors.Is(err, unix.ENOSPC) {
				d.t.Fatal(err)
			}
			chunk = chunk[:len(chunk)/2] // the last bytes too
		}
	}
}

// fillInodes creates files until there is no inode left. Called again, it takes inodes freed since.
func (d *disk) fillInodes() {
	d.t.Helper()
	for {
		d.inodes++
		f, err := os.Create(d.ballast(fmt.Sprint(d.inodes)))
		if errors.Is(err, unix.ENOSPC) {
			return
		}
		if err != nil {
			d.t.Fatal(err)
		}
		f.Close()
	}
}

func (d *disk) ballast(name string) string { return filepath.Join(d.dir, "ballast-"+name) }

// empty gives back what fill and fillInodes took.
func (d *disk) empty() {
	d.t.Helper()
	names, err := filepath.Glob(d.ballast("*"))
	if err != nil || len(names) == 0 {
		d.t.Fatalf("there is no ballast: %v", err)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			d.t.Error(err)
		}
	}
}
