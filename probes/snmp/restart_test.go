package snmp

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"
)

// A restart shows as an uptime that is shorter than before, or than the time since the last round; the end of the
// range of TimeTicks and a clock that stands still are not restarts.
func TestRestarts(t *testing.T) {
	const day = 24 * time.Hour
	for _, tc := range []struct {
		what            string
		last, after, up time.Duration
		want            bool
	}{
		{"goes on", time.Hour, time.Minute, time.Hour + time.Minute, false},
		{"a slow clock", time.Hour, time.Minute, time.Hour + 50*time.Second, false},
		{"a restart", time.Hour, time.Minute, 5 * time.Second, true},
		{"a restart soon after the first round", 10 * time.Second, time.Minute, 20 * time.Second, false}, // looks the same as a slow clock
		{"a restart in a long silence", time.Minute, 3 * day, day, true},
		{"a restart just before the end of the range", 400 * day, time.Minute, 10 * time.Second, true},
		{"the end of the range", uptimeRange - 20*time.Second, time.Minute, 40 * time.Second, false},
		{"a clock that stands still", 0, day, 0, false},
	} {
		var u uptimes
		now := time.Unix(1_800_000_000, 0)
		if u.note(tc.last, now) {
			t.Errorf("%s: the first uptime is a restart", tc.what)
		}
		if got := u.note(tc.up, now.Add(tc.after)); got != tc.want || u.restarts != map[bool]int{true: 1}[got] {
			t.Errorf("%s: restart = %t, %d", tc.what, got, u.restarts)
		}
	}
}

func TestRestartIsCounted(t *testing.T) {
	a := newFakeAgent(t, pdu("1.3.6.1.2.1.2.2.1.10.1", gosnmp.Counter32, uint(1)), pdu("1.3.6.1.2.1.2.2.1.10.2", gosnmp.Counter32, uint(1)))
	p := newProbe(t, a.config("if_mib"))
	round := func() map[string]float64 {
		t.Helper()
		r, err := collectAll(t, p)
		if err != nil {
			t.Fatal(err)
		}
		return lines(r)
	}
	if got := round(); got["hwsagent_device_restarts_total{}"] != 0 || got[`ifInOctets{ifIndex="2"}`] != 1 {
		t.Errorf("%v", got)
	}
	a.mu.Lock()
	a.tree[slices.IndexFunc(a.tree, func(p gosnmp.SnmpPDU) bool { return p.Name == "."+sysUpTime })].Value = uint32(1)
	a.tree = slices.DeleteFunc(a.tree, func(p gosnmp.SnmpPDU) bool { return strings.HasSuffix(p.Name, ".10.2") })
	a.mu.Unlock()
	got := round()
	if _, ok := got[`ifInOctets{ifIndex="2"}`]; ok || got["hwsagent_device_restarts_total{}"] != 1 {
		t.Errorf("%v", got)
	}
}

// Version 1 cannot carry Counter64, and check says which metrics that costs.
func TestWideCountersOverV1(t *testing.T) {
	for version, want := range map[int]int{1: 1, 2: 0} {
		c := Config{Target: "a", Auth: Auth{Version: version}, Modules: []string{"if_mib", "system"}}
		notes, err := c.Examine()
		if err != nil || len(notes) != want {
			t.Fatalf("version %d: %v %v", version, notes, err)
		}
		if want == 1 && !strings.Contains(notes[0].Error(), "module if_mib: version 1 has no 64-bit counters: ifHCInOctets and 7 more") {
			t.Error(notes[0])
		}
	}
}

// Devices are read by IPv6 as by IPv4, however the address is written.
func TestIPv6(t *testing.T) {
	conn, err := net.ListenPacket("udp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6:", err)
	}
	a := newFakeAgentAt(t, conn)
	port := conn.LocalAddr().(*net.UDPAddr).Port
	for _, form := range []string{"[::1]:%d", "udp:[::1]:%d", "udp://[0:0::1]:%d"} {
		c := a.config("system")
		c.Target = fmt.Sprintf(form, port)
		if r, err := collect(t, newProbe(t, c)); err != nil || len(r.Samples()) == 0 {
			t.Errorf("%s: %v", c.Target, err)
		}
	}
}
