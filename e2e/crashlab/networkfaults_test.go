//go:build linux

package crashlab

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// filtered returns a fault of the receivers' packet filter.
func filtered(name string, rules ...string) fault {
	return fault{name: name, on: func(n *network) func() int {
		for _, r := range rules {
			chain, what, _ := strings.Cut(r, " ")
			n.far.rule(chain, what)
		}
		return n.far.calm
	}}
}

// wireFaults are faults of the way to the receiver.
func wireFaults() []fault {
	all := []fault{
		filtered("blackhole", "in ip daddr "+brokenHost+" counter drop", "out ip saddr "+brokenHost+" counter drop"),
		filtered("requests are lost", "in ip daddr "+brokenHost+" counter drop"),
		filtered("answers are lost", "out ip saddr "+brokenHost+" counter drop"),
		filtered("answers are lost but for the handshake", "out ip saddr "+brokenHost+" tcp flags & (syn) == 0 counter drop"),
		filtered("reset in the middle", "in ip daddr "+brokenHost+" tcp flags & (syn) == 0 counter reject with tcp reset"),
		filtered("port unreachable", "in ip daddr "+brokenHost+" counter reject with icmp type port-unreachable"),
		{name: "half of the packets are lost", leaky: true, on: filtered("",
			"in ip daddr "+brokenHost+" numgen random mod 2 == 0 counter drop").on},
		{name: "restarted without a word", short: true, on: restartSilently},
		{name: "a forgotten flow", short: true, on: forgetFlows},
		{name: "16 kbit", leaky: true, on: func(n *network) func() int {
			n.near.run("tc", strings.Fields("qdisc add dev broken root tbf rate 16kbit burst 4kb latency 400ms")...)
			return func() int {
				out := n.near.run("tc", strings.Fields("-s qdisc show dev broken")...)
				n.near.run("tc", strings.Fields("qdisc del dev broken root")...)
				_, after, _ := strings.Cut(out, "overlimits ")
				figure, _, _ := strings.Cut(after, " ")
				times, err := strconv.Atoi(figure)
				if err != nil {
					n.t.Errorf("tc: %v\n%s", err, out)
				}
				return times
			}
		}},
		{name: "no route", says: "no route to", on: func(n *network) func() int {
			n.near.ip("route del 10.98.0.0/24 dev broken")
			return func() int {
				n.near.ip("route add 10.98.0.0/24 dev broken")
				return 1
			}
		}},
		{name: "cable pulled", on: func(n *network) func() int {
			n.far.ip("link set broken down")
			return func() int {
				times := strings.Count(n.near.run("ip", "link", "show", "broken"), "NO-CARRIER")
				n.far.ip("link set broken up")
				return times
			}
		}},
		{name: "port closed", says: "connection refused", on: func(n *network) func() int {
			n.far.rule("out", "ip saddr "+brokenHost+" tcp flags & (rst) == rst counter")
			n.broken.shut()
			n.broken.cut(false)
			return func() int {
				n.broken.open()
				return n.far.calm()
			}
		}},
		{name: "connected, never served", on: func(n *network) func() int {
			// The kernel completes the handshakes; no process accepts.
			n.broken.shut()
			n.broken.cut(false)
			idle, err := n.broken.listen()
			if err != nil {
				n.t.Fatal(err)
			}
			return func() int {
				// Of those that the agent has given up, between two tries, one end is left.
				waiting := strings.Count(n.far.run("ss", "-Htn", "state", "established", "state", "close-wait", "src", brokenHost), "\n")
				idle.Close()
				n.broken.open()
				return waiting
			}
		}},
	}
	for i := range all {
		all[i].wire = true
	}
	return all
}

// peerFaults are faults of the receiver.
func peerFaults() (all []fault) {
	for _, name := range slices.Sorted(maps.Keys(tricks)) {
		f := fault{name: name, on: func(n *network) func() int {
			before := n.broken.counts().tricked
			n.broken.play(tricks[name])
			return func() int {
				n.broken.play(nil)
				n.broken.cut(false) // a receiver that is restarted
				return n.broken.counts().tricked - before
			}
		}}
		// The agent knows the status when the head of the answer is there.
		f.leaky = strings.Contains(name, "body") && strings.Contains(name, "answer") || name == "answers without end"
		all = append(all, f)
	}
	return all
}

// restartSilently ends the receiver's connections without the agent noticing, because the notification is lost. A reset
// answers its next packet.
func restartSilently(n *network) func() int {
	n.far.rule("out", "ip saddr "+brokenHost+" counter drop")
	n.broken.shut()
	n.broken.cut(true)
	n.broken.open()
	return n.far.calm
}

// forgetFlows has all that is under way and will come on the present connections
// vanish for ever, as a translator of addresses does that has restarted; new connections
// work.
func forgetFlows(n *network) func() int {
	before := n.broken.counts().accepted
	for _, port := range n.broken.sources() {
		for _, rule := range []string{"in ip daddr %s tcp sport %d counter drop", "out ip saddr %s tcp dport %d counter drop"} {
			chain, what, _ := strings.Cut(rule, " ")
			n.far.rule(chain, fmt.Sprintf(what, brokenHost, port))
		}
	}
	// The fault goes on while the agent recovers: it is lifted at the end of the next one.
	return func() int {
		n.fresh(time.Now(), time.Minute)
		n.far.calm()
		return n.broken.counts().accepted - before
	}
}

// TestNetwork breaks the way to one of two receivers in every way, one after the other.
// Whatever it is: the other receiver does not notice, nothing is lost, and fresh data
// arrives soon after it is over.
func TestNetwork(t *testing.T) {
	t.Parallel()
	everyFault(t, "the network is broken", wireFaults())
}

// TestPeer has the receiver misbehave in every way, likewise.
func TestPeer(t *testing.T) {
	t.Parallel()
	everyFault(t, "the receiver misbehaves", peerFaults())
}

func everyFault(t *testing.T, what string, faults []fault) {
	n := newNetwork(t, brokenHost)
	n.launch()
	n.settleIn()
	n.sufferAll(faults, amount(0, 20))
	n.account(what)
}

// sufferAll plays every fault once, in random order, and then some more.
func (n *network) sufferAll(faults []fault, more int) {
	n.t.Helper()
	order := n.rnd.Perm(len(faults))
	for range more {
		order = append(order, n.rnd.IntN(len(faults)))
	}
	for _, i := range order {
		d := remoteTimeout + between(n.rnd, 500, amount(1500, 8000))
		if faults[i].short {
			d = between(n.rnd, 200, 700)
		}
		n.suffer(faults[i], d)
	}
}
