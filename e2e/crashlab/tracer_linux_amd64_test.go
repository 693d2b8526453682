package crashlab

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canTrace says that runTracer works here.
const canTrace = true

// tracer runs a program under ptrace and counts the system calls that change files below
// a directory, in all of its threads together and in the order in which they are entered.
// It is the parent of the program: when it ends, so does the program.
//
// Invariant: everything runs on one locked thread, as ptrace demands; only plan and shift
// are shared, with the goroutine that reads commands.
type tracer struct {
	spec  tracerSpec
	pid   int
	plan  atomic.Pointer[plan]
	shift atomic.Pointer[shift] // nil: the program sees the clocks as they are
	moved *shift                // the last one that a reading of a clock met

	count   int               // of calls that matter
	counted *plan             // which plan count belongs to
	pending map[int]pending   // action at the end of the call, by thread
	asleep  map[int]time.Time // by thread: when its call may begin
	events  *json.Encoder
}

// pending is the second half of an act.
type pending struct {
	act  string
	errn syscall.Errno
}

// runTracer returns the main program of the tracing process. Events go to descriptor 3, one
// JSON value a line; commands come from standard input.
func runTracer(specText string, args []string) int {
	runtime.LockOSThread()
	t := &tracer{
		pending: map[int]pending{}, asleep: map[int]time.Time{},
		events: json.NewEncoder(os.NewFile(3, "events")),
	}
	err := json.Unmarshal([]byte(specText), &t.spec)
	if err == nil {
		t.plan.Store(&t.spec.Plan)
		t.shift.Store(t.spec.Shift)
		err = t.start(args)
	}
	if err == nil {
		go t.commands()
		err = t.loop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tracer:", err)
		return 1
	}
	return 0
}

// commands obeys what the test asks for until it closes the pipe.
func (t *tracer) commands() {
	in := json.NewDecoder(os.Stdin)
	for {
		var c tracerCommand
		if in.Decode(&c) != nil {
			_ = unix.Kill(t.pid, unix.SIGKILL) // the test is gone
			return
		}
		if c.Signal != 0 {
			_ = unix.Kill(t.pid, syscall.Signal(c.Signal))
		}
		if c.Plan != nil {
			t.plan.Store(c.Plan)
		}
		if c.Shift != nil {
			t.shift.Store(c.Shift)
		}
	}
}

