package systemd

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func environment(set map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := set[name]; return v, ok }
}

// TestMessagesReachTheSocket: each message is one datagram, in the words of sd_notify(3).
func TestMessagesReachTheSocket(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs datagrams over Unix sockets")
	}
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m := FromEnvironment(environment(map[string]string{"NOTIFY_SOCKET": path}))
	m.Ready()
	m.Reloading()
	m.Status("two\nlines = \xffx")
	m.Stopping()
	reloading := "^RELOADING=1$"
	if runtime.GOOS == "linux" {
		reloading = `^RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*$`
	}
	for _, want := range []string{"^READY=1$", reloading, `^STATUS=two lines = \?x$`, "^STOPPING=1$"} {
		b := make([]byte, 4096)
		n, err := l.Read(b)
		if err != nil || !regexp.MustCompile(want).Match(b[:n]) {
			t.Errorf("got %q, %v, want %s", b[:n], err, want)
		}
	}
}

// TestManagerThatDoesNotReadHoldsNothingUp: a message to a full socket is given up within its bound.
func TestManagerThatDoesNotReadHoldsNothingUp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux' bound of datagrams in a socket")
	}
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	full := false
	for range 1000 { // net.unix.max_dgram_qlen of them fit
		if err := send(path, "STATUS=x"); err != nil {
			full = true
			break
		}
	}
	if !full {
		t.Fatal("the socket took 1000 datagrams: nothing was tested")
	}
	before := time.Now()
	FromEnvironment(environment(map[string]string{"NOTIFY_SOCKET": path})).Ready()
	if took := time.Since(before); took > 5*sendWithin {
		t.Errorf("Ready took %s", took)
	}
}

// TestWatchdogIsFedByTheStatus: as long as the status can be determined the watchdog is fed, three times as often as
// required; if the status hangs, it is not fed.
func TestWatchdogIsFedByTheStatus(t *testing.T) {
	for name, c := range map[string]struct {
		watchdog time.Duration
		hangs    bool
		fed      int // in a minute
		said     int
	}{
		"a watchdog of 15 s":         {15 * time.Second, false, 12, 12},
		"one of an hour":             {time.Hour, false, 6, 6},
		"none":                       {0, false, 0, 6},
		"a program that hangs after": {15 * time.Second, true, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fed, said, calls := 0, 0, 0
				m := &Manager{watchdog: c.watchdog, send: func(message string) {
					said++
					fed += strings.Count(message, "WATCHDOG=1")
					if !strings.HasPrefix(message, "STATUS=all is well") {
						t.Errorf("said %q", message)
					}
				}}
				ctx, stop := context.WithTimeout(t.Context(), time.Minute-time.Millisecond)
				defer stop()
				m.Run(ctx, func() string {
					if calls++; c.hangs && calls > 1 {
						<-ctx.Done()
						time.Sleep(time.Hour) // what is said after a minute is not counted
						said, fed = said-1, fed-1
					}
					return "all is well"
				})
				if fed != c.fed || said != c.said {
					t.Errorf("fed %d times and said %d, want %d and %d", fed, said, c.fed, c.said)
				}
			})
		})
	}
}

// TestEnvironment: the meaning of a service manager's variables, and which of them are meant for another process.
func TestEnvironment(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		env  map[string]string
		none bool
		want time.Duration
	}{
		{env: nil, none: true},
		{env: map[string]string{"NOTIFY_SOCKET": ""}, none: true},
		{env: map[string]string{"WATCHDOG_USEC": "1000000"}, none: true},
		{env: map[string]string{"NOTIFY_SOCKET": "@x"}},
		{env: map[string]string{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1500000"}, want: 1500 * time.Millisecond},
		{env: map[string]string{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1500000", "WATCHDOG_PID": pid}, want: 1500 * time.Millisecond},
		{env: map[string]string{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1500000", "WATCHDOG_PID": "1"}},
		{env: map[string]string{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "-1"}},
		{env: map[string]string{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "soon"}},
	} {
		m := FromEnvironment(environment(c.env))
		if (m == nil) != c.none || m != nil && m.watchdog != c.want {
			t.Errorf("%v: got %+v", c.env, m)
		}
	}
	var none *Manager
	none.Ready()
	none.Reloading()
	none.Status("x")
	none.Stopping()
	none.Run(t.Context(), func() string { t.Error("asked"); return "" })
}
