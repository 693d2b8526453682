//go:build linux && amd64

package lab

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"hwsagent/e2e/bmcsim"
)

// startLine starts the machine's second management controller, which QEMU's has no way to make: one that misbehaves.
func startLine(t *testing.T) *bmcsim.Line {
	t.Helper()
	laboratory(t)
	l, err := bmcsim.ListenLine("127.0.0.1:0", bmcsim.NewMachine("", ""))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(l.Run)
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l
}

// misbehaviour is one of the second controller.
type misbehaviour struct {
	name  string
	fault bmcsim.Fault
	costs bool // its own series; else none
}

func misbehaviours() []misbehaviour {
	return []misbehaviour{
		{"hangs", bmcsim.Silent, true}, {"answers late", bmcsim.Late, true}, {"lies about lengths", bmcsim.Lies, true}, {"is reset", bmcsim.Gone, true},
		{"answers twice", bmcsim.Twice, false}, {"answers out of order", bmcsim.Stray, false},
	}
}

// misbehave makes the second controller misbehave until a round of its probe has seen it. QEMU ends the wait for each answer after four
// seconds, as long as a round may take, and the kernel's driver then says that the controller timed out.
func (g *rig) misbehave(m misbehaviour) event {
	last := named("ipmi_power_watts", "name", "PS2 Input Power") // of the sensors with a reading
	var faults int
	var had map[string]bool
	e := event{
		name: "the second controller " + m.name, device: "the second controller",
		begin: func() {
			eventually(g.t, time.Minute, func() string {
				if had = whole(g.r.copy(), "line", 0); !had[""] {
					return "there is no round of line"
				}
				return ""
			})
			faults = g.line.Counts().Faults
			g.line.Set(m.fault)
		},
		end: func() { g.line.Set(bmcsim.Well) },
		fired: func(since int64) string {
			if g.line.Counts().Faults == faults {
				return "it was not asked"
			}
			if !m.costs {
				return g.there("line", since, last)
			}
			return g.gone("line", since, last)
		},
		healed: func(since int64) string {
			// Its windows follow each other so closely that the judge would miss a series that does not come back.
			has := whole(g.r.copy(), "line", since)
			for key := range had {
				if !has[key] {
					return "a round lacks " + key
				}
			}
			return ""
		},
	}
	if m.costs {
		e.mine = func(s series) bool { return s.job == "line" }
	}
	return e
}

// whole are the series of a probe's last round that has come as a whole, by their labels, and "" if there is one since that time. The
// newest may be on its way.
func whole(all map[string]series, job string, since int64) map[string]bool {
	ups := rounds(all, job, since)
	if len(ups) < 2 {
		return nil
	}
	at, found := ups[len(ups)-2].at, map[string]bool{"": true}
	for key, s := range all {
		if s.job == job && slices.ContainsFunc(s.samples, func(x sample) bool { return x.at == at && !x.stale() }) {
			found[key] = true
		}
	}
	return found
}

// piled describes the agent's numbers of goroutines and open files, before and during the events, and returns those that are missing or
// grew by more than hanging devices explain: three hang at a time, and each may hold a few until it recovers.
func piled(all map[string]series, begin, end int64) (said, wrong []string) {
	const more = 40
	for _, name := range []string{"go_goroutines", "process_open_fds"} {
		var before, during float64
		for _, s := range all {
			if s.name != name || s.job != "hwsagent" {
				continue
			}
			for _, x := range s.samples {
				switch {
				case x.stale():
				case x.at < begin:
					before = max(before, x.v)
				case x.at <= end:
					during = max(during, x.v)
				}
			}
		}
		text := fmt.Sprintf("%s was %v before the events, and up to %v in their time", name, before, during)
		if said = append(said, text); before == 0 || during == 0 || during > before+more {
			wrong = append(wrong, text)
		}
	}
	return said, wrong
}

// TestPiled: goroutines or files that pile up are found, and so is an agent that does not say how many it has.
func TestPiled(t *testing.T) {
	own := func(name string, before, during float64) series {
		return series{name: name, job: "hwsagent", samples: []sample{{at: 1000, v: before}, {at: 5000, v: during}, {at: 9000, v: 1e6}}}
	}
	for name, tc := range map[string]struct {
		goroutines, files series
		wrong             int
	}{
		"steady":            {own("go_goroutines", 100, 120), own("process_open_fds", 30, 30), 0},
		"goroutines":        {own("go_goroutines", 100, 200), own("process_open_fds", 30, 30), 1},
		"files":             {own("go_goroutines", 100, 120), own("process_open_fds", 30, 90), 1},
		"nothing is known":  {series{}, series{}, 2},
		"another probe has": {own("go_goroutines", 100, 120), series{name: "process_open_fds", job: "host", samples: []sample{{at: 1000, v: 1}, {at: 5000, v: 1}}}, 1},
	} {
		if _, wrong := piled(map[string]series{"g": tc.goroutines, "f": tc.files}, 4000, 8000); len(wrong) != tc.wrong {
			t.Errorf("%s: %q, want %d", name, wrong, tc.wrong)
		}
	}
}
