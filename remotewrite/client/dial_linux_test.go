package client

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The limit is set on each connection: below remote_timeout, and never above what an idle
// connection has.
func TestUnconfirmedLimit(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for timeout, want := range map[time.Duration]int{30 * time.Second: 20000, 3 * time.Second: 2000, 10 * time.Minute: 30000, time.Millisecond: 1} {
		for _, spread := range []bool{false, true} {
			conn, err := newDial(spread, timeout)(t.Context(), "tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			raw, err := conn.(*net.TCPConn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			if controlErr := raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); controlErr != nil || err != nil {
				t.Fatal(controlErr, err)
			}
			if got != want {
				t.Errorf("remote_timeout %s, spread %t: %d ms, want %d", timeout, spread, got, want)
			}
		}
	}
}

// A connection whose other side confirms nothing more is given up by the kernel. No program
// reads here, so that after some megabytes nothing can be sent: to this limit that is the same.
func TestUnconfirmedEnds(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := newDial(false, 1500*time.Millisecond)(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	other, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil { // of the test
		t.Fatal(err)
	}
	begin := time.Now()
	_, err = conn.Write(make([]byte, 64<<20))
	if took := time.Since(begin); !errors.Is(err, syscall.ETIMEDOUT) || took < time.Second {
		t.Errorf("after %s: %v", took, err)
	} else {
		t.Logf("given up after %s", took)
	}
}
