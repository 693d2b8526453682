//go:build linux

package host

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// testBus is a dbus-daemon of its own, with a program that has systemd's name.
type testBus struct {
	Path  string // of the socket
	calls atomic.Int64
}

// testCall is a call that has arrived at the program.
type testCall struct {
	path   dbus.ObjectPath
	method string // with its interface in front
	args   []any
}

type (
	errorAnswer string   // the name of an error, which a program answers instead of a value
	noAnswer    struct{} // a program answers this by nothing
)

// startBus starts a bus whose program answers calls so; without answer there is no program.
func startBus(t *testing.T, answer func(testCall) any) *testBus {
	t.Helper()
	program := needs(t, "dbus-daemon")
	dir := t.TempDir()
	b := &testBus{Path: filepath.Join(dir, "socket")}
	config := filepath.Join(dir, "bus.conf")
	if err := os.WriteFile(config, []byte(`<busconfig><type>session</type><listen>unix:path=`+b.Path+`</listen><auth>EXTERNAL</auth>
		<limit name="max_replies_per_connection">40</limit><policy context="default"><allow own="*"/><allow send_destination="*"/>
		<allow receive_sender="*"/></policy></busconfig>`), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := exec.CommandContext(t.Context(), program, "--nofork", "--nopidfile", "--nosyslog", "--print-address", "--config-file="+config)
	daemon.Stderr = t.Output()
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait() // killed
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // the address, once it listens
		t.Fatal(err)
	}
	if answer != nil {
		b.play(t, answer)
	}
	return b
}

// play connects the program.
func (b *testBus) play(t *testing.T, answer func(testCall) any) {
	t.Helper()
	conn, err := dbus.Connect("unix:path=" + b.Path)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := conn.RequestName(systemdName, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(reply, err)
	}
	arrived := make(chan *dbus.Message, 1000) // far more than one connection may have under way
	conn.Eavesdrop(arrived)
	var all sync.WaitGroup
	all.Go(func() {
		for m := range arrived {
			if m.Type != dbus.TypeMethodCall {
				continue
			}
			b.calls.Add(1)
			text := func(f dbus.HeaderField) string { s, _ := m.Headers[f].Value().(string); return s }
			path, _ := m.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
			given := answer(testCall{path, text(dbus.FieldInterface) + "." + text(dbus.FieldMember), m.Body})
			if given != (any)(noAnswer{}) {
				conn.Send(reply(m, given), nil)
			}
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		all.Wait()
	})
}

// reply is the answer to a call.
func reply(call *dbus.Message, given any) *dbus.Message {
	m := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(call.Serial())}}
	if from, ok := call.Headers[dbus.FieldSender]; ok {
		m.Headers[dbus.FieldDestination] = from
	}
	if name, ok := given.(errorAnswer); ok {
		m.Type = dbus.TypeError
		m.Headers[dbus.FieldErrorName] = dbus.MakeVariant(string(name))
		return m
	}
	m.Body = []any{given}
	m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(given))
	return m
}

// fakeBus is a socket whose server answers who signs in by this line, and talks afterwards. It ends with the test.
func fakeBus(t *testing.T, line string, talk func(in io.Reader, out io.Writer)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		for text := ""; err == nil && text != "BEGIN\r\n"; {
			if text, err = in.ReadString('\n'); err == nil && text != "BEGIN\r\n" {
				answer := line
				if strings.HasSuffix(text, "AUTH\r\n") { // which ways there are
					answer = "REJECTED EXTERNAL"
				}
				_, err = io.WriteString(conn, answer+"\r\n")
			}
		}
		if err == nil && talk != nil {
			talk(in, conn)
		}
		_, _ = io.Copy(io.Discard, in) // until the other side closes
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return path
}

// signedIn is the line of a bus that lets a user in.
const signedIn = "OK 0123456789abcdef0123456789abcdef"