func (t *tracer) start(args []string) error {
	env := os.Environ()
	for i := range env {
		if strings.HasPrefix(env[i], tracerEnv+"=") {
			env[i] = tracerEnv + "="
		}
	}
	p, err := os.StartProcess(args[0], args, &os.ProcAttr{
		Env: env, Files: []*os.File{nil, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	t.pid = p.Pid
	var ws unix.WaitStatus
	if _, err := unix.Wait4(t.pid, &ws, unix.WALL, nil); err != nil {
		return err
	}
	if t.spec.Shift != nil {
		if err := hideVDSO(t.pid); err != nil {
			return err
		}
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(t.pid, options); err != nil {
		return err
	}
	return unix.PtraceSyscall(t.pid, 0)
}

// loop attends to the program's threads until it is gone.
func (t *tracer) loop() error {
	for {
		options := unix.WALL
		if len(t.asleep) > 0 {
			options |= unix.WNOHANG
		}
		var ws unix.WaitStatus
		tid, err := unix.Wait4(-1, &ws, options, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		case tid == 0:
			t.wake()
			time.Sleep(time.Millisecond) // while a thread is being delayed
			continue
		case ws.Exited() || ws.Signaled():
			if tid == t.pid {
				return t.events.Encode(tracerEvent{What: "end", Count: t.count})
			}
			continue
		case !ws.Stopped():
			continue
		}
		if err := t.stopped(tid, ws); err != nil && !errors.Is(err, unix.ESRCH) {
			return err // ESRCH: it was killed meanwhile
		}
	}
}

// wake lets delayed threads go on whose time has come.
func (t *tracer) wake() {
	for tid, until := range t.asleep {
		if time.Now().After(until) {
			delete(t.asleep, tid)
			_ = unix.PtraceSyscall(tid, 0) // it may have been killed
		}
	}
}

func (t *tracer) stopped(tid int, ws unix.WaitStatus) error {
	switch sig := ws.StopSignal(); {
	case sig == unix.SIGTRAP|0x80:
		entry, err := atEntry(tid)
		switch {
		case err != nil:
			return err
		case entry:
			return t.entered(tid)
		default:
			return t.left(tid)
		}
	case sig == unix.SIGTRAP && ws.TrapCause() > 0: // a thread was made
		return unix.PtraceSyscall(tid, 0)
	case sig == unix.SIGSTOP: // how a new thread begins
		return unix.PtraceSyscall(tid, 0)
	default:
		return unix.PtraceSyscall(tid, int(sig))
	}
}

// atEntry reports whether a thread stands before its call or after it. (ptrace(2),
// PTRACE_GET_SYSCALL_INFO: the first byte is 1 at the entry, 2 at the exit.)
func atEntry(tid int) (bool, error) {
	const getSyscallInfo = 0x420e
	var info [88]byte
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(tid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return false, errno
	}
	return info[0] == 1, nil
}

// entered decides about a call that has not taken place yet.
func (t *tracer) entered(tid int) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &regs); err != nil {
		return err
	}
	op, path := t.identify(tid, &regs)
	p := t.plan.Load()
	if op == "" || !strings.HasPrefix(path, p.Below) || len(p.Ops) > 0 && !strings.Contains(" "+p.Ops+" ", " "+op+" ") {
		return unix.PtraceSyscall(tid, 0)
	}
	if p != t.counted && p.Anew {
		t.count = 0
	}
	t.counted = p
	t.count++
	if p.Act == "" || t.count < p.From || t.count > p.To {
		return unix.PtraceSyscall(tid, 0)
	}
	if err := t.events.Encode(tracerEvent{What: "fired", Op: op, Path: strings.TrimPrefix(path, p.Below), Count: t.count}); err != nil {
		return err
	}
	switch p.Act {
	case actKillBefore:
		regs.Orig_rax = ^uint64(0) // no call
		if err := unix.PtraceSetRegs(tid, &regs); err != nil {
			return err
		}
		return unix.Kill(t.pid, unix.SIGKILL)
	case actKillAfter:
		t.pending[tid] = pending{act: actKillAfter}
	case actTear, actShort:
		if op == "write" && regs.Rdx > 1 {
			regs.Rdx = max(1, uint64(float64(regs.Rdx)*p.Fraction))
			if err := unix.PtraceSetRegs(tid, &regs); err != nil {
				return err
			}
		}
		if p.Act == actTear {
			t.pending[tid] = pending{act: actKillAfter}
		}
	case actFail:
		regs.Orig_rax = ^uint64(0)
		if err := unix.PtraceSetRegs(tid, &regs); err != nil {
			return err
		}
		t.pending[tid] = pending{act: actFail, errn: cmp.Or(syscall.Errno(p.Errno), syscall.EIO)}
	case actDelay:
		t.asleep[tid] = time.Now().Add(p.Delay)
		return nil
	}
	return unix.PtraceSyscall(tid, 0)
}

// left ends a call.
func (t *tracer) left(tid int) error {
	if s := t.shift.Load(); s != nil {
		if err := t.readClock(tid, s); err != nil {
			return err
		}
	}
	todo, ok := t.pending[tid]
	if !ok {
		return unix.PtraceSyscall(tid, 0)
	}
	delete(t.pending, tid)
	if todo.act == actKillAfter {
		return unix.Kill(t.pid, unix.SIGKILL)
	}
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &regs); err != nil {
		return err
	}
	regs.Rax = -uint64(todo.errn)
	if err := unix.PtraceSetRegs(tid, &regs); err != nil {
		return err
	}
	return unix.PtraceSyscall(tid, 0)
}

// identify names a call that changes files, and the file; "" for all other calls.
func (t *tracer) identify(tid int, regs *unix.PtraceRegs) (op, path string) {
	switch regs.Orig_rax {
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		return "write", t.descriptor(regs.Rdi)
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		return "fsync", t.descriptor(regs.Rdi)
	case unix.SYS_FTRUNCATE:
		return "truncate", t.descriptor(regs.Rdi)
	case unix.SYS_OPENAT:
		if regs.Rdx&unix.O_CREAT != 0 {
			return "create", t.at(tid, regs.Rdi, regs.Rsi)
		}
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return "rename", t.at(tid, regs.Rdi, regs.Rsi)
	case unix.SYS_UNLINKAT:
		return "unlink", t.at(tid, regs.Rdi, regs.Rsi)
	case unix.SYS_MKDIRAT:
		return "mkdir", t.at(tid, regs.Rdi, regs.Rsi)
	}
	return "", ""
}

func (t *tracer) descriptor(fd uint64) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.pid, int32(fd)))
	if err != nil {
		return ""
	}
	return name
}

func (t *tracer) at(tid int, dir, name uint64) string {
	var text []byte
	for buf := make([]byte, unsafe.Sizeof(name)); len(text) < 4096; {
		n, err := unix.PtracePeekData(tid, uintptr(name)+uintptr(len(text)), buf)
		if err != nil || n == 0 {
			break
		}
		if before, _, ended := strings.Cut(string(buf[:n]), "\x00"); ended {
			text = append(text, before...)
			break
		}
		text = append(text, buf[:n]...)
	}
	if path := string(text); filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(t.descriptor(dir), string(text))
}
