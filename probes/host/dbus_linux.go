package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	// busCalls bounds the calls that wait for an answer at a time. A bus may refuse more than 128 of a connection
	// (max_replies_per_connection of dbus-daemon).
	busCalls = 32

	// busBytes bounds what a bus sends between two answers that are used. The specification allows 128 MiB for a
	// message; a list of 10,000 units of systemd takes 3 MB.
	busBytes = 16 << 20
)

// errBusBytes ends a connection whose bus sends more than [busBytes].
var errBusBytes = fmt.Errorf("more than %d bytes came without an answer", busBytes)

// bus is a connection to a D-Bus message bus. It calls methods and does nothing else: signals, and calls from other
// programs, are ignored. It must not be used by two goroutines at a time.
type bus struct {
	conn *dbus.Conn
	wire *busWire
}

// busCall is a call of a method whose arguments are strings.
type busCall struct {
	destination string
	path        dbus.ObjectPath
	method      string // with its interface in front
	args        []any
}

// busWire is the socket. It bounds how much is read.
type busWire struct {
	net.Conn
	in   *bufio.Reader
	left atomic.Int64 // bytes that may be read
}

// Read reads from the bus, within the bound.
func (w *busWire) Read(p []byte) (int, error) {
	left := w.left.Load()
	if left <= 0 {
		return 0, errBusBytes
	}
	n, err := w.in.Read(p[:min(int64(len(p)), left)])
	w.left.Add(-int64(n))
	return n, err
}

// dialBus connects to the bus at the path of a Unix socket and signs in as the user of the process. All operations on
// the connection, and the library's goroutines, end by the deadline.
func dialBus(path string, deadline time.Time) (*bus, error) {
	d := net.Dialer{Deadline: deadline}
	socket, err := d.Dial("unix", path)
	if err != nil {
		return nil, err // the error names operation and path
	}
	b := &bus{wire: &busWire{Conn: socket, in: bufio.NewReader(socket)}}
	b.wire.left.Store(busBytes)
	if err := socket.SetDeadline(deadline); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	// A message of type 0 is ignored. The library's goroutine would panic at a signal without the body that it expects, and
	// start a goroutine for each call of another program.
	answersOnly := dbus.WithIncomingInterceptor(func(m *dbus.Message) {
		if m.Type != dbus.TypeMethodReply && m.Type != dbus.TypeError {
			m.Type = 0
		}
	})
	if b.conn, err = dbus.NewConn(b.wire, answersOnly); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	for _, step := range []func() error{func() error { return b.conn.Auth(nil) }, b.conn.Hello} {
		if err := step(); err != nil {
			return nil, errors.Join(fmt.Errorf("sign in to the bus at %s: %w", path, readable(err)), b.conn.Close())
		}
	}
	return b, nil
}

// close ends the connection.
func (b *bus) close() { _ = b.conn.Close() } // a call was answered, or is reported as failed

// do makes the calls, several at a time, and calls answer for each result, in any order, with the index of the call and
// the body of the answer or the error answer ([refused]). An error of do means that there are no further answers.
func (b *bus) do(calls []busCall, answer func(call int, body []any, err error)) error {
	done := make(chan *dbus.Call, busCalls)
	waiting := make(map[*dbus.Call]int, busCalls)
	var ended error
	for next := 0; next < len(calls) || len(waiting) > 0; {
		for ; next < len(calls) && len(waiting) < busCalls; next++ {
			c := &calls[next]
			waiting[b.conn.Object(c.destination, c.path).Go(c.method, dbus.FlagNoAutoStart, done, c.args...)] = next
		}
		call := <-done // the socket's deadline ends the connection, and with it each call
		b.wire.left.Store(busBytes)
		i := waiting[call]
		delete(waiting, call)
		if call.Err == nil || refused(call.Err) {
			answer(i, call.Body, readable(call.Err))
			continue
		}
		next = len(calls)
		if ended == nil || errors.Is(ended, dbus.ErrClosed) { // which says no reason
			ended = call.Err
		}
	}
	return readable(ended)
}

// refused reports whether an error is an answer: the bus or the called program refuses the call, and the connection
// stays usable.
func refused(err error) bool {
	_, ok := errors.AsType[dbus.Error](err)
	return ok
}

// readable returns an error of the library with what its text lacks.
func readable(err error) error {
	switch e, ok := errors.AsType[dbus.Error](err); {
	case ok && e.Error() != e.Name:
		return fmt.Errorf("%s: %w", e.Name, err)
	case errors.Is(err, dbus.ErrClosed), errors.Is(err, io.EOF): // nothing here closes a connection in use
		return errors.New("the bus closed the connection")
	}
	return err
}
