//go:build linux

// Command guest is the first process of the laboratory's machine: it mounts the kernel's file systems, loads the modules in
// the order of /etc/lab/modules, brings up the networks, and then runs programs on request over HTTP, on port 8080. It
// trusts all clients of that port; only the test reaches it. It never ends, as the first process must not.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	err := boot()
	if err == nil {
		fmt.Println("lab: the machine is up")
		err = http.ListenAndServe(":8080", http.HandlerFunc((&runner{}).serve))
	}
	fmt.Println("lab: the machine cannot be used:", err)
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

// boot prepares the machine. A failure ends the boot with the reason: a laboratory that lacks a part would compare less.
func boot() error {
	for _, m := range [][3]string{
		{"proc", "/proc", "proc"}, {"sysfs", "/sys", "sysfs"}, {"devtmpfs", "/dev", "devtmpfs"},
		{"tmpfs", "/run", "tmpfs"}, {"tmpfs", "/tmp", "tmpfs"},
	} {
		if err := os.MkdirAll(m[1], 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m[0], m[1], m[2], 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	if err := os.Setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"); err != nil {
		return err
	}
	if err := loadModules("/etc/lab/modules"); err != nil {
		return err
	}
	out, err := exec.Command("/bin/sh", "/etc/lab/setup").CombinedOutput()
	if err != nil {
		return fmt.Errorf("/etc/lab/setup: %w: %s", err, out)
	}
	return nil
}

// loadModules loads the modules listed in a file: each line has a path and the parameters.
func loadModules(list string) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		path, parameters, _ := strings.Cut(strings.TrimSpace(line), " ")
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), parameters, 0)
		f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", path, err)
		}
	}
	return nil
}

// request is a program to run.
type request struct {
	Args []string
	// Seconds bounds the run; 0: the program keeps running, and its output goes to the file Log.
	Seconds int
	Log     string
}

// answer is the result of a request.
type answer struct {
	Stdout, Stderr string
	Code           int    // the exit status; -1: it was killed, or did not start
	Err            string // why it did not start or was killed
	From, To       int64  // when it began and ended, by this machine's clock, in milliseconds since 1970
}

// runner starts programs and waits for each. Only orphans of other processes, which the first process inherits, stay
// unreaped; they are few.
type runner struct{ mu sync.Mutex }

func (r *runner) serve(w http.ResponseWriter, req *http.Request) {
	var what request
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, 1<<20)).Decode(&what); err != nil || len(what.Args) == 0 {
		http.Error(w, fmt.Sprint("a request is JSON with Args: ", err), http.StatusBadRequest)
		return
	}
	var a answer
	began := time.Now()
	if what.Seconds == 0 {
		a = r.start(what)
	} else {
		a = run(req.Context(), what)
	}
	a.From, a.To = began.UnixMilli(), time.Now().UnixMilli()
	_ = json.NewEncoder(w).Encode(a) // the test may have gone
}

func run(ctx context.Context, what request) answer {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(what.Seconds)*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, what.Args[0], what.Args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	err := cmd.Run()
	a := answer{Stdout: stdout.String(), Stderr: stderr.String(), Code: -1}
	if cmd.ProcessState != nil {
		a.Code = cmd.ProcessState.ExitCode()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || a.Code == -1 {
		a.Err = fmt.Sprint(err, " ", ctx.Err())
	}
	return a
}

// start leaves a program running.
func (r *runner) start(what request) answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	log, err := os.OpenFile(what.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return answer{Code: -1, Err: err.Error()}
	}
	defer log.Close()
	cmd := exec.Command(what.Args[0], what.Args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return answer{Code: -1, Err: err.Error()}
	}
	go func() {
		err := cmd.Wait()
		fmt.Printf("lab: %s ended: %v\n", what.Args[0], err)
	}()
	return answer{}
}
