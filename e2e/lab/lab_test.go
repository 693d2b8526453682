//go:build linux && amd64

package lab

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/results"
)

// TestMachine boots the machine, compares the agent's series with what other programs say in it, and then unplugs, hangs and
// breaks its devices, three at a time in an order that HWSAGENT_SEED replays. HWSAGENT_LAB_EVENTS, a regular expression, picks
// events by their names and leaves the comparisons out.
func TestMachine(t *testing.T) {
	laboratory(t)
	r := newRecord()
	rx := receiver.New(receiver.Options{Sink: r.add})
	if err := rx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rx.Stop)
	line := startLine(t)
	v := startLab(t, rx.URL(), line.Address())
	g := &rig{t: t, v: v, r: r, line: line}
	g.wait(2, 0)
	setSensors(v)
	quiet := g.now()
	g.wait(4, quiet)
	only := regexp.MustCompile(os.Getenv("HWSAGENT_LAB_EVENTS"))
	if only.String() == "" {
		compareExporter(t, v, r)
		t.Logf("%d values equal the firmware's tables", g.settled("host", func() []*comparison { return compareFirmware(t, v, r) }))
		t.Logf("%d values equal smartctl's", g.settled("smart", func() []*comparison { return compareSmartctl(t, v, r) }))
		t.Logf("%d values equal those of nvme-cli", g.settled("smart", func() []*comparison { return compareNVMe(t, v, r) }))
		t.Logf("%d values equal ipmitool's", g.settled("ipmi", func() []*comparison { return compareIPMI(t, v, r) }))
	}

	random, seed := seeded(t)
	begin := g.now()
	count, windows := g.happenAll(random, only)
	end := g.now()
	g.wait(2, end) // all of the time before has come
	found := judge(byIdentity(r.copy()), windows, quiet, begin, end)
	said, wrong := piled(r.copy(), begin, end)
	t.Log(strings.Join(said, "; "))
	for _, w := range wrong {
		t.Error(w)
	}
	if n := strings.Count(v.sh("pgrep smartctl || true"), "\n"); n > 2 { // as many as the probe asks disks at a time
		t.Errorf("%d smartctl run at the end", n)
	}
	for i, lost := range found.lost {
		if i == 40 {
			t.Errorf("and %d more", len(found.lost)-i)
			break
		}
		t.Error(lost)
	}
	t.Logf("%d events; in %d rounds %d series have %d samples, and %d are missing that no event of their own device excuses",
		count, found.rounds, found.series, found.samples, len(found.lost))
	if only.String() == "" && count < 50 || found.series < 800 {
		t.Errorf("there were %d events and %d series: too few", count, found.series)
	}
	results.Add(t, results.Line{
		What: "devices of a machine unplugged, hanging and failing under its own kernel", Count: count, Lost: len(found.lost), Seed: seed,
		Figures: map[string]float64{"series": float64(found.series), "samples": float64(found.samples), "rounds": float64(found.rounds)},
	})
}

// happenAll lets each event happen twice whose name matches, and gives how many there were, and their windows.
func (g *rig) happenAll(random *rand.Rand, only *regexp.Regexp) (count int, windows []window) {
	g.t.Helper()
	begin, events := g.now(), g.events()
	for round := range 2 {
		for todo := random.Perm(len(events)); len(todo) > 0; {
			var together []event
			todo = slices.DeleteFunc(todo, func(i int) bool {
				if len(together) == atOnce {
					return false
				}
				e := events[i]()
				if slices.ContainsFunc(together, e.conflicts) {
					return false
				}
				if only.MatchString(e.name) {
					together = append(together, e)
					count++
				}
				return true
			})
			if len(together) > 0 {
				windows = append(windows, g.happen(together)...)
			}
		}
		g.t.Logf("round %d of the events is over after %.0f s", round+1, float64(g.now()-begin)/1000)
	}
	return count, windows
}

