//go:build linux

package crashlab

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	nameServer  = "10.97.0.53"
	name        = "receiver.test"
	anotherHost = "10.98.0.3" // on the broken cable, too
)

// names is a name server that knows one name, and can be made to forget it.
type names struct {
	t    *testing.T
	conn net.PacketConn
	done sync.WaitGroup

	mu      sync.Mutex
	address string
	code    dnsmessage.RCode
	dead    bool
	delay   time.Duration
	asked   int
}

func newNames(t *testing.T, in *netns) *names {
	t.Helper()
	s := &names{t: t, address: brokenHost}
	err := in.do(func() (err error) {
		s.conn, err = net.ListenPacket("udp", nameServer+":53")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.done.Go(s.serve)
	t.Cleanup(func() {
		s.conn.Close()
		s.done.Wait()
	})
	return s
}

func (s *names) serve() {
	for buf := make([]byte, 1500); ; {
		k, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return // closed
		}
		reply, delay := s.answer(buf[:k])
		if reply == nil {
			continue
		}
		s.done.Go(func() {
			time.Sleep(delay) // the server's slowness
			_, _ = s.conn.WriteTo(reply, from)
		})
	}
}

// answer returns the reply to a question, nil if there is none.
func (s *names) answer(question []byte) ([]byte, time.Duration) {
	var p dnsmessage.Parser
	head, err := p.Start(question)
	if err != nil {
		s.t.Errorf("a question that cannot be read: %v", err)
		return nil, 0
	}
	q, err := p.Question()
	if err != nil {
		s.t.Errorf("a question that cannot be read: %v", err)
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.dead {
		return nil, 0
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: head.ID, Response: true, RecursionAvailable: true, RCode: s.code},
		Questions: []dnsmessage.Question{q},
	}
	if q.Type == dnsmessage.TypeA && s.code == dnsmessage.RCodeSuccess {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 3600},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr(s.address).As4()},
		}}
	}
	reply, err := m.Pack()
	if err != nil {
		s.t.Errorf("pack an answer: %v", err)
	}
	return reply, s.delay
}

// change changes how the server answers from now on.
func (s *names) change(how func(s *names)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(s)
}

func (s *names) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// wrong returns a fault of the name server, when connections must be made anew.
func (s *names) wrong(what, says string, how func(s *names)) fault {
	return fault{name: what, says: says, wire: true, naming: true, on: func(n *network) func() int {
		before := s.questions()
		s.change(how)
		// A connection may be on its way for which the name was asked before.
		eventually(n.t, 5*time.Second, func() string {
			if s.questions() > before {
				return ""
			}
			n.broken.cut(false)
			return what + ": the agent does not ask for the name"
		})
		return func() int {
			asked := s.questions() - before
			s.change(func(s *names) { s.code, s.dead, s.delay, s.address = dnsmessage.RCodeSuccess, false, 0, brokenHost })
			return asked
		}
	}}
}

// newNamedNetwork has the agent know the broken host by its name. The agent runs with a
// resolv.conf of its own.
func newNamedNetwork(t *testing.T) (*network, *names) {
	t.Helper()
	endToEnd(t)
	if !mountsAreOwn() {
		cannot(t, "needs to mount a resolv.conf (root and CAP_SYS_ADMIN)")
	}
	n := newNetwork(t, name)
	n.far.ip("addr add " + nameServer + "/24 dev well")
	s := newNames(t, n.far)
	conf := filepath.Join(n.dir, "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver "+nameServer+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-m", "sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, conf}, n.args...)
	n.spawn("unshare", args, nil, nil, nil)
	n.settleIn()
	return n, s
}

// TestNames breaks the name server, and moves the name to another host when the old one
// is gone.
func TestNames(t *testing.T) {
	t.Parallel()
	n, s := newNamedNetwork(t)

	// Connections outlive the name server.
	s.change(func(s *names) { s.dead = true })
	n.fresh(time.Now().Add(time.Second), 20*time.Second)
	s.change(func(s *names) { s.dead = false })

	slow := s.wrong("slow name server", "", func(s *names) { s.delay = time.Second })
	slow.leaky = true
	faults := []fault{
		slow,
		s.wrong("name server dead", "", func(s *names) { s.dead = true }),
		s.wrong("no such name", "no such host", func(s *names) { s.code = dnsmessage.RCodeNameError }),
		s.wrong("name server fails", "server misbehaving", func(s *names) { s.code = dnsmessage.RCodeServerFailure }),
		s.wrong("name without address", "", func(s *names) { s.address = "10.98.0.77" }),
		{name: "moved, the old host is gone", short: true, wire: true, on: func(n *network) func() int {
			before := n.broken.counts().accepted
			n.far.rule("in", "ip daddr "+brokenHost+" counter drop")
			n.far.rule("out", "ip saddr "+brokenHost+" counter drop")
			n.broken.shut()
			listen := n.broken.listen
			n.broken.listen = func() (net.Listener, error) { return n.far.listen(anotherHost + peerPort) }
			n.broken.open()
			s.change(func(s *names) { s.address = anotherHost })
			return func() int {
				n.fresh(time.Now(), time.Minute)
				moved := n.broken.counts().accepted - before
				s.change(func(s *names) { s.address = brokenHost })
				n.broken.listen = listen
				n.broken.shut()
				n.broken.cut(true)
				n.broken.open()
				n.far.calm()
				return moved
			}
		}},
	}
	n.sufferAll(faults, amount(0, 10))
	n.account("the name server fails, the name moves")
}

// TestNameMovesWhileAllIsWell moves the name to another host while the old one goes on
// serving: the agent follows within the age of its connections.
func TestNameMovesWhileAllIsWell(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	if amount(0, 1) == 0 {
		t.Skip("takes the five minutes that a connection lives: part of the full tier")
	}
	n, s := newNamedNetwork(t)
	another := newPeer(t, func() (net.Listener, error) { return n.far.listen(anotherHost + peerPort) })
	another.oracle = n.broken.oracle
	began := time.Now()
	s.change(func(s *names) { s.address = anotherHost })
	const age = 5*time.Minute + 30*time.Second
	eventually(t, age, func() string {
		if another.counts().requests == 0 {
			return "the agent still writes to the old host"
		}
		return ""
	})
	t.Logf("moved after %s", time.Since(began).Round(time.Second))
	before := n.broken.counts().requests
	time.Sleep(2 * time.Second) // in which nothing may come
	if n.broken.counts().requests != before {
		t.Error("the agent writes to both hosts")
	}
	n.faults = 1
	n.account("the name moves while all is well")
}
