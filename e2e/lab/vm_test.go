//go:build linux && amd64

package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// vm is a running virtual machine.
type vm struct {
	t       *testing.T
	console string // the file of what the kernel and the first process say
	base    string // the address of the first process's server
	client  *http.Client
	monitor *monitor
}

// accelerator is how QEMU runs the machine: with the processor's help where a kernel gets as far as its first line with it,
// else in software. That /dev/kvm can be opened proves little: in a virtual machine it may be there and not work.
func accelerator(t *testing.T, qemu, image string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu, "-M", "q35", "-accel", "kvm", "-cpu", "host", "-m", "512", "-nodefaults", "-no-user-config", "-display", "none",
		"-no-reboot", "-serial", "stdio", "-kernel", image, "-append", "console=ttyS0 panic=-1 earlyprintk=ttyS0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	works := false
	for in := bufio.NewScanner(out); !works && in.Scan(); {
		works = strings.Contains(in.Text(), "Linux version")
	}
	cancel()
	_ = cmd.Wait() // killed
	if works {
		t.Log("the machine runs with KVM")
		return []string{"-accel", "kvm", "-cpu", "host"}
	}
	t.Log("the machine runs in software (TCG): KVM is not there or does not run a kernel")
	return []string{"-accel", "tcg,thread=multi", "-cpu", "max"}
}

// boot starts the machine and waits until its first process answers.
func boot(t *testing.T, qemu string, arguments []string) *vm {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	v := &vm{
		t: t, console: filepath.Join(dir, "console"), base: fmt.Sprintf("http://127.0.0.1:%d", port),
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	socket := filepath.Join(dir, "monitor")
	arguments = append(arguments, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-serial", "file:"+v.console, "-qmp", "unix:"+socket+",server=on,wait=off",
		"-netdev", fmt.Sprintf("user,id=net0,hostfwd=tcp:127.0.0.1:%d-:8080", port))
	cmd := exec.Command(qemu, arguments...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// QEMU ends with the test, however that ends: with the thread that started it, which waits for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if v.monitor != nil {
			v.monitor.close()
		}
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("QEMU said: %s\nthe console's end:\n%s", &said, v.tail(60))
		}
	})
	began := time.Now()
	for v.monitor == nil {
		if v.monitor, err = dialMonitor(socket); err != nil && time.Since(began) > 20*time.Second {
			t.Fatalf("connect to QEMU's monitor: %v", err)
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("QEMU ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	eventually(t, 4*time.Minute, func() string {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the machine went down while it booted: %v", err)
		default:
		}
		if a, err := v.ask(2*time.Second, request{Args: []string{"/bin/true"}, Seconds: 1}); err != nil || a.Code != 0 {
			return fmt.Sprintf("the machine does not answer: %v %+v", err, a)
		}
		return ""
	})
	t.Logf("the machine was up after %.0f s", time.Since(began).Seconds())
	return v
}

// tail is the end of the console.
func (v *vm) tail(lines int) string {
	text, err := os.ReadFile(v.console)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.ReplaceAll(string(text), "\r", ""), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// request and answer are those of the guest's first process.
type request struct {
	Args    []string
	Seconds int
	Log     string
}

type answer struct {
	Stdout, Stderr string
	Code           int
	Err            string
	From, To       int64 // by the machine's clock, in milliseconds
}

func (v *vm) ask(limit time.Duration, r request) (answer, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(v.t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.base, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	resp, err := v.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	var a answer
	err = json.NewDecoder(resp.Body).Decode(&a)
	return a, err
}

// try runs a program in the machine, for a minute at most, and returns how it ended.
func (v *vm) try(args ...string) answer {
	v.t.Helper()
	a, err := v.ask(90*time.Second, request{Args: args, Seconds: 60})
	if err != nil {
		v.t.Fatalf("run %q in the machine: %v", args, err)
	}
	return a
}

// run is try for a program that must end with status 0. It returns what the program printed.
func (v *vm) run(args ...string) string {
	v.t.Helper()
	a := v.try(args...)
	if a.Code != 0 {
		v.t.Fatalf("%q in the machine ended with %d: %s\n%s%s", args, a.Code, a.Err, a.Stdout, a.Stderr)
	}
	return a.Stdout
}

// sh runs a line of shell.
func (v *vm) sh(line string) string {
	v.t.Helper()
	return v.run("/bin/sh", "-ec", line)
}

// start leaves a program running in the machine.
func (v *vm) start(log string, args ...string) {
	v.t.Helper()
	if a, err := v.ask(20*time.Second, request{Args: args, Log: log}); err != nil || a.Code != 0 {
		v.t.Fatalf("start %q in the machine: %v %+v", args, err, a)
	}
}

// monitor is a connection to QEMU's machine protocol (QMP: docs/interop/qmp-spec.txt of QEMU).
type monitor struct {
	conn    net.Conn
	mu      sync.Mutex // one command at a time
	answers chan message
	ended   chan struct{}

	events sync.Mutex
	seen   map[string]int // events by name and device
}

type message struct {
	Return json.RawMessage
	Error  *struct{ Class, Desc string }
	Event  string
	Data   struct{ Device, Path string }
}

func dialMonitor(socket string) (*monitor, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	m := &monitor{conn: conn, answers: make(chan message, 1), ended: make(chan struct{}), seen: map[string]int{}}
	go m.read()
	if _, err := m.command("qmp_capabilities", nil); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *monitor) read() {
	defer close(m.ended)
	for in := json.NewDecoder(m.conn); ; {
		var got message
		if err := in.Decode(&got); err != nil {
			return
		}
		switch {
		case got.Event != "":
			m.events.Lock()
			m.seen[got.Event+" "+got.Data.Device]++
			m.events.Unlock()
		case got.Return != nil || got.Error != nil:
			m.answers <- got
		}
	}
}

// command runs a command of the monitor.
func (m *monitor) command(name string, arguments map[string]any) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := map[string]any{"execute": name}
	if arguments != nil {
		c["arguments"] = arguments
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	if _, err := m.conn.Write(append(text, '\n')); err != nil {
		return nil, err
	}
	select {
	case a := <-m.answers:
		if a.Error != nil {
			return nil, fmt.Errorf("%s %v: %s", name, arguments, a.Error.Desc)
		}
		return a.Return, nil
	case <-m.ended:
		return nil, fmt.Errorf("%s: QEMU has ended", name)
	case <-time.After(30 * time.Second):
		return nil, fmt.Errorf("%s: no answer", name)
	}
}

// count is how often an event came for a device.
func (m *monitor) count(event, device string) int {
	m.events.Lock()
	defer m.events.Unlock()
	return m.seen[event+" "+device]
}

func (m *monitor) close() {
	m.conn.Close()
	<-m.ended
}

// qmp runs a command of the monitor that must succeed.
func (v *vm) qmp(name string, arguments map[string]any) json.RawMessage {
	v.t.Helper()
	got, err := v.monitor.command(name, arguments)
	if err != nil {
		v.t.Fatal(err)
	}
	return got
}
