package crashlab

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// netns is a network namespace of a test's own. It has no name: it lives as long as the
// thread that made it, so nothing of it is left, however the test ends.
type netns struct {
	t    *testing.T
	path string // of the namespace, for other programs
	work chan func()
}

// newNetns returns a namespace in which only loopback is up.
func newNetns(t *testing.T) *netns {
	t.Helper()
	endToEnd(t)
	n := &netns{t: t, work: make(chan func())}
	made, done := make(chan error), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- err
			return
		}
		n.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		made <- nil
		for f := range n.work {
			f()
		}
	}()
	if err := <-made; err != nil {
		cannot(t, "needs network namespaces (root and CAP_SYS_ADMIN): "+err.Error())
	}
	t.Cleanup(func() {
		close(n.work)
		<-done
	})
	n.run("ip", "link", "set", "lo", "up")
	return n
}

// do calls f on the thread that is in the namespace. A socket that it makes stays there.
func (n *netns) do(f func() error) error {
	err := make(chan error, 1)
	n.work <- func() { err <- f() }
	return <-err
}

// run runs a program in the namespace and returns its output.
func (n *netns) run(program string, args ...string) string {
	n.t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		cannot(n.t, "needs "+program+" (Debian: apt-get install iproute2 nftables)")
	}
	var out strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := n.do(cmd.Start); err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		n.t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out.String())
	}
	return out.String()
}

// ip runs ip(8) in the namespace, its arguments in one string.
func (n *netns) ip(args string) { n.t.Helper(); n.run("ip", strings.Fields(args)...) }

// dial connects from inside the namespace to an address that is an IP.
func (n *netns) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = n.do(func() error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// listen listens inside the namespace.
func (n *netns) listen(address string) (l net.Listener, err error) {
	err = n.do(func() error {
		l, err = net.Listen("tcp", address)
		return err
	})
	return l, err
}

// cable lays a cable to another namespace; the ends are called as said and have those
// addresses (with the length of the network).
func (n *netns) cable(end, address string, other *netns, otherEnd, otherAddress string) {
	n.t.Helper()
	n.ip(fmt.Sprintf("link add %s type veth peer name %s netns %s", end, otherEnd, other.path))
	n.ip(fmt.Sprintf("addr add %s dev %s", address, end))
	other.ip(fmt.Sprintf("addr add %s dev %s", otherAddress, otherEnd))
	n.ip("link set " + end + " up")
	other.ip("link set " + otherEnd + " up")
}

// firewall makes the namespace's packet filter, which lets everything through.
func (n *netns) firewall() {
	n.t.Helper()
	n.run("nft", `add table ip f; add chain ip f in { type filter hook input priority 0; }; add chain ip f out { type filter hook output priority 0; }`)
}

// rule adds a rule to chain in or out.
func (n *netns) rule(chain, what string) {
	n.t.Helper()
	n.run("nft", "add rule ip f "+chain+" "+what)
}

// calm removes all rules and returns how many packets they have hit.
func (n *netns) calm() (hits int) {
	n.t.Helper()
	for _, m := range regexp.MustCompile(`packets (\d+)`).FindAllStringSubmatch(n.run("nft", "list", "table", "ip", "f"), -1) {
		k, err := strconv.Atoi(m[1])
		if err != nil {
			n.t.Fatal(err)
		}
		hits += k
	}
	n.run("nft", "flush chain ip f in; flush chain ip f out")
	return hits
}