func dialTest(t *testing.T, path string, limit time.Duration) *bus {
	t.Helper()
	b, err := dialBus(path, time.Now().Add(limit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

// TestDBusDaemon: the daemon that distributions have takes far more calls than it lets one connection have under way,
// and each call has its own answer.
func TestDBusDaemon(t *testing.T) {
	b := dialTest(t, startBus(t, nil).Path, 20*time.Second)
	const name = "org.freedesktop.DBus"
	to := func(member string, args ...any) busCall {
		return busCall{name, "/org/freedesktop/DBus", name + "." + member, args}
	}
	var calls []busCall
	for range 500 {
		calls = append(calls, to("NameHasOwner", name), to("GetNameOwner", "org.example.None"), to("GetId"))
	}
	answers := map[string]int{}
	err := b.do(calls, func(i int, body []any, err error) {
		got := fmt.Sprint(body)
		if err != nil {
			got, _, _ = strings.Cut(err.Error(), ": ")
		} else if id, ok := body[0].(string); ok && len(id) == 32 {
			got = "id"
		}
		answers[calls[i].method+" "+got]++
	})
	want := map[string]int{name + ".NameHasOwner [true]": 500, name + ".GetNameOwner org.freedesktop.DBus.Error.NameHasNoOwner": 500, name + ".GetId id": 500}
	if err != nil || fmt.Sprint(answers) != fmt.Sprint(want) {
		t.Errorf("got %v, %v; want %v", answers, err, want)
	}
}

// TestBusesThatHang: at whatever step a bus stops to answer, the deadline ends the wait, and no goroutine stays.
func TestBusesThatHang(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "deaf"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, path := range map[string]string{
		"before the sign-in": l.Addr().String(),
		"at Hello":           fakeBus(t, signedIn, nil),
	} {
		if _, err := dialBus(path, time.Now().Add(200*time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := dialTest(t, startBus(t, func(testCall) any { return noAnswer{} }).Path, 2*time.Second)
	calls := make([]busCall, 100)
	for i := range calls {
		calls[i] = propertyCall(systemdPath, systemdManager, "Version")
	}
	if err := b.do(calls, func(i int, body []any, err error) { t.Errorf("call %d: %v, %v", i, body, err) }); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("without an answer: %v", err)
	}
}

// TestBusSendsSomethingElse: signals, even those that the library cannot read, and calls from other programs are
// ignored, in both byte orders; a bus that hangs up is an error at once.
func TestBusSendsSomethingElse(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		path := fakeBus(t, signedIn, func(in io.Reader, out io.Writer) {
			send := func(m *dbus.Message) {
				if err := m.EncodeTo(out, order); err != nil {
					t.Error(err)
				}
			}
			text := func(s string) dbus.Variant { return dbus.MakeVariant(s) }
			for n := range 3 {
				m, err := dbus.DecodeMessage(in)
				if err != nil {
					t.Error(err)
					return
				}
				send(&dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
					dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/a")), dbus.FieldInterface: text("org.freedesktop.DBus"),
					dbus.FieldSender: text("org.freedesktop.DBus"), dbus.FieldMember: text("NameAcquired"),
				}})
				send(&dbus.Message{Type: dbus.TypeMethodCall, Headers: map[dbus.HeaderField]dbus.Variant{
					dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/a")), dbus.FieldMember: text("Ping"), dbus.FieldInterface: text("org.freedesktop.DBus.Peer"),
				}})
				send(reply(m, fmt.Sprint(n)))
			}
			_ = out.(io.Closer).Close() // it hangs up
		})
		b := dialTest(t, path, 20*time.Second)
		for n := 1; n <= 2; n++ {
			err := b.do([]busCall{{"a.b", "/a", "a.b.C", nil}}, func(_ int, body []any, err error) {
				if want := fmt.Sprint([]string{fmt.Sprint(n)}); fmt.Sprint(body) != want || err != nil {
					t.Errorf("%v: %v, %v; want %s", order, body, err, want)
				}
			})
			if err != nil {
				t.Error(err)
			}
		}
		err := b.do([]busCall{{"a.b", "/a", "a.b.C", nil}}, func(int, []any, error) { t.Error("a bus that is gone answers") })
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a bus hangs up: %v", err)
		}
	}
}

// TestBusSendsTooMuch: what a bus sends without an answer is read up to a bound, whatever length it announces.
func TestBusSendsTooMuch(t *testing.T) {
	sent := make(chan int64, 1)
	path := fakeBus(t, signedIn, func(in io.Reader, out io.Writer) {
		head := []byte{'l', byte(dbus.TypeMethodReply), 0, 1}
		head = binary.LittleEndian.AppendUint32(head, 120<<20)                                                  // the body
		head = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(head, 1), 8)                   // serial, fields
		head = append(head, 5, 1, 'u', 0, 1, 0, 0, 0)                                                           // in reply to 1
		n, _ := io.Copy(out, io.MultiReader(strings.NewReader(string(head)), io.LimitReader(zeros{}, 120<<20))) // until it is cut
		sent <- n
	})
	begin := time.Now()
	_, err := dialBus(path, begin.Add(time.Minute))
	if !errors.Is(err, errBusBytes) || time.Since(begin) > 30*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	if n := <-sent; n < busBytes || n > busBytes+1<<20 { // and what the sockets hold
		t.Errorf("%d bytes were taken", n)
	}
}

// zeros are zero bytes without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
