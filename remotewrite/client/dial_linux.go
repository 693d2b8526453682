package client

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnconfirmed makes the kernel drop a connection when sent data is not
// acknowledged for d. By default the kernel retransmits for a quarter of an hour.
func limitUnconfirmed(d time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		set := func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(max(1, d.Milliseconds())))
		}
		if controlErr := c.Control(set); controlErr != nil {
			return controlErr
		}
		if errors.Is(err, unix.ENOPROTOOPT) { // a kernel that is not Linux itself, such as gVisor's, may lack it
			return nil
		}
		return err
	}
}
