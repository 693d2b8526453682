package dbus

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// maxBody bounds the body of an answer. The specification allows 128 MiB; a list of 10,000 units of systemd takes 3
	// MB.
	maxBody = 16 << 20

	// maxHeader bounds the fields of a message's header: names and paths, mostly of up to 255 bytes.
	maxHeader = 64 << 10

	// maxLine bounds a line of the authentication protocol.
	maxLine = 4096

	// window is the number of concurrent calls. A bus may refuse more than 128 calls without an answer (dbus-daemon's
	// max_replies_per_connection).
	window = 32

	// maxStray bounds how many other messages may come between two answers: broadcast signals, such as NameAcquired.
	maxStray = 1000
)

// ErrProtocol is wrapped by errors that mean that the peer violates the D-Bus specification, or the limits of this
// package. The connection is unusable after it.
var ErrProtocol = errors.New("not D-Bus as it is specified")

// CallError is an error answer from the called program or from the bus. The connection stays usable.
type CallError struct {
	Name    string // such as org.freedesktop.DBus.Error.UnknownProperty
	Message string // for people; may be empty
}

func (e *CallError) Error() string {
	if e.Message == "" {
		return e.Name
	}
	return e.Name + ": " + e.Message
}

// Call is a method call with arguments that are strings.
type Call struct {
	Destination, Path, Interface, Member string
	Args                                 []string
}

// Conn is a connection to a bus. It must not be used by two goroutines at a time.
type Conn struct {
	conn   net.Conn
	in     *bufio.Reader
	serial uint32 // serial of the last call
}

// Dial connects to the bus at the path of a Unix socket, authenticates, and calls Hello. All operations on the
// connection fail after the deadline.
func Dial(ctx context.Context, path string, deadline time.Time) (*Conn, error) {
	d := net.Dialer{Deadline: deadline}
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err // the error names operation and path
	}
	c := &Conn{conn: conn, in: bufio.NewReader(conn)}
	for _, step := range []func() error{func() error { return conn.SetDeadline(deadline) }, c.signIn, c.hello} {
		if err := step(); err != nil {
			return nil, errors.Join(fmt.Errorf("begin to talk to the bus at %s: %w", path, err), conn.Close())
		}
	}
	return c, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// signIn performs the authentication protocol: the bus asks the kernel for the owner of the socket.
func (c *Conn) signIn() error {
	user := hex.EncodeToString([]byte(strconv.Itoa(os.Getuid())))
	if _, err := io.WriteString(c.conn, "\x00AUTH EXTERNAL "+user+"\r\n"); err != nil {
		return err
	}
	line, err := c.line()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "OK ") {
		return fmt.Errorf("%w: it does not let this user (%d) in: %q", ErrProtocol, os.Getuid(), line)
	}
	_, err = io.WriteString(c.conn, "BEGIN\r\n")
	return err
}

// line reads a line of the authentication protocol.
func (c *Conn) line() (string, error) {
	var line []byte
	for len(line) < maxLine {
		b, err := c.in.ReadByte()
		if err != nil {
			return "", err
		}
		if b == '\n' {
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		line = append(line, b)
	}
	return "", fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, maxLine)
}

func (c *Conn) hello() error {
	const bus = "org.freedesktop.DBus"
	failed := error(nil)
	err := c.Do([]Call{{Destination: bus, Path: "/org/freedesktop/DBus", Interface: bus, Member: "Hello"}}, func(_ int, _ *Reader, err error) { failed = err })
	return errors.Join(err, failed)
}

// Do sends the calls, several at a time, and calls answer for each result, in any order, with the index of the call,
// and a reader of the body or the [CallError]. The reader is valid until answer returns. An error of Do means that
// there are no further answers; the connection is unusable then.
func (c *Conn) Do(calls []Call, answer func(call int, body *Reader, err error)) error {
	waiting := make(map[uint32]int, window) // by serial
	stray := 0
	for next := 0; next < len(calls) || len(waiting) > 0; {
		var out []byte
		for ; next < len(calls) && len(waiting) < window; next++ {
			c.serial++
			waiting[c.serial] = next
			out = appendCall(out, c.serial, calls[next])
		}
		if _, err := c.conn.Write(out); err != nil {
			return err
		}
		m, err := c.read()
		if err != nil {
			return err
		}
		call, ours := waiting[m.replyTo]
		if !ours || m.kind != kindReturn && m.kind != kindError {
			if stray++; stray > maxStray {
				return fmt.Errorf("%w: %d messages and no answer among them", ErrProtocol, stray)
			}
			continue
		}
		stray = 0
		delete(waiting, m.replyTo)
		if m.kind == kindReturn {
			answer(call, m.body, nil)
			continue
		}
		e := &CallError{Name: m.errorName}
		if strings.HasPrefix(m.body.Signature(), "s") {
			e.Message = m.body.String()
		}
		answer(call, nil, e)
	}
	return nil
}
