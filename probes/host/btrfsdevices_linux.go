package host

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's include/uapi/linux/btrfs.h: requests whose arguments are structures of fixed size. They only need
// permission to open the mount point.
const (
	btrfsMagic = 0x94

	btrfsDevInfoSize  = 4096 // struct btrfs_ioctl_dev_info_args, number 30
	btrfsFSInfoSize   = 1024 // struct btrfs_ioctl_fs_info_args, number 31
	btrfsDevStatsSize = 1032 // struct btrfs_ioctl_get_dev_stats, number 52

	btrfsMaxDevices = 4096 // greatest device number that is tried in a file system
)

// btrfsErrors are the kinds of errors in the order of enum btrfs_dev_stat_values.
var btrfsErrors = []string{"write", "read", "flush", "corruption", "generation"}

// btrfsDevice is a device of a mounted file system, as reported by ioctl.
type btrfsDevice struct {
	name, uuid  string // the last part of its path, "" of a missing device; 32 hexadecimal digits
	size, inUse uint64 // bytes
	errors      []uint64
}

// btrfsAsk performs a request to a file system, which fills the argument: ioctl(2).
type btrfsAsk func(fd int, request uint, argument []byte) error

// ioctlNumber returns the number of a request as in asm-generic/ioctl.h, which holds on all released platforms:
// direction (2: the kernel writes, 3: both), size of the argument, kind, number.
func ioctlNumber(direction, size, kind, number uint) uint {
	return direction<<30 | size<<16 | kind<<8 | number
}

// ioctl is the [btrfsAsk] of the running kernel.
func ioctl(fd int, request uint, argument []byte) error {
	for {
		// The request contains the size of the argument, which is that of the buffer.
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(unsafe.Pointer(&argument[0]))) // #nosec G103 -- a buffer of that size
		if errno == 0 {
			return nil
		}
		if errno != unix.EINTR {
			return errno
		}
	}
}

// btrfsDevices returns the devices of the file system at a mount point, and its UUID in 32 hexadecimal digits.
func btrfsDevices(point string, ask btrfsAsk) (uuid string, devices []btrfsDevice, err error) {
	fd, err := unix.Open(point, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", nil, &fs.PathError{Op: "open", Path: point, Err: err}
	}
	defer unix.Close(fd)
	info := make([]byte, btrfsFSInfoSize)
	if err := ask(fd, ioctlNumber(2, btrfsFSInfoSize, btrfsMagic, 31), info); err != nil {
		return "", nil, fmt.Errorf("ask the file system at %s for its devices: %w", point, err)
	}
	last, count := binary.NativeEndian.Uint64(info), binary.NativeEndian.Uint64(info[8:])
	uuid = hex.EncodeToString(info[16:32])
	for id := uint64(0); id <= min(last, btrfsMaxDevices) && uint64(len(devices)) < count; id++ {
		d, err := btrfsDeviceOf(fd, id, ask)
		if errors.Is(err, unix.ENODEV) {
			continue // the numbers of removed devices are unused
		}
		if err != nil {
			return "", nil, fmt.Errorf("ask the file system at %s about device %d: %w", point, id, err)
		}
		devices = append(devices, d)
	}
	return uuid, devices, nil
}

func btrfsDeviceOf(fd int, id uint64, ask btrfsAsk) (btrfsDevice, error) {
	info := make([]byte, btrfsDevInfoSize) // number, UUID, bytes in use, size, …; the path is the last 1024 bytes
	binary.NativeEndian.PutUint64(info, id)
	if err := ask(fd, ioctlNumber(3, btrfsDevInfoSize, btrfsMagic, 30), info); err != nil {
		return btrfsDevice{}, err
	}
	stats := make([]byte, btrfsDevStatsSize) // number, how many figures, flags, figures
	binary.NativeEndian.PutUint64(stats, id)
	binary.NativeEndian.PutUint64(stats[8:], uint64(len(btrfsErrors)))
	if err := ask(fd, ioctlNumber(3, btrfsDevStatsSize, btrfsMagic, 52), stats); err != nil {
		return btrfsDevice{}, err
	}
	_, name := path.Split(unix.ByteSliceToString(info[btrfsDevInfoSize-1024:]))
	d := btrfsDevice{
		name:  name,
		uuid:  hex.EncodeToString(info[8:24]),
		inUse: binary.NativeEndian.Uint64(info[24:]),
		size:  binary.NativeEndian.Uint64(info[32:]),
	}
	for i := range min(binary.NativeEndian.Uint64(stats[8:]), uint64(len(btrfsErrors))) {
		d.errors = append(d.errors, binary.NativeEndian.Uint64(stats[24+8*i:]))
	}
	return d, nil
}

// btrfsMounted returns the devices of all mounted file systems that answer, by UUID as in sysfs but without hyphens. A
// file system that cannot be opened at one mount point may be openable at another.
func btrfsMounted(mountinfo []byte, root string, ask btrfsAsk) map[string][]btrfsDevice {
	found := make(map[string][]btrfsDevice)
	seen := make(map[string]bool) // by device numbers
	for line := range lines(mountinfo) {
		m, ok := parseMount(line)
		if !ok || m.fstype != "btrfs" || seen[m.device] {
			continue
		}
		uuid, devices, err := btrfsDevices(root+strings.TrimPrefix(m.point, root), ask)
		if err != nil {
			continue // sysfs has the sizes of its devices
		}
		seen[m.device] = true
		found[uuid] = devices
	}
	return found
}
