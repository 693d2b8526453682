// Package systemd reports the state of the program to the service manager that started it, by the protocol of
// sd_notify(3). The project has its own implementation because the libraries write to the manager's socket without a
// time limit: a manager that does not read must not delay a reload or a stop.
package systemd

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// sendWithin bounds one message. The manager reads within milliseconds.
	sendWithin = time.Second
	// statusEvery is how often the status is sent unless a watchdog requires more.
	statusEvery = 10 * time.Second
)

// Manager is the service manager that expects messages from this program. A nil *Manager means that something else
// started the program: its methods do nothing. Safe for concurrent use. A message that cannot be sent is dropped: the
// next one replaces it.
type Manager struct {
	send     func(message string)
	watchdog time.Duration // the manager kills the program after that silence; 0: never
}

// FromEnvironment returns the manager that the environment names, or nil. env is os.LookupEnv.
// The variables are NOTIFY_SOCKET of sd_notify(3), and WATCHDOG_USEC and WATCHDOG_PID of
// sd_watchdog_enabled(3).
func FromEnvironment(env func(string) (string, bool)) *Manager {
	socket, _ := env("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	m := &Manager{send: func(message string) { _ = send(socket, message) }}
	pid, named := env("WATCHDOG_PID")
	if usec, ok := env("WATCHDOG_USEC"); ok && (!named || pid == strconv.Itoa(os.Getpid())) {
		if n, err := strconv.ParseInt(usec, 10, 64); err == nil && n > 0 {
			m.watchdog = time.Duration(n) * time.Microsecond
		}
	}
	return m
}

// send writes one datagram. A name that begins with "@" is an abstract socket of Linux.
func send(socket, message string) error {
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("connect to the service manager: %w", err)
	}
	defer c.Close()
	if err := c.SetWriteDeadline(time.Now().Add(sendWithin)); err != nil {
		return fmt.Errorf("bound the message to the service manager: %w", err)
	}
	if _, err := c.Write([]byte(message)); err != nil {
		return fmt.Errorf("write to the service manager: %w", err)
	}
	return nil
}

// Ready reports that the program has started, or that a reload has ended.
func (m *Manager) Ready() { m.say("READY=1") }

// Reloading reports that the configuration is being read again, until Ready.
func (m *Manager) Reloading() {
	message := "RELOADING=1"
	if usec := monotonic().Microseconds(); usec > 0 {
		message += "\nMONOTONIC_USEC=" + strconv.FormatInt(usec, 10)
	}
	m.say(message)
}

// Stopping reports that the program is about to end.
func (m *Manager) Stopping() { m.say("STOPPING=1") }

// Status shows a line of text in `systemctl status`.
func (m *Manager) Status(text string) { m.say(statusLine(text)) }

func (m *Manager) say(message string) {
	if m != nil {
		m.send(message)
	}
}

// Run reports the result of status, and feeds the watchdog, until ctx ends. It feeds the watchdog only after status has
// returned, so that the watchdog catches a program that can no longer determine its status. Therefore status must not
// wait for anything outside of the program, such as a disk.
func (m *Manager) Run(ctx context.Context, status func() string) {
	if m == nil {
		return
	}
	every := min(statusEvery, cmp.Or(m.watchdog/3, statusEvery))
	pace := time.NewTicker(every)
	defer pace.Stop()
	for {
		message := statusLine(status())
		if m.watchdog > 0 {
			message += "\nWATCHDOG=1"
		}
		m.send(message)
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
	}
}

// statusLine formats the assignment of a status: one line, because the protocol has one assignment per line.
func statusLine(text string) string {
	return "STATUS=" + strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}
