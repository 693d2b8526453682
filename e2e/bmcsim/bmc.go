package bmcsim

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// Fault is a way in which a BMC misbehaves.
type Fault int

// The faults.
const (
	Well   Fault = iota
	Silent       // it never answers
	Stops        // it accepts a login, answers a few commands, and then stops answering: its sessions stay open
	Late         // each answer comes after the console has repeated its request
	Twice        // each answer comes twice
	Stray        // before each answer it sends the previous one, out of order, and a garbage packet
	Lies         // its answers are shorter than their stated length; on a [Line] every second one is too long instead
	Gone         // for a [Line]: no connection
)

// answersOfStops is how many commands of a session a BMC with [Stops] answers.
const answersOfStops = 20

// lateness is the delay of answers with [Late]; a console that waits one second for each packet gets none in time.
const lateness = 1200 * time.Millisecond

// Counts are the figures of a BMC so far.
type Counts struct {
	Opened   int         // sessions that were active
	Closed   int         // sessions that their console closed
	Most     int         // active sessions at one time, at most
	Commands int         // commands within sessions
	Faults   int         // packets answered wrongly, or not at all, because of the fault
	Begun    []time.Time // when sessions became active
}

// BMC is one controller. Its methods are safe for concurrent use.
type BMC struct {
	conn    net.PacketConn
	machine *Machine
	fault   Fault

	mu       sync.Mutex
	counts   Counts
	sessions map[[4]byte]*session // by the BMC's ID
	before   []byte               // the last answer
	timers   sync.WaitGroup       // late answers
	closing  bool
}

// Listen returns a BMC at that UDP address; Run answers. Several may share a machine.
func Listen(address string, m *Machine, f Fault) (*BMC, error) {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, err
	}
	return &BMC{conn: conn, machine: m, fault: f, sessions: map[[4]byte]*session{}}, nil
}

// Address returns host:port.
func (b *BMC) Address() string { return b.conn.LocalAddr().String() }

// Counts returns the figures so far.
func (b *BMC) Counts() Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.counts
	c.Begun = append([]time.Time(nil), c.Begun...)
	return c
}

// Run answers until Close.
func (b *BMC) Run() {
	buf := make([]byte, 1024)
	for {
		n, from, err := b.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if answer := b.answer(buf[:n]); answer != nil {
			b.send(answer, from)
		}
	}
}

// Close ends Run, and waits for pending answers.
func (b *BMC) Close() {
	b.mu.Lock()
	b.closing = true
	b.mu.Unlock()
	b.timers.Wait()
	_ = b.conn.Close()
}

// send sends an answer according to the fault. A lost answer is a lost packet.
func (b *BMC) send(answer []byte, to net.Addr) {
	write := func(p []byte) { _, _ = b.conn.WriteTo(p, to) }
	b.mu.Lock()
	before, closing := b.before, b.closing
	b.before = answer
	if b.fault != Well && b.fault != Stops && b.fault != Lies {
		b.counts.Faults++
	}
	if b.fault == Late && !closing {
		b.timers.Add(1)
	}
	b.mu.Unlock()
	switch b.fault {
	case Silent:
	case Late:
		if !closing {
			time.AfterFunc(lateness, func() { defer b.timers.Done(); write(answer) })
		}
	case Twice:
		write(answer)
		write(answer)
	case Stray:
		write(before)
		write([]byte("\x06\x00\xff\x07rubbish"))
		write(answer)
	default:
		write(answer)
	}
}

// answer returns the answer to a packet; nil if there is none.
func (b *BMC) answer(p []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(p) < 5 || p[0] != 6 || p[3] != 7 {
		return nil
	}
	if p[4] == 0 {
		return outside(p)
	}
	if len(p) < 16 || p[4] != 6 {
		return nil
	}
	size := int(binary.LittleEndian.Uint16(p[14:]))
	if len(p) < 16+size {
		return nil
	}
	body := p[16 : 16+size]
	switch p[5] {
	case 0x10:
		return b.openSession(body)
	case 0x12:
		return b.first(body)
	case 0x14:
		return b.third(body)
	case 0xc0:
		return b.message(p, body)
	}
	return nil
}

// outside answers the one command that consoles send without a session, in the form of IPMI 1.5: Get Channel Authentication
// Capabilities (section 22.13).
func outside(p []byte) []byte {
	if len(p) < 14 || len(p) < 14+int(p[13]) {
		return nil
	}
	r, ok := parseRequest(p[14 : 14+int(p[13])])
	if !ok || r.netFn != 0x06 || r.command != 0x38 {
		return nil
	}
	m := r.answer(0, []byte{1, 0x80, 0x04, 0x02, 0, 0, 0, 0}) // version 2.0, users with names, RMCP+
	return append(append(append([]byte{6, 0, 0xff, 7, 0}, make([]byte, 8)...), byte(len(m))), m...)
}

// maxSessions is how many sessions a BMC has, including those being opened; real ones have 4 to 15.
const maxSessions = 8

