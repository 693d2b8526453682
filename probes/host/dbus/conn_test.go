package dbus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hwsagent/probes/host/dbus/dbustest"
)

func dial(t *testing.T, path string) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), path, time.Now().Add(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// echo answers a call of Member with its first argument, in a form that the member names.
func echo(r dbustest.Request) dbustest.Answer {
	switch r.Member {
	case "Text":
		return dbustest.Answer{Signature: "v", Body: func(w *dbustest.Writer) { w.Variant(r.Args[0]) }}
	case "Number":
		n, _ := strconv.ParseUint(r.Args[0], 10, 64)
		return dbustest.Answer{Signature: "v", Body: func(w *dbustest.Writer) { w.Variant(n) }}
	case "Structs":
		return dbustest.Answer{Signature: "a(st)", Body: func(w *dbustest.Writer) {
			w.Structs(func(element func()) {
				for i := range uint64(3) {
					element()
					w.String(r.Args[0])
					w.Uint64(i)
				}
			})
		}}
	}
	return dbustest.Answer{Error: "org.example.No", Signature: "s", Body: func(w *dbustest.Writer) { w.String("no " + r.Member) }}
}

func call(member string, args ...string) Call {
	return Call{Destination: "org.example", Path: "/org/example", Interface: "org.example.It", Member: member, Args: args}
}

// TestManyCallsInBothByteOrders: far more calls than are under way at a time are answered each with its own answer.
func TestManyCallsInBothByteOrders(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		bus := dbustest.New(t, echo)
		bus.Order = order
		c := dial(t, bus.Path)
		var calls []Call
		for i := range 1000 {
			calls = append(calls, call([]string{"Text", "Number", "Structs", "Other"}[i%4], strconv.Itoa(i)))
		}
		seen := map[int]bool{}
		err := c.Do(calls, func(i int, body *Reader, err error) {
			if seen[i] {
				t.Errorf("call %d has a second answer", i)
			}
			seen[i] = true
			got := ""
			switch {
			case err != nil:
				got = err.Error()
			case body.Signature() == "v":
				got = fmt.Sprint(body.Variant())
			default:
				body.Structs(func() { got += fmt.Sprint(body.String(), " ", body.Uint64(), ";") })
			}
			want := []string{fmt.Sprint(i), fmt.Sprint(i), fmt.Sprintf("%d 0;%d 1;%d 2;", i, i, i), "org.example.No: no Other"}[i%4]
			if got != want || body != nil && body.Err() != nil {
				t.Errorf("%v, call %d: got %q, want %q", order, i, got, want)
			}
		})
		if err != nil || len(seen) != len(calls) {
			t.Errorf("%v: %d answers, %v", order, len(seen), err)
		}
	}
}

