//go:build linux

package crashlab

import (
	"encoding/json"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// tracerEnv makes the test's own binary run as a tracer; its value is a tracerSpec.
const tracerEnv = "HWSAGENT_CRASHLAB_TRACER"

// The actions of a plan on a call.
const (
	actKillBefore = "kill before" // the process is killed, the call does not take place
	actKillAfter  = "kill after"  // the call takes place, the process never learns it
	actTear       = "tear"        // a write writes a part only, then the process is killed; other calls: kill after
	actShort      = "short"       // a write writes a part only and says so
	actFail       = "fail"        // the call does not take place and returns Errno
	actDelay      = "delay"       // the call takes place later
)

// plan says what is done about the calls number From to To of those that change a file
// below a directory.
type plan struct {
	Below    string // directory, absolute
	Ops      string // of write, fsync, truncate, create, rename, unlink, mkdir; "": all
	From, To int    // counted from 1, since the start, over all threads
	Anew     bool   // counting begins again with this plan
	Act      string // "": count only
	Fraction float64
	Errno    int
	Delay    time.Duration
}

// shift is by how much the agent's clocks are ahead of this machine's, which stay unchanged. Its monotonic clock is
// never moved: moving both other clocks is a suspend, the wall clock alone a step.
type shift struct {
	Wall, Boot time.Duration
	Turn       int // names it in the event; from 1
}

type tracerSpec struct {
	Plan  plan
	Shift *shift // nil: clocks are not traced
}

type tracerCommand struct {
	Signal int    `json:",omitempty"` // to the program
	Plan   *plan  `json:",omitempty"`
	Shift  *shift `json:",omitempty"`
}

const eventShifted = "shifted" // a reading of a clock met the shift number Count

type tracerEvent struct {
	What  string // fired, shifted, end
	Op    string
	Path  string
	Count int
}

// traced is an agent under a tracer.
type traced struct {
	l     *lab
	stdin io.WriteCloser

	mu    sync.Mutex
	fired []tracerEvent
	count int // calls in all; known at the end
	turn  int // of the last shift that a reading of a clock met
	ended chan struct{}
}

// trace starts the agent under a tracer.
func (l *lab) trace(p plan) *traced {
	l.t.Helper()
	return l.traceAs(tracerSpec{Plan: p})
}

func (l *lab) traceAs(s tracerSpec) *traced {
	l.t.Helper()
	if !canTrace {
		cannot(l.t, "stops at system calls by ptrace, which is written for linux/amd64")
	}
	spec, err := json.Marshal(s)
	if err != nil {
		l.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	commands, stdin, err := os.Pipe()
	if err != nil {
		l.t.Fatal(err)
	}
	defer commands.Close()
	events, out, err := os.Pipe()
	if err != nil {
		l.t.Fatal(err)
	}
	defer out.Close()
	tr := &traced{l: l, stdin: stdin, ended: make(chan struct{})}
	l.spawn(self, l.args, []string{tracerEnv + "=" + string(spec)}, commands, out)
	go func() {
		defer close(tr.ended)
		defer events.Close()
		for in := json.NewDecoder(events); ; {
			var e tracerEvent
			if in.Decode(&e) != nil {
				return
			}
			tr.mu.Lock()
			switch e.What {
			case "fired":
				tr.fired = append(tr.fired, e)
			case eventShifted:
				tr.turn = e.Count
			default:
				tr.count = e.Count
			}
			tr.mu.Unlock()
		}
	}()
	l.tracer = tr
	done := l.done
	go func() {
		<-done
		stdin.Close()
	}()
	return tr
}

func (tr *traced) send(c tracerCommand) error { return json.NewEncoder(tr.stdin).Encode(c) }

// signal sends the agent a signal.
func (tr *traced) signal(s syscall.Signal) error { return tr.send(tracerCommand{Signal: int(s)}) }

// change replaces the plan. Counting goes on unless the plan says Anew.
func (tr *traced) change(p plan) {
	tr.l.t.Helper()
	if err := tr.send(tracerCommand{Plan: &p}); err != nil {
		tr.l.t.Fatalf("tell the tracer: %v", err)
	}
}

// set moves the agent's clocks and returns when it has read its wall clock so.
func (tr *traced) set(s shift) {
	tr.l.t.Helper()
	tr.mu.Lock()
	s.Turn = tr.turn + 1
	tr.mu.Unlock()
	if err := tr.send(tracerCommand{Shift: &s}); err != nil {
		tr.l.t.Fatalf("tell the tracer: %v", err)
	}
	eventually(tr.l.t, 20*time.Second, func() string {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if tr.turn < s.Turn {
			return "the agent has not read its clock"
		}
		return ""
	})
}

// events returns the calls that something was done about so far.
func (tr *traced) events() []tracerEvent {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([]tracerEvent(nil), tr.fired...)
}

// calls returns how many calls there were in all. The agent must be gone.
func (tr *traced) calls() int {
	<-tr.ended
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.count
}
