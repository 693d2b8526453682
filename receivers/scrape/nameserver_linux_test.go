package scrape

import (
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// How a name server behaves.
const (
	answers     = "answers"
	unknownName = "knows no such name"
	fails       = "fails"
	refuses     = "refuses"
	silent      = "says nothing"
	shortened   = "fits nothing into UDP"
	crowded     = "fits nothing anywhere"
)

// names is a name server over UDP and TCP. What it does with names that begin with
// "moving" may be changed; other names are always answered.
type names struct {
	mu       sync.Mutex
	mode     string
	records  map[string][]dns.RR // by name
	asked    int                 // for moving names, in this mode
	askedTCP int
}

// serveNames starts a server at an address that a resolv.conf names.
func serveNames(t *testing.T, host string) *names {
	t.Helper()
	n := &names{mode: answers}
	for _, network := range []string{"udp", "tcp"} {
		ready := make(chan struct{})
		s := &dns.Server{Addr: host + ":53", Net: network, Handler: n, NotifyStartedFunc: func() { close(ready) }}
		ended := make(chan error, 1)
		go func() { ended <- s.ListenAndServe() }()
		select {
		case <-ready:
		case err := <-ended:
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	return n
}

// set changes how the server behaves and, if there are any, the records that it has.
func (n *names) set(t *testing.T, mode string, records ...string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mode, n.asked, n.askedTCP = mode, 0, 0
	if records == nil {
		return
	}
	n.records = map[string][]dns.RR{}
	for _, line := range records {
		r, err := dns.NewRR(line)
		if err != nil {
			t.Fatal(err)
		}
		n.records[r.Header().Name] = append(n.records[r.Header().Name], r)
	}
}

// questions returns how many moving names were asked for since set, over UDP and TCP.
func (n *names) questions() (all, overTCP int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked, n.askedTCP
}

// ServeDNS implements [dns.Handler].
func (n *names) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	n.mu.Lock()
	defer n.mu.Unlock()
	asked := q.Question[0]
	tcp := w.RemoteAddr().Network() == "tcp"
	mode := answers
	if strings.HasPrefix(asked.Name, "moving") {
		mode = n.mode
		n.asked++
		if tcp {
			n.askedTCP++
		}
	}
	reply := new(dns.Msg).SetReply(q)
	for _, r := range n.records[asked.Name] {
		if r.Header().Rrtype == asked.Qtype {
			reply.Answer = append(reply.Answer, r)
		}
	}
	switch {
	case mode == silent:
		return
	case mode == fails:
		reply.Rcode, reply.Answer = dns.RcodeServerFailure, nil
	case mode == refuses:
		reply.Rcode, reply.Answer = dns.RcodeRefused, nil
	case mode == unknownName, n.records[asked.Name] == nil:
		reply.Rcode, reply.Answer = dns.RcodeNameError, nil
	case mode == crowded, mode == shortened && !tcp:
		reply.Truncated, reply.Answer = true, reply.Answer[:len(reply.Answer)/2]
	}
	_ = w.WriteMsg(reply) // who asked asks again
}
