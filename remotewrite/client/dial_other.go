//go:build !linux

package client

import (
	"syscall"
	"time"
)

// limitUnconfirmed does nothing: only remote_timeout limits a request there.
func limitUnconfirmed(time.Duration) func(network, address string, c syscall.RawConn) error {
	return nil
}
