package bmcsim

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Line is a controller on the board of a virtual machine. The machine's kernel speaks to QEMU's device ipmi-bmc-extern as to any
// controller, and QEMU brings each message here over a connection that it opens, and opens again when it ends. The protocol is that
// of OpenIPMI's simulator, described in its lanserv/README.vm. Its methods are safe for concurrent use.
type Line struct {
	listener net.Listener
	machine  *Machine
	ended    chan struct{}
	serving  sync.WaitGroup

	mu      sync.Mutex
	fault   Fault
	changed chan struct{} // closed when fault changes: late answers then come at once
	conn    net.Conn      // the newest
	enables byte          // global enables, set by the machine's kernel (section 22.1)
	counts  Counts
}

// ListenLine returns a controller that QEMU reaches at that TCP address; Run answers.
func ListenLine(address string, m *Machine) (*Line, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Line{listener: l, machine: m, ended: make(chan struct{}), changed: make(chan struct{})}, nil
}

// Address returns host:port.
func (l *Line) Address() string { return l.listener.Addr().String() }

// Run answers until Close.
func (l *Line) Run() {
	defer l.serving.Wait()
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.serving.Go(func() { l.serve(conn) })
	}
}

// Close ends Run.
func (l *Line) Close() {
	close(l.ended)
	_ = l.listener.Close()
	l.hangUp()
}

// Set changes the fault. A controller that is [Gone] has no connection until its fault changes again.
func (l *Line) Set(f Fault) {
	l.mu.Lock()
	l.fault = f
	close(l.changed)
	l.changed = make(chan struct{})
	if f == Gone {
		l.enables = 0 // it comes back as after a reset
	}
	l.mu.Unlock()
	if f == Gone {
		l.hangUp()
	}
}

// Counts returns the figures so far. Opened counts connections.
func (l *Line) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

func (l *Line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

// take accepts a connection, unless the controller is gone.
func (l *Line) take(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == Gone {
		l.counts.Faults++
		return false
	}
	l.counts.Opened++
	l.conn = conn
	return true
}

// The characters of the protocol: the ends of a message and of a command, and the escape before a character whose bit 4
// must be 0.
const (
	endOfMessage = 0xa0
	endOfCommand = 0xa1
	escape       = 0xaa
	escaped      = 0x10
)

// Commands to the machine: whether the interface interrupts when a message has come.
const (
	interruptsOn  = 0x05
	interruptsOff = 0x06
)

// maxFrame is longer than any message of IPMI.
const maxFrame = 512

// serve answers the messages of a connection. Commands of the machine, which report its features and resets, need no
// answer.
func (l *Line) serve(conn net.Conn) {
	defer conn.Close()
	if !l.take(conn) {
		return
	}
	var frame, before []byte
	raised := false
	buf := make([]byte, maxFrame)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		for _, c := range buf[:n] {
			switch {
			case c == endOfCommand:
				frame = frame[:0]
			case c == endOfMessage:
				answer, enables := l.answer(frame, before)
				frame = frame[:0]
				if len(enables) > 0 {
					answer = append(answer, frameOf(endOfCommand, enables)...)
				}
				if _, err := conn.Write(answer); err != nil {
					return
				}
				if len(answer) > 0 {
					before = answer
				}
			case c == escape:
				raised = true
			case len(frame) < maxFrame:
				if raised {
					c &^= escaped
				}
				raised = false
				frame = append(frame, c)
			}
		}
	}
}

// frameOf encodes bytes for the line.
func frameOf(end byte, text []byte) []byte {
	var out []byte
	for _, c := range text {
		if c == endOfMessage || c == endOfCommand || c == escape {
			out = append(out, escape, c|escaped)
			continue
		}
		out = append(out, c)
	}
	return append(out, end)
}

// errFrame means that a message is too short, or its checksum is wrong.
var errFrame = errors.New("is no message")

// parseFrame parses the request in a frame: a sequence number, network function and LUN, command, data, checksum.
func parseFrame(f []byte) (r request, err error) {
	if len(f) < 4 || checksum(f) != 0 {
		return r, errFrame
	}
	return request{sequence: f[0], lun: f[1] & 3, netFn: f[1] >> 2, command: f[2], data: f[3 : len(f)-1]}, nil
}

// answer returns the bytes to send in answer to a frame, and a command to the machine; nil if there is none. before are
// the last bytes sent.
func (l *Line) answer(frame, before []byte) (out, command []byte) {
	r, err := parseFrame(frame)
	if err != nil {
		return nil, nil
	}
	code, data, command := l.command(&r)
	l.mu.Lock()
	l.counts.Commands++
	fault, changed, odd := l.fault, l.changed, l.counts.Faults%2 == 1
	if fault != Well {
		l.counts.Faults++
	}
	l.mu.Unlock()
	if fault == Lies && len(data) > 2 {
		if data = data[:len(data)/2]; odd {
			data = append(data, make([]byte, maxFrame/2)...)
		}
	}
	text := append([]byte{r.sequence, (r.netFn|1)<<2 | r.lun, r.command, code}, data...)
	out = frameOf(endOfMessage, append(text, checksum(text)))
	switch fault {
	case Silent:
		return nil, nil
	case Late:
		select {
		case <-time.After(lateness):
		case <-changed:
		case <-l.ended:
		}
	case Twice:
		out = append(out, out...)
	case Stray:
		out = append(append(append([]byte(nil), before...), "\x00rubbish\xa0"...), out...)
	}
	return out, command
}

// command answers any command, including those that only the machine's own kernel sends.
func (l *Line) command(r *request) (code byte, data, command []byte) {
	switch uint16(r.netFn)<<8 | uint16(r.command) {
	case 0x062e: // Set BMC Global Enables (section 22.1)
		if len(r.data) < 1 {
			return codeLength, nil, nil
		}
		command = []byte{interruptsOff}
		if r.data[0]&1 != 0 {
			command[0] = interruptsOn
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.enables = r.data[0]
		return 0, nil, command
	case 0x062f: // Get BMC Global Enables (section 22.2)
		l.mu.Lock()
		defer l.mu.Unlock()
		return 0, []byte{l.enables}, nil
	case 0x0630: // Clear Message Flags (section 22.3)
		return 0, nil, nil
	case 0x0631: // Get Message Flags (section 22.4)
		return 0, []byte{0}, nil
	}
	code, data = l.machine.command(r)
	return code, data, nil
}
