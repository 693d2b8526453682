package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// checkOwner does nothing: inherited access control lists control ownership on Windows.
func checkOwner(string, fs.FileInfo) error { return nil }

// syncDirectory does nothing: NTFS journals directory entries, and Windows cannot
// flush a directory.
func syncDirectory(*os.Root) error { return nil }

// SyncPath does nothing, for the same reason.
func SyncPath(string) error { return nil }

// FreeSpace is the number of bytes that this user may still write to path's volume.
func FreeSpace(path string) (int64, error) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, nil, nil); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return int64(free), nil
}

// tryLock takes the lock on f, or returns false if another process has it. It ends
// with the process. The locked byte is far behind the text in the file, so that other
// processes can read the text.
func tryLock(f *os.File) (bool, error) {
	at := &windows.Overlapped{Offset: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// orphaned is always false: on Windows a child does not hold the files of its parent.
func orphaned(int) bool { return false }
