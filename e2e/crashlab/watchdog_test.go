//go:build linux

package crashlab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manager stands for systemd: it has the socket that the agent writes its state to.
type manager struct {
	path string

	mu    sync.Mutex
	said  []string // all messages
	fed   time.Time
	worst time.Duration // the longest time without food for the watchdog
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // t.TempDir() may be longer than a socket's name
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{path: filepath.Join(dir, "socket"), fed: time.Now()}
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 4096); ; {
			n, err := l.Read(b)
			if err != nil {
				return
			}
			m.hear(string(b[:n]))
		}
	}()
	t.Cleanup(func() { l.Close(); <-done; os.RemoveAll(dir) })
	return m
}

func (m *manager) hear(message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said = append(m.said, message)
	if strings.Contains(message, "WATCHDOG=1") {
		m.worst = max(m.worst, time.Since(m.fed))
		m.fed = time.Now()
	}
}

// forget begins to measure anew.
func (m *manager) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said, m.fed, m.worst = nil, time.Now(), 0
}

// hungry returns the longest time that the watchdog was not fed since forget.
func (m *manager) hungry() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(m.worst, time.Since(m.fed))
}

// heard waits until a message with each of the texts has come since forget, in that order.
func (m *manager) heard(t *testing.T, texts ...string) {
	t.Helper()
	eventually(t, 15*time.Second, func() string {
		m.mu.Lock()
		defer m.mu.Unlock()
		next := 0
		for _, message := range m.said {
			if next < len(texts) && strings.Contains(message, texts[next]) {
				next++
			}
		}
		if next < len(texts) {
			return fmt.Sprintf("the service manager has not got %q; it got %q", texts[next], m.said)
		}
		return ""
	})
}

// freeze makes every write to the disk wait until thaw.
func (d *disk) freeze() {
	d.t.Helper()
	d.ioctl("freeze", 0xc0045877) // FIFREEZE of linux/fs.h
	d.t.Cleanup(func() {          // whatever happens: nothing that waits for it could be killed
		if root, err := os.Open(d.dir); err == nil {
			_ = unix.IoctlSetInt(int(root.Fd()), 0xc0045878, 0)
			root.Close()
		}
	})
}

func (d *disk) thaw() { d.t.Helper(); d.ioctl("thaw", 0xc0045878) }

func (d *disk) ioctl(what string, request uint) {
	d.t.Helper()
	root, err := os.Open(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer root.Close()
	// EBUSY: it is frozen already.
	if err := unix.IoctlSetInt(int(root.Fd()), request, 0); err != nil && !errors.Is(err, unix.EBUSY) {
		d.t.Fatalf("%s %s: %v", what, d.dir, err)
	}
}

// TestWatchdogAndDisk: an agent whose disk is full, or answers no write at all, feeds the watchdog of
// the service manager all the time; one that is stopped does not. The manager gets every state of a life.
func TestWatchdogAndDisk(t *testing.T) {
	const watchdog = 3 * time.Second
	for name, fault := range map[string]struct {
		disk       func(t *testing.T) *disk
		spoil, end func(d *disk)
	}{
		"full":  {func(t *testing.T) *disk { return newMemory(t, "size=16m") }, (*disk).fill, (*disk).empty},
		"stuck": {func(t *testing.T) *disk { return newLoop(t, "ext4") }, (*disk).freeze, (*disk).thaw},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, m := fault.disk(t), newManager(t)
			l := newLab(t, options{storage: d.storage(), wal: "min_free_bytes: 1KiB"})
			env := []string{"NOTIFY_SOCKET=" + m.path, fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds())}
			l.spawn(l.args[0], l.args[1:], env, nil, nil)
			l.ready()
			m.heard(t, "READY=1", "STATUS=", "WATCHDOG=1")
			l.acked(10)

			// Nothing is delivered meanwhile: the log has nothing to free.
			l.away()
			acked, since := uint64(0), time.Now()
			eventually(t, 20*time.Second, func() string {
				fault.spoil(d)
				if now := l.witness.lastAcked(); now != acked {
					acked, since = now, time.Now()
				}
				if time.Since(since) < 20*l.interval {
					return "the log still acknowledges rounds"
				}
				return ""
			})
			m.forget()
			time.Sleep(3 * watchdog) // how long the disk must not matter
			if hungry := m.hungry(); hungry >= watchdog {
				t.Errorf("the watchdog was not fed for %s: it would have killed the agent", hungry)
			}
			if now := l.witness.lastAcked(); now != acked {
				t.Errorf("%d rounds were acknowledged meanwhile: the fault did not last", now-acked)
			}
			fault.end(d)
			l.acked(10)

			m.forget()
			l.reload("remote_timeout: 6s")
			m.heard(t, "RELOADING=1\nMONOTONIC_USEC=", "READY=1")

			m.forget()
			if err := l.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			time.Sleep(watchdog + time.Second) // how long the watchdog waits
			if hungry := m.hungry(); hungry < watchdog {
				t.Errorf("an agent that is stopped feeds the watchdog; %s was the longest pause", hungry)
			}
			if err := l.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			l.terminate()
			m.heard(t, "STOPPING=1")
		})
	}
}
