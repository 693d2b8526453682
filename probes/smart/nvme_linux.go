package smart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
	"unsafe" // #nosec G103 -- the kernel takes an address

	"golang.org/x/sys/unix"
)

// nvmePassthru is struct nvme_passthru_cmd of Linux' include/uapi/linux/nvme_ioctl.h.
type nvmePassthru struct {
	opcode, flags                                        uint8
	_                                                    uint16
	namespace, dword2, dword3                            uint32
	metadata, address                                    uint64
	metadataSize, dataSize                               uint32
	dword10, dword11, dword12, dword13, dword14, dword15 uint32
	timeoutMS, result                                    uint32
}

// adminIoctl is NVME_IOCTL_ADMIN_CMD: _IOWR('N', 0x41, struct nvme_passthru_cmd), with the bits of asm-generic/ioctl.h.
const adminIoctl = 3<<30 | uint(unsafe.Sizeof(nvmePassthru{}))<<16 | 'N'<<8 | 0x41

// openNVMe opens the controller or, without permission for that, its first namespace, which often belongs to the group disk and
// accepts the same commands.
func openNVMe(dir, name string) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	if g, other := os.Open(filepath.Join(dir, name+"n1")); other == nil {
		return g, nil
	}
	return nil, err
}

// askNVMe is the [nvmeAsker] of this machine. It opens the device once, and uses one ioctl per command. It blocks until the kernel answers.
func askNVMe(name string, commands ...*adminCommand) error {
	f, err := openNVMe("/dev", name)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, c := range commands {
		if err := c.send(f); err != nil {
			return fmt.Errorf("NVMe command %#02x: %w", c.opcode, err)
		}
	}
	return nil
}

// nvmeStatus is the nonzero status of a failed command (figure 92).
type nvmeStatus int

func (s nvmeStatus) Error() string {
	return fmt.Sprintf("the controller refuses it with type %d, status %#02x", int(s)>>8&7, int(s)&0xff)
}

// leastTimeout is the kernel's default for admin commands (nvme_core.admin_timeout). After a timeout the kernel does not just abort
// the command but resets the controller, and a disk that formats or sanitizes may be slow.
const leastTimeout = time.Minute

// send sends one command.
func (c *adminCommand) send(f *os.File) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&c.data[0])
	raw := nvmePassthru{
		opcode: c.opcode, namespace: c.namespace, dword10: c.dword10, timeoutMS: uint32(max(c.patience, leastTimeout).Milliseconds()), // #nosec G115 -- a configured time of seconds
		address: uint64(uintptr(unsafe.Pointer(&c.data[0]))), dataSize: uint32(len(c.data)), // #nosec G103 G115 -- pinned above; 4 KiB at most
	}
	status, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), uintptr(adminIoctl), uintptr(unsafe.Pointer(&raw))) // #nosec G103 -- raw lives until the call returns
	switch {
	case errno == syscall.EACCES || errno == syscall.EPERM:
		return fs.ErrPermission
	case errno != 0:
		return errno
	case status != 0:
		return nvmeStatus(status)
	}
	return nil
}