// seeded is the order of the events.
func seeded(t *testing.T) (*rand.Rand, uint64) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("HWSAGENT_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("HWSAGENT_SEED: %v", err)
		}
	}
	t.Logf("HWSAGENT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0)), seed
}

// wait waits until each probe has had n rounds since a time.
func (g *rig) wait(n int, since int64) {
	g.t.Helper()
	for job := range limits() {
		eventually(g.t, 2*time.Minute, func() string {
			if got := len(rounds(g.r.copy(), job, since)); got < n {
				return fmt.Sprintf("there are %d rounds of %s", got, job)
			}
			return ""
		})
	}
}

// events are all that can happen. Each is made when its turn comes: a device may have another name by then.
func (g *rig) events() []func() event {
	var all []func() event
	add := func(make func() event) { all = append(all, make) }
	for _, d := range disks() {
		nvme, sata := strings.HasPrefix(d.id, "nvme"), strings.HasPrefix(d.id, "sata")
		add(func() event { return g.fail(d) })
		if !sata { // QEMU's controller on the board takes no disk while it runs
			add(func() event { return g.plug(d.id, g.kernelName(d.hwID), d.hwID, d.properties) })
		}
		if d.id != "usb0" { // QEMU limits no rate of it
			add(func() event { return g.hang(d) })
		}
		if nvme {
			add(func() event { return g.warn(d) })
		}
	}
	for _, n := range nics() {
		add(func() event {
			id, name := g.nic(n)
			e := g.plug(n.id, name, id, n.properties)
			again := e.end
			e.end = func() {
				again()
				eventually(g.t, time.Minute, func() string {
					if _, name := g.nic(n); name == "" || g.v.try("/bin/ip", "link", "set", name, "up").Code != 0 {
						return "the network device does not come back"
					}
					return ""
				})
			}
			return e
		})
		add(func() event { return g.link(n) })
	}
	for _, c := range chips() {
		add(func() event { return g.remove(c) })
		add(func() event { return g.heat(c) })
	}
	inlet, fan := sensors()[0], sensors()[3]
	add(func() event { return g.unbind() })
	for _, f := range misbehaviours() {
		add(func() event { return g.misbehave(f) })
	}
	add(func() event { return g.read(inlet, "ipmi_temperature_celsius") })
	add(func() event { return g.read(fan, "ipmi_fan_speed_rpm") })
	add(func() event { return g.silence(inlet, "ipmi_temperature_celsius") })
	add(func() event { return g.silence(fan, "ipmi_fan_speed_rpm") })
	return all
}

// grace is how long after an event a device's own series may be missing, in milliseconds: the probe smart has fewer rounds than host.
const grace = 25_000

// atOnce is how many events happen at the same time, to as many devices.
const atOnce = 3

// happen lets events happen and waits until the agent's series show that they did, and that they are over. The windows are those
// in which they may cost series of their devices.
func (g *rig) happen(together []event) []window {
	g.t.Helper()
	from := g.now()
	var names []string
	for _, e := range together {
		names = append(names, e.name)
		e.begin()
	}
	since := g.now()
	for _, e := range together {
		eventually(g.t, 2*time.Minute, func() string {
			if wrong := e.fired(since); wrong != "" {
				return e.name + " does not show: " + wrong
			}
			return ""
		})
	}
	for _, e := range together {
		e.end()
	}
	since = g.now()
	for _, e := range together {
		eventually(g.t, 2*time.Minute, func() string {
			if wrong := e.healed(since); wrong != "" {
				return e.name + " does not end: " + wrong
			}
			return ""
		})
	}
	to := g.now()
	g.t.Logf("%s: %.1f s", strings.Join(names, ", "), float64(to-from)/1000)
	var windows []window
	for _, e := range together {
		if e.mine != nil {
			windows = append(windows, window{event: e.name, mine: e.mine, from: from, to: to + grace})
		}
	}
	return windows
}
