package receivers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// listenBeside listens on another address with old's port, while old keeps listening. The kernel allows this to sockets
// of one user that both set SO_REUSEPORT; they set it only for this moment, so that other programs cannot use it.
func listenBeside(old *socket, address string) (*socket, error) {
	if err := reusePort(old.tcp, 1); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return setReusePort(c, 1) }}
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), reusePort(old.tcp, 0))
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("listen on %s: not a TCP socket", address), l.Close(), reusePort(old.tcp, 0))
	}
	if err := errors.Join(reusePort(tcp, 0), reusePort(old.tcp, 0)); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), tcp.Close())
	}
	return &socket{tcp}, nil
}

func reusePort(l *net.TCPListener, value int) error {
	c, err := l.SyscallConn()
	if err != nil {
		return err
	}
	return setReusePort(c, value)
}

func setReusePort(c syscall.RawConn, value int) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, value)
	}), err)
}