// TestVariants: each type of a number that programs use, with its sign.
func TestVariants(t *testing.T) {
	for _, c := range []struct {
		send, want any
	}{{"x", "x"}, {"", ""}, {true, 1.0}, {false, 0.0}, {uint32(1 << 31), float64(1 << 31)}, {int32(-2), -2.0}, {uint64(1 << 63), float64(1 << 63)}, {int64(-3), -3.0}, {byte(1), nil}} {
		bus := dbustest.New(t, func(dbustest.Request) dbustest.Answer {
			return dbustest.Answer{Signature: "v", Body: func(w *dbustest.Writer) { w.Variant(c.send) }}
		})
		err := dial(t, bus.Path).Do([]Call{call("Get")}, func(_ int, body *Reader, err error) {
			got := body.Variant()
			if err != nil || got != c.want || (body.Err() != nil) != (c.want == nil) {
				t.Errorf("%T: got %v, want %v (%v, %v)", c.send, got, c.want, err, body.Err())
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestPeersThatAreNoBus: whatever a peer sends instead of an answer is an error, soon, and in bounds.
func TestPeersThatAreNoBus(t *testing.T) {
	le := binary.LittleEndian
	head := func(body, fields uint32) []byte {
		b := []byte{'l', kindReturn, 0, 1}
		return le.AppendUint32(le.AppendUint32(le.AppendUint32(b, body), 9), fields)
	}
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"another protocol":      {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), `begins with 'H'`},
		"another version":       {[]byte{'l', kindReturn, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "version 9"},
		"a huge body":           {head(1<<31, 0), "at most"},
		"a huge header":         {head(0, 1<<20), "at most"},
		"a field of odd type":   {append(head(0, 5), 5, 2, 'a', 'y', 0, 0, 0, 0), `the type "ay"`},
		"a field without end":   {append(head(0, 8), 5, 1, 's', 0, 200, 0, 0, 0), "behind the message"},
		"a name without a zero": {append(head(0, 10), append([]byte{5, 1, 's', 0, 1, 0, 0, 0, 'x', 'x'}, make([]byte, 6)...)...), "zero byte"},
	} {
		bus := dbustest.New(t, func(dbustest.Request) dbustest.Answer { return dbustest.Answer{Raw: c.raw} })
		err := dial(t, bus.Path).Do([]Call{call("Get")}, func(int, *Reader, error) { t.Errorf("%s is an answer", name) })
		if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// TestBusesThatDoNotAnswer: no socket, no right, and no answer within the deadline are errors.
func TestBusesThatDoNotAnswer(t *testing.T) {
	deadline := time.Now().Add(200 * time.Millisecond)
	if _, err := Dial(t.Context(), filepath.Join(t.TempDir(), "none"), deadline); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a socket: %v", err)
	}
	bus := dbustest.New(t, echo)
	bus.Refuse = true
	if _, err := Dial(t.Context(), bus.Path, time.Now().Add(20*time.Second)); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "REJECTED") || !strings.Contains(err.Error(), bus.Path) {
		t.Errorf("without a right: %v", err)
	}
	silent := dbustest.New(t, func(dbustest.Request) dbustest.Answer { return dbustest.Answer{Silent: true} })
	c, err := Dial(t.Context(), silent.Path, time.Now().Add(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Do([]Call{call("Get")}, func(int, *Reader, error) {}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("without an answer: %v", err)
	}
}

// TestDBusDaemon: the daemon that distributions have takes the calls, more than it lets one client have under way, and
// answers as the client reads it.
func TestDBusDaemon(t *testing.T) {
	program, err := exec.LookPath("dbus-daemon")
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatal("needs dbus-daemon, and this is CI: .ci/run must install it")
	case err != nil:
		t.Skip("needs dbus-daemon (Debian: apt-get install dbus-daemon)")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "bus.conf")
	socket := filepath.Join(dir, "socket")
	if err := os.WriteFile(config, []byte(`<busconfig><type>session</type><listen>unix:path=`+socket+`</listen><auth>EXTERNAL</auth>
		<limit name="max_replies_per_connection">40</limit><policy context="default"><allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>`), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := exec.CommandContext(t.Context(), program, "--nofork", "--nopidfile", "--nosyslog", "--config-file="+config)
	daemon.Stderr = os.Stderr
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait() // killed
	})
	for range 2000 { // until it listens, which is after the socket's file is there
		if c, err := net.Dial("unix", socket); err == nil {
			_ = c.Close() // nothing was written
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	c := dial(t, socket)
	const bus = "org.freedesktop.DBus"
	to := func(iface, member string, args ...string) Call {
		return Call{Destination: bus, Path: "/org/freedesktop/DBus", Interface: iface, Member: member, Args: args}
	}
	var calls []Call
	for range 500 {
		calls = append(calls, to(bus, "NameHasOwner", bus), to(bus, "GetNameOwner", "org.example.nobody"), to(bus, "GetId"))
	}
	answers := map[string]int{}
	err = c.Do(calls, func(i int, body *Reader, err error) {
		switch {
		case err != nil:
			e, _ := errors.AsType[*CallError](err)
			answers[e.Name]++
		case body.Signature() == "b":
			answers[fmt.Sprint("owner ", body.Uint32(), " ", body.Err())]++
		case body.Signature() == "s":
			answers[fmt.Sprint("id of ", len(body.String()), " ", body.Err())]++
		}
	})
	want := map[string]int{"owner 1 <nil>": 500, "org.freedesktop.DBus.Error.NameHasNoOwner": 500, "id of 32 <nil>": 500}
	if err != nil || fmt.Sprint(answers) != fmt.Sprint(want) {
		t.Errorf("got %v, %v; want %v", answers, err, want)
	}
}
