package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"
)

// fleetDevice is a switch with 32 ports: 1,312 variables of IF-MIB, on an address of its own.
type fleetDevice struct {
	conn net.PacketConn
	dead bool

	mu     sync.Mutex
	begun  []time.Time // rounds: when sysUpTime was asked for
	served int         // variables
}

// fleetTree is what every device has, sorted. The key is the OID as numbers.
type fleetTree struct {
	oids [][]uint32
	vars []gosnmp.SnmpPDU
}

const fleetPorts = 32

func newFleetTree() *fleetTree {
	tree := &fleetTree{}
	add := func(typ gosnmp.Asn1BER, value any, oid ...uint32) {
		name := ""
		for _, arc := range oid {
			name += "." + strconv.FormatUint(uint64(arc), 10)
		}
		tree.oids, tree.vars = append(tree.oids, oid), append(tree.vars, gosnmp.SnmpPDU{Name: name, Type: typ, Value: value})
	}
	add(gosnmp.TimeTicks, uint32(123456), 1, 3, 6, 1, 2, 1, 1, 3, 0)
	for column := uint32(1); column <= 22; column++ {
		for port := uint32(1); port <= fleetPorts; port++ {
			at := []uint32{1, 3, 6, 1, 2, 1, 2, 2, 1, column, port}
			switch column {
			case 2:
				add(gosnmp.OctetString, fmt.Sprintf("GigabitEthernet1/0/%d", port), at...)
			case 6:
				add(gosnmp.OctetString, []byte{2, 0, 0, 0, 0, byte(port)}, at...)
			case 1, 3, 4, 7, 8:
				add(gosnmp.Integer, 6, at...)
			case 22:
				add(gosnmp.ObjectIdentifier, ".0.0", at...)
			default:
				add(gosnmp.Counter32, uint(port)*100_000, at...)
			}
		}
	}
	for column := uint32(1); column <= 19; column++ {
		for port := uint32(1); port <= fleetPorts; port++ {
			at := []uint32{1, 3, 6, 1, 2, 1, 31, 1, 1, 1, column, port}
			switch {
			case column == 1 || column == 18:
				add(gosnmp.OctetString, fmt.Sprintf("Gi1/0/%d", port), at...)
			case column >= 6 && column <= 13:
				add(gosnmp.Counter64, uint64(port)<<40, at...)
			default:
				add(gosnmp.Gauge32, uint(1000), at...)
			}
		}
	}
	return tree
}

// answer answers a GET of one object or a GETBULK.
func (tree *fleetTree) answer(req *gosnmp.SnmpPacket) *gosnmp.SnmpPacket {
	resp := &gosnmp.SnmpPacket{Version: req.Version, Community: req.Community, RequestID: req.RequestID, PDUType: gosnmp.GetResponse}
	for _, v := range req.Variables {
		var at []uint32
		for arc := range strings.SplitSeq(strings.TrimPrefix(v.Name, "."), ".") {
			n, _ := strconv.ParseUint(arc, 10, 32) // of gosnmp's decoder
			at = append(at, uint32(n))
		}
		i, found := slices.BinarySearchFunc(tree.oids, at, slices.Compare[[]uint32])
		n := int(req.MaxRepetitions)
		switch {
		case req.PDUType == gosnmp.GetRequest && !found:
			resp.Variables = append(resp.Variables, gosnmp.SnmpPDU{Name: v.Name, Type: gosnmp.NoSuchObject})
			continue
		case req.PDUType == gosnmp.GetRequest:
			n = 1
		case found:
			i++
		}
		end := min(i+n, len(tree.vars))
		resp.Variables = append(resp.Variables, tree.vars[i:end]...)
		if end-i < n {
			resp.Variables = append(resp.Variables, gosnmp.SnmpPDU{Name: v.Name, Type: gosnmp.EndOfMibView})
		}
	}
	return resp
}

// run answers until the socket is closed.
func (d *fleetDevice) run(tree *fleetTree) {
	codec := &gosnmp.GoSNMP{Version: gosnmp.Version2c}
	buf := make([]byte, 4096)
	for {
		n, from, err := d.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if d.dead {
			continue
		}
		req, err := codec.SnmpDecodePacket(bytes.Clone(buf[:n]))
		if err != nil {
			continue
		}
		resp := tree.answer(req)
		d.mu.Lock()
		d.served += len(resp.Variables)
		if req.PDUType == gosnmp.GetRequest {
			d.begun = append(d.begun, time.Now())
		}
		d.mu.Unlock()
		if out, err := resp.MarshalMsg(); err == nil {
			_, _ = d.conn.WriteTo(out, from) // a lost answer is a lost packet
		}
	}
}

// startFleet starts n devices of which every twentieth is dead, and returns them and their targets.
func startFleet(t *testing.T, n int) (fleet []*fleetDevice, targets []string) {
	t.Helper()
	tree := newFleetTree()
	var wg sync.WaitGroup
	t.Cleanup(func() {
		for _, d := range fleet {
			_ = d.conn.Close()
		}
		wg.Wait()
	})
	for i := range n {
		conn, err := net.ListenPacket("udp", fmt.Sprintf("127.1.%d.%d:0", i/250, 1+i%250))
		if err != nil {
			t.Fatal(err)
		}
		d := &fleetDevice{conn: conn, dead: i%20 == 7}
		fleet, targets = append(fleet, d), append(targets, conn.LocalAddr().String())
		wg.Go(func() { d.run(tree) })
	}
	return fleet, targets
}

// Bounds of a fleet. Those of CPU and memory are of what the agent does for 1,000 devices each minute and for each series.
const (
	fleetJitter     = time.Second // of 99 of 100 rounds
	fleetCPU        = 0.15        // parts of a core
	fleetRSS        = 150 << 20   // bytes, and fleetRSSASeries more for each series
	fleetRSSASeries = 700
)

