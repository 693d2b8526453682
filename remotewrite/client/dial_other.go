//go:build !linux

package client

import (
	"syscall"
	"time"
)

// limitUnconfirmed does nothing: there is no such limit, but remote_timeout.
func limitUnconfirmed(time.Duration) func(network, address string, c syscall.RawConn) error {
	return nil
}
