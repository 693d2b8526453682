// Package control is the command line's connection to a running agent: HTTP over a Unix socket in the storage
// directory. Every user who may open the directory (0700, the agent's user) may use it; there is no other
// authentication.
package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// socketName is the socket's file name in the storage directory.
const socketName = "control.sock"

// maxPath is the longest socket path that every system accepts (sun_path, less its terminating zero, is 103 bytes on
// the BSDs and 107 on Linux).
const maxPath = 103

// maxReply bounds how many bytes of an answer Do reads.
const maxReply = 64 << 20

// ErrNotRunning means that no agent listens in the storage directory.
var ErrNotRunning = errors.New("no agent is running on this storage directory")

// AccessError means that this user may not open the socket of an agent. It is an [fs.ErrPermission].
type AccessError struct{ Socket string }

func (e *AccessError) Error() string {
	return fmt.Sprintf("cannot open %s: %v", e.Socket, fs.ErrPermission)
}

// Unwrap returns fs.ErrPermission.
func (e *AccessError) Unwrap() error { return fs.ErrPermission }

// retryEvery is the time between attempts to make the socket.
const retryEvery = 5 * time.Second

// Listen returns the socket in dir. It replaces a socket left behind by a killed agent; the caller holds the
// directory's lock, so no other agent can own it. The agent works without the socket: if it cannot be made, as on a full
// disk, Listen logs why, and the listener tries again until it is closed. Only a path that is too long is an error.
func Listen(dir string, logger *slog.Logger) (net.Listener, error) {
	_, release, err := socketPath(dir)
	if err != nil {
		return nil, fmt.Errorf("listen on the control socket: %w", err)
	}
	release()
	l := &listener{dir: dir, logger: logger, every: retryEvery, closed: make(chan struct{})}
	if l.socket, err = bind(dir); err != nil {
		logger.Error("Cannot make the control socket; the agent runs without it, and commands such as hwsagent targets cannot reach it. Retrying", "err", err)
	}
	return l, nil
}

// bind makes the socket.
func bind(dir string) (*net.UnixListener, error) {
	path, release, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove what stands in place of the control socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// The path may lead through a descriptor that is closed before Close.
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("restrict the control socket: %w", err), l.Close())
	}
	return l, nil
}

// listener makes its socket when it can, and removes it when it is closed.
type listener struct {
	dir    string
	logger *slog.Logger
	every  time.Duration // retryEvery
	closed chan struct{}

	mu     sync.Mutex
	socket *net.UnixListener // nil until it could be made
}

// Accept waits for the socket to be made, and then for a connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		switch socket, err := l.made(); {
		case err != nil:
			return nil, err
		case socket != nil:
			return socket.Accept()
		}
		select {
		case <-l.closed:
		case <-time.After(l.every):
			l.retry()
		}
	}
}

// made returns the socket, nil if there is none yet.
func (l *listener) made() (*net.UnixListener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
		return l.socket, nil
	}
}

func (l *listener) retry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		return
	default:
	}
	var err error
	if l.socket, err = bind(l.dir); err == nil {
		l.logger.Info("Made the control socket; commands reach the agent again")
	}
}

// Addr returns the socket's path.
func (l *listener) Addr() net.Addr {
	return &net.UnixAddr{Name: filepath.Join(l.dir, socketName), Net: "unix"}
}

// Close ends Accept and removes the socket.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		return net.ErrClosed
	default:
		close(l.closed)
	}
	if l.socket == nil {
		return nil
	}
	err := l.socket.Close()
	if rmErr := os.Remove(filepath.Join(l.dir, socketName)); rmErr != nil && !errors.Is(rmErr, fs.ErrNotExist) {
		err = errors.Join(err, rmErr)
	}
	return err
}

// Do sends one request to the agent that runs on dir and returns the status and body of its answer. The error is
// ErrNotRunning if no agent listens. It repeats a GET whose answer is cut off, so that an agent killed meanwhile counts
// as not running.
func Do(ctx context.Context, dir, method, path string) (status int, body []byte, err error) {
	for range tries {
		status, body, err = do(ctx, dir, method, path)
		if err == nil || method != http.MethodGet || !cutOff(err) {
			break
		}
	}
	return status, body, err
}

// tries is how often a GET is sent: a command just started by the agent may hold the socket of an agent that is gone a
// moment longer, without answering.
const tries = 3

// cutOff reports whether a connection ended before the answer did.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Stream posts to the agent that runs on dir, and returns the status and the body of its answer, which may last until
// ctx ends. The caller must close the body. The error is ErrNotRunning if no agent listens.
func Stream(ctx context.Context, dir, path string) (status int, body io.ReadCloser, err error) {
	resp, err := send(ctx, dir, http.MethodPost, path)
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, resp.Body, nil
}

func do(ctx context.Context, dir, method, path string) (status int, body []byte, err error) {
	resp, err := send(ctx, dir, method, path)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return resp.StatusCode, body, fmt.Errorf("read the agent's answer: %w", err)
	}
	return resp.StatusCode, body, nil
}

// send sends a request and returns the beginning of its answer.
func send(ctx context.Context, dir, method, path string) (*http.Response, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			name, release, err := socketPath(dir)
			if err != nil {
				return nil, err
			}
			defer release()
			dialer := net.Dialer{Timeout: 5 * time.Second}
			return dialer.DialContext(ctx, "unix", name)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("%w: %s", ErrNotRunning, dir)
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil, &AccessError{filepath.Join(dir, socketName)}
		}
		return nil, fmt.Errorf("ask the agent: %w", err)
	}
	return resp, nil
}

// socketPath returns a path to the socket that is short enough for the system. The caller must call release after using
// the path.
func socketPath(dir string) (path string, release func(), err error) {
	path = filepath.Join(dir, socketName)
	if len(path) <= maxPath {
		return path, func() {}, nil
	}
	const self = "/proc/self/fd/"
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	short := self + strconv.Itoa(int(d.Fd())) + "/" + socketName
	if _, err := os.Stat(strings.TrimSuffix(short, "/"+socketName)); err != nil {
		return "", nil, errors.Join(fmt.Errorf("the storage path %s is too long for a Unix socket (at most %d bytes with %q): use a shorter one", dir, maxPath, socketName), d.Close())
	}
	return short, func() { _ = d.Close() }, nil // read-only: nothing to lose
}
