package disk

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// Direct writes are used where the file system takes single sectors from the memory of Aligned, and says so.
func TestSuits(t *testing.T) {
	for _, tc := range []struct {
		told           bool
		memory, offset uint32
		want           bool
	}{
		{true, 4, 512, true}, {true, 512, 512, true}, {true, 4096, 512, true}, {true, 512, 1, true},
		{true, 512, 4096, false},    // sectors of 4 KiB
		{true, 8192, 512, false},    // memory of two pages
		{true, 0, 0, false},         // a file that is only written through the page cache
		{true, 512, 0, false},       //
		{true, 0, 512, false},       //
		{false, 512, 512, false},    // a kernel before 6.1
		{true, 512, 3 * 512, false}, // no power of two
	} {
		if err := suits(tc.told, tc.memory, tc.offset); (err == nil) != tc.want || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// A file on a file system with direct writes takes a sector from the memory of Aligned.
func TestOpenDirect(t *testing.T) {
	d, err := OpenExisting(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f, err := d.Open("file", os.O_RDWR|os.O_CREATE|Direct)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("the file system of the temporary directory has no direct writes: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := Aligned(512)
	b[511] = 1
	if n, err := f.WriteAt(b, 512); n != 512 || err != nil {
		t.Errorf("%d bytes written: %v", n, err)
	}
	if info, err := d.Look("file", f); err != nil || info.Size != 1024 {
		t.Errorf("%+v, %v", info, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// A file on a file system without direct writes is not opened with Direct.
func TestOpenDirectIsRefused(t *testing.T) {
	d, err := OpenExisting("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if f, err := d.Open("comm", os.O_RDWR|Direct); err == nil {
		t.Error("procfs takes direct writes")
		_ = f.Close()
	}
}