// TestSNMPFleet: one agent reads many devices, some of them dead, each at its place in the interval, within the bounds above. It
// takes minutes: HWSAGENT_SNMP_FLEET says how many devices (1000), HWSAGENT_SNMP_INTERVAL the interval (60s),
// HWSAGENT_BENCH_PROFILES a directory for profiles of the agent.
func TestSNMPFleet(t *testing.T) {
	endToEnd(t)
	n, _ := strconv.Atoi(os.Getenv("HWSAGENT_SNMP_FLEET"))
	if n == 0 {
		t.Skip("takes minutes: run by hand, see internal/tools/README.md (HWSAGENT_SNMP_FLEET)")
	}
	interval := durationOf(t, "HWSAGENT_SNMP_INTERVAL", time.Minute)
	fleet, targets := startFleet(t, n)
	a := newAgent(t, fmt.Sprintf("web: {pprof: true}\nprobes:\n  - {name: fleet, type: snmp, file_sd_configs: [{files: [targets.json]}], auth: {community: public}, modules: [if_mib], interval: %s, timeout: %dms}\n",
		interval, (interval/2).Milliseconds()))
	writeFile(t, filepath.Join(a.dir, "targets.json"), `[{"targets": ["`+strings.Join(targets, `", "`)+`"], "labels": {"site": "fra1"}}]`)
	a.run()
	t.Cleanup(a.kill)

	const rounds = 3
	peak := a.peak(interval) // each device has its first round
	stop := profile(a, "fleet", rounds*interval)
	first, began, served := a.cpu(), time.Now(), variablesServed(fleet)
	peak = max(peak, a.peak(rounds*interval+interval/20))
	took := time.Since(began)
	cpu := (a.cpu() - first).Seconds() / took.Seconds()
	served = variablesServed(fleet) - served
	jitter, missed := timesOf(fleet, began, interval, rounds)
	if len(jitter) == 0 {
		t.Fatal("no device was asked twice")
	}
	stop()
	checkFailing(t, a, n)

	series := seriesOf(t, a)
	p99 := jitter[len(jitter)*99/100]
	rate := float64(n) / 1000 * time.Minute.Seconds() / interval.Seconds()
	bound := fleetRSS + fleetRSSASeries*series
	t.Logf("%d devices, %d series, %d variables/s for %s: %d without all rounds; jitter p50 %s, p99 %s, most %s; CPU %.1f %% of a core (bound %.1f); RSS at most %d MiB (bound %d)",
		n, series, served/int(took.Seconds()), took.Round(time.Second), missed, jitter[len(jitter)/2].Round(time.Millisecond), p99.Round(time.Millisecond),
		jitter[len(jitter)-1].Round(time.Millisecond), 100*cpu, 100*fleetCPU*rate, peak>>20, bound>>20)
	if missed > 0 {
		t.Errorf("%d live devices were not read in each round", missed)
	}
	if p99 >= fleetJitter {
		t.Errorf("one of a hundred rounds is %s away from its time, want less than %s", p99, fleetJitter)
	}
	if cpu > fleetCPU*rate {
		t.Errorf("the agent takes %.1f %% of a core, want at most %.1f", 100*cpu, 100*fleetCPU*rate)
	}
	if peak > bound {
		t.Errorf("the agent has %d MiB of resident memory, want at most %d for %d series", peak>>20, bound>>20, series)
	}
}

// peak returns the most resident memory that the agent has in d, looked at each second, in bytes.
func (a *agent) peak(d time.Duration) (most int) {
	a.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(min(time.Second, time.Until(end))) { // what is measured
		most = max(most, int(a.rss()))
	}
	return most
}

// variablesServed returns how many variables the devices have given so far.
func variablesServed(fleet []*fleetDevice) (n int) {
	for _, d := range fleet {
		d.mu.Lock()
		n += d.served
		d.mu.Unlock()
	}
	return n
}

// timesOf tells, sorted, how far rounds began from their times, and how many live devices had fewer than rounds since began.
func timesOf(fleet []*fleetDevice, began time.Time, interval time.Duration, rounds int) (jitter []time.Duration, missed int) {
	for _, d := range fleet {
		d.mu.Lock()
		begun := slices.Clone(d.begun)
		d.mu.Unlock()
		if d.dead {
			continue
		}
		since := 0
		for k, at := range begun {
			if at.After(began) {
				since++
			}
			if k > 0 {
				jitter = append(jitter, (at.Sub(begun[k-1]) - interval).Abs())
			}
		}
		if since < rounds {
			missed++
		}
	}
	slices.Sort(jitter)
	return jitter, missed
}

// checkFailing fails the test if more probes fail than the dead devices of n have.
func checkFailing(t *testing.T, a *agent, n int) {
	t.Helper()
	failing, why := 0, ""
	for _, p := range a.status().Probes {
		if strings.HasPrefix(p.Name, "fleet/") && (p.State == "failing" || p.State == "hung") {
			failing++
			if why += "\n" + p.Name + ": " + p.LastError; len(why) > 3000 {
				why = why[:3000]
			}
		}
	}
	if want := (n + 12) / 20; failing > want {
		t.Errorf("%d probes fail, want at most the %d dead ones: %s", failing, want, why)
	}
}

// seriesOf returns how many series the agent's inputs bring at present.
func seriesOf(t *testing.T, a *agent) (n int) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^hwsagent_input_series\{.*\} (\S+)$`).FindAllStringSubmatch(getText(t, "http://"+a.web+"/metrics"), -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		n += int(v)
	}
	if n == 0 {
		t.Fatal("the agent does not say how many series its inputs bring")
	}
	return n
}