// privilegeAdministrator is the highest privilege of a session (section 13.18), and the account's.
const privilegeAdministrator = 4

// sessionLife is how long a session without packets is kept (section 6.12.15).
const sessionLife = time.Minute

// openSession answers RMCP+ Open Session Request (sections 13.17, 13.18).
func (b *BMC) openSession(q []byte) []byte {
	if len(q) < 32 {
		return nil
	}
	refuse := func(status byte) []byte { return plain(0x11, append([]byte{q[0], status, 0, 0}, q[4:8]...)) }
	s := &session{used: time.Now()}
	for _, one := range suites {
		if q[12] == one.auth && q[20] == one.integrity && q[28] == 1 {
			s.suite = one
		}
	}
	if s.suite == nil {
		return refuse(0x11) // no cipher suite matches
	}
	now := time.Now()
	for id, other := range b.sessions {
		if now.Sub(other.used) > sessionLife || len(b.sessions) >= maxSessions && !other.active {
			delete(b.sessions, id)
		}
	}
	if len(b.sessions) >= maxSessions {
		return refuse(0x01)
	}
	copy(s.theirs[:], q[4:])
	_, _ = rand.Read(s.ours[:])
	b.sessions[s.ours] = s
	granted := q[1] & 0xf
	if granted == 0 { // asks for the highest that there is
		granted = privilegeAdministrator
	}
	a := append([]byte{q[0], 0, granted, 0}, q[4:8]...)
	a = append(append(a, s.ours[:]...), q[8:32]...)
	return plain(0x11, a)
}

// first answers RAKP message 1 with message 2 (sections 13.20, 13.21).
func (b *BMC) first(q []byte) []byte {
	if len(q) < 28 || len(q) < 28+int(q[27]) {
		return nil
	}
	s := b.sessions[[4]byte(q[4:8])]
	if s == nil || s.active {
		return plain(0x13, []byte{q[0], 0x02, 0, 0, 0, 0, 0, 0}) // no such session
	}
	copy(s.console[:], q[8:24])
	name := q[28 : 28+int(q[27])]
	if string(name) != b.machine.User {
		delete(b.sessions, s.ours)
		return plain(0x13, append([]byte{q[0], 0x0d, 0, 0}, s.theirs[:]...)) // no such user
	}
	s.who, s.privilege = append([]byte{q[24], q[27]}, name...), q[24]&0xf
	_, _ = rand.Read(s.number[:])
	a := append([]byte{q[0], 0, 0, 0}, s.theirs[:]...)
	a = append(append(a, s.number[:]...), b.machine.GUID[:]...)
	password := []byte(b.machine.Password)
	return plain(0x13, append(a, s.suite.sign(password, s.theirs[:], s.ours[:], s.console[:], s.number[:], b.machine.GUID[:], s.who)...))
}

// third answers RAKP message 3 with message 4 (sections 13.22, 13.23).
func (b *BMC) third(q []byte) []byte {
	if len(q) < 8 {
		return nil
	}
	s := b.sessions[[4]byte(q[4:8])]
	if s == nil || s.who == nil {
		return plain(0x15, []byte{q[0], 0x02, 0, 0, 0, 0, 0, 0})
	}
	password := []byte(b.machine.Password)
	if !hmac.Equal(q[8:], s.suite.sign(password, s.number[:], s.theirs[:], s.who)) {
		delete(b.sessions, s.ours)
		return plain(0x15, append([]byte{q[0], 0x0f, 0, 0}, s.theirs[:]...))
	}
	key := s.suite.sign(password, s.console[:], s.number[:], s.who)
	if !s.active {
		if s.activate(key) != nil {
			return nil
		}
		b.counts.Opened++
		b.counts.Begun = append(b.counts.Begun, time.Now())
		active := 0
		for _, one := range b.sessions {
			if one.active {
				active++
			}
		}
		b.counts.Most = max(b.counts.Most, active)
	}
	a := append([]byte{q[0], 0, 0, 0}, s.theirs[:]...)
	return plain(0x15, append(a, s.suite.sign(key, s.console[:], s.ours[:], b.machine.GUID[:])[:s.suite.size]...))
}

// message answers a command of an active session.
func (b *BMC) message(p, body []byte) []byte {
	s := b.sessions[[4]byte(p[6:10])]
	if s == nil {
		return nil
	}
	r, ok := parseRequest(s.open(p, body))
	if !ok {
		return nil
	}
	s.used = time.Now()
	b.counts.Commands++
	if b.fault == Stops && s.sequence >= answersOfStops {
		b.counts.Faults++
		return nil
	}
	if r.netFn == 0x06 && r.command == 0x3c { // Close Session (section 22.19)
		b.counts.Closed++
		delete(b.sessions, s.ours)
		return s.seal(r.answer(0, nil))
	}
	code, data := b.machine.command(&r)
	if b.fault == Lies && len(data) > 2 && r.netFn != 0x06 {
		b.counts.Faults++
		data = data[:len(data)/2]
	}
	return s.seal(r.answer(code, data))
}
