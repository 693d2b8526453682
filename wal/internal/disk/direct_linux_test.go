package disk

import (
	"errors"
	"os"
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

// A file on a file system without direct writes is not opened with Direct; on one with them a sector is written.
func TestOpenDirect(t *testing.T) {
	for _, path := range []string{t.TempDir(), "/proc/self"} {
		d, err := OpenExisting(path)
		if err != nil {
			t.Fatal(err)
		}
		name, flag := "file", os.O_RDWR|os.O_CREATE
		if path == "/proc/self" {
			name, flag = "comm", os.O_RDWR
		}
		f, err := d.Open(name, flag|Direct)
		switch {
		case path == "/proc/self" && err == nil:
			t.Error("procfs takes direct writes")
		case err == nil:
			b := Aligned(512)
			b[511] = 1
			if n, err := f.WriteAt(b, 512); n != 512 || err != nil {
				t.Errorf("%d bytes written: %v", n, err)
			}
			if info, err := d.Look(name, f); err != nil || info.Size != 1024 {
				t.Errorf("%+v, %v", info, err)
			}
		}
		if f != nil {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
