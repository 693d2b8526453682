//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a running agent. Its output goes to a file.
type process struct {
	pid     int
	began   time.Time // just before it was started
	logFile string
	cmd     *exec.Cmd
	done    chan struct{} // closed when it has ended
}

// start starts a program with its output in dir.
func start(program string, args []string, dir string) (*process, error) {
	p := &process{logFile: filepath.Join(dir, "log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	p.cmd.Env = plainEnvironment(os.Environ())
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a measurement that is killed leaves no agent behind
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	p.pid = p.cmd.Process.Pid
	go func() {
		_ = p.cmd.Wait() // how it ended is in its ProcessState
		close(p.done)
	}()
	return p, nil
}

// plainEnvironment returns the environment without variables that would tune an agent.
func plainEnvironment(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GODEBUG"}, name)
	})
}

// gone returns how the process ended and its last output; nil while it runs.
func (p *process) gone() error {
	select {
	case <-p.done:
		return fmt.Errorf("it ended by itself: %s; it said last:\n%s", p.cmd.ProcessState, p.tail())
	default:
		return nil
	}
}

// tail returns the end of the process' output.
func (p *process) tail() string {
	const lines = 15
	b, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// stop ends the process; its shutdown is not measured.
func (p *process) stop() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop process %d: %w", p.pid, err)
	}
	<-p.done
	return nil
}

// cpu returns the processor time used by the process, user and system.
func (p *process) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return 0, err
	}
	return cpuOf(b)
}

// cpuOf parses utime and stime in /proc/PID/stat: fields 14 and 15 of proc_pid_stat(5), in ticks of 10 ms, which Linux
// uses towards programs on every processor that Go supports.
func cpuOf(stat []byte) (time.Duration, error) {
	const tick = 10 * time.Millisecond
	after := bytes.LastIndexByte(stat, ')') // the program's name may hold blanks
	f := strings.Fields(string(stat[after+1:]))
	if after < 0 || len(f) < 13 {
		return 0, errors.New("/proc/PID/stat has too few fields")
	}
	var sum time.Duration
	for _, s := range f[11:13] {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/stat: %w", err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// memory is resident memory in bytes.
type memory struct {
	rss  float64 // all of it, including file pages that the kernel can reclaim
	anon float64 // the process's own
}

func (p *process) memory() (memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return memory{}, err
	}
	rss, err := valueOf(b, "VmRSS")
	if err != nil {
		return memory{}, err
	}
	anon, err := valueOf(b, "RssAnon")
	return memory{rss: 1024 * float64(rss), anon: 1024 * float64(anon)}, err
}

// written returns how many bytes the process dirtied in the page cache of real disks: a page of 4 KiB counts each time
// it becomes dirty.
func (p *process) written() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.pid))
	if err != nil {
		return 0, err
	}
	return valueOf(b, "write_bytes")
}

// valueOf returns the number in a line "name: number …".
func valueOf(text []byte, name string) (int64, error) {
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(line, ":")
		if !ok || key != name {
			continue
		}
		f := strings.Fields(value)
		if len(f) == 0 {
			break
		}
		return strconv.ParseInt(f[0], 10, 64)
	}
	return 0, fmt.Errorf("the kernel does not say %s of a process", name)
}

// onMemory reports whether a directory is in memory, where writes are not counted.
func onMemory(dir string) (bool, error) {
	const tmpfs = 0x01021994 // statfs(2)
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return false, fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	return int64(fs.Type) == tmpfs, nil
}
