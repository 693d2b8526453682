package status

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// history is what really happened to each sample: the oracle of [TestAllIsWell] looks at nothing
// else.
type history struct {
	rnd     *rand.Rand
	now     time.Time
	inputs  []time.Duration // their intervals
	targets []*fate
}

// fate is what happened to the samples of one target.
type fate struct {
	name              string
	state             string
	waiting           []waits
	delivered, filter uint64
	lost              []loss
	removed           bool // from the configuration
}

type waits struct {
	at    time.Time
	every time.Duration
}

type loss struct {
	at   time.Time
	n    uint64
	seen bool // acknowledged
}

func newHistory(rnd *rand.Rand) *history {
	h := &history{rnd: rnd, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	for range 1 + rnd.IntN(3) {
		h.inputs = append(h.inputs, time.Duration(1+rnd.IntN(120))*time.Second)
	}
	for i := range 1 + rnd.IntN(3) {
		h.targets = append(h.targets, &fate{name: fmt.Sprint("t", i), state: StateOK})
	}
	return h
}

// step lets some time pass and some things happen.
func (h *history) step() {
	h.now = h.now.Add([]time.Duration{time.Second, 20 * time.Second, time.Minute, time.Hour, 13 * time.Hour}[h.rnd.IntN(5)])
	for _, f := range h.targets {
		if h.rnd.IntN(12) == 0 {
			f.state = []string{StateOK, StateOK, StateOK, StateBehind, StateRetrying, StateHeld, StatePaused, StateStarting}[h.rnd.IntN(8)]
			f.removed = h.rnd.IntN(15) == 0
		}
		if h.rnd.IntN(10) > 0 {
			h.collect(f)
		}
		switch h.rnd.IntN(20) {
		case 0:
			f.lose(h.now, h.rnd.IntN(len(f.waiting)+1))
		case 1:
			for i := range f.lost {
				f.lost[i].seen = true
			}
		case 2:
			n := h.rnd.IntN(len(f.waiting) + 1)
			f.waiting, f.filter = f.waiting[n:], f.filter+uint64(n)
		default:
			if f.state == StateOK || f.state == StateBehind {
				n := len(f.waiting)
				if h.rnd.IntN(4) == 0 {
					n = h.rnd.IntN(n + 1)
				}
				f.waiting, f.delivered = f.waiting[n:], f.delivered+uint64(n)
			}
		}
	}
}

func (h *history) collect(f *fate) {
	for _, every := range h.inputs {
		f.waiting = append(f.waiting, waits{h.now.Add(-time.Duration(h.rnd.Int64N(int64(every)))), every})
	}
}

func (f *fate) lose(now time.Time, n int) {
	if n > 0 {
		f.waiting = f.waiting[n:]
		f.lost = append(f.lost, loss{at: now, n: uint64(n)})
	}
}

// allIsWell returns the promise of the words, sample by sample.
func (h *history) allIsWell() (bool, string) {
	for _, f := range h.targets {
		for _, w := range f.waiting {
			if h.now.Sub(w.at) > w.every+30*time.Second {
				return false, fmt.Sprintf("a sample of %v waits for %s since %v", w.every, f.name, h.now.Sub(w.at))
			}
		}
		had := uint64(len(f.waiting)) + f.delivered
		for _, l := range f.lost {
			if had += l.n; !l.seen && h.now.Sub(l.at) < 24*time.Hour {
				return false, fmt.Sprintf("%d samples of %s were lost %v ago", l.n, f.name, h.now.Sub(l.at))
			}
		}
		if had > 0 && f.delivered == 0 && (f.state != StateStarting || len(f.lost) > 0) {
			return false, f.name + " took nothing"
		}
	}
	return true, ""
}

// someGotNothing reports whether a target that had samples to get has taken none.
func (h *history) someGotNothing() bool {
	return slices.ContainsFunc(h.targets, func(f *fate) bool { return len(f.waiting)+len(f.lost) > 0 && f.delivered == 0 })
}

// status returns what the agent would know of it.
func (h *history) status() Status {
	s := Status{Schema: 1, Running: true, Now: h.now}
	for i, every := range h.inputs {
		s.Probes = append(s.Probes, ProbeStatus{Name: fmt.Sprint("p", i), Interval: every, State: "ok"})
	}
	for _, f := range h.targets {
		t := TargetStatus{Name: f.name, State: f.state, PendingSamples: uint64(len(f.waiting))}
		if f.removed {
			if t.State = StateOrphan; len(f.waiting) == 0 {
				t.State = StatePaused // an agent does not tell of an orphan that has nothing
			}
		}
		lost := uint64(0)
		for _, l := range f.lost {
			lost += l.n
			if len(s.Losses) > 0 && s.Losses[len(s.Losses)-1].Target == f.name && s.Losses[len(s.Losses)-1].Acknowledged == l.seen {
				last := &s.Losses[len(s.Losses)-1]
				last.Samples, last.LastAt = last.Samples+l.n, l.at
				continue
			}
			s.Losses = append(s.Losses, LossStatus{Target: f.name, Reason: "budget", Samples: l.n, FirstAt: l.at, LastAt: l.at, Acknowledged: l.seen})
		}
		for _, w := range f.waiting {
			if t.OldestPending.IsZero() || w.at.Before(t.OldestPending) {
				t.OldestPending = w.at
			}
		}
		if h.rnd.IntN(10) == 0 {
			t.OldestPending = time.Time{} // not read yet
		}
		if !t.OldestPending.IsZero() {
			t.LagSeconds = h.now.Sub(t.OldestPending).Seconds()
		}
		t.Ledger = LedgerStatus{Delivered: f.delivered, Filtered: f.filter, Dropped: map[string]uint64{"budget": lost}, Lost: lost, Pending: t.PendingSamples, Balanced: true}
		t.Ledger.Appended = f.delivered + f.filter + lost + t.PendingSamples
		s.WAL.Appended = max(s.WAL.Appended, t.Ledger.Appended)
		s.Targets = append(s.Targets, t)
	}
	return Judge(s)
}

// TestAllIsWell: whatever happens to the samples, the verdict says that all is well only if no sample waits for longer
// than its interval and 30 s, each target with samples to get accepted some or has yet to answer its first request, and there
// was no unacknowledged loss since yesterday. It never says "All" before each has accepted some. Words, level, exit code and severities agree.
func TestAllIsWell(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("VERDICT_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("VERDICT_SEED=%d", seed)
	well, states, ill := 0, map[string]int{}, 0
	for round := range uint64(3000) {
		h := newHistory(rand.New(rand.NewPCG(seed, round)))
		for range 30 {
			h.step()
			s := h.status()
			for _, target := range s.Targets {
				states[target.Delivery]++
			}
			really, why := h.allIsWell()
			if !really {
				ill++
			}
			v := *s.Verdict
			switch {
			case v.Level == LevelOK && !really:
				t.Fatalf("round %d: %q, but %s", round, v.Text, why)
			case strings.HasPrefix(v.Text, "All ") && h.someGotNothing():
				t.Fatalf("round %d: %q, but a target took nothing", round, v.Text)
			case (v.Level == LevelOK) != (v.ExitCode == ExitOK):
				t.Fatalf("round %d: level %s, exit code %d", round, v.Level, v.ExitCode)
			case v.Level != LevelOK && strings.HasPrefix(v.Text, "All "):
				t.Fatalf("round %d: level %s says %q", round, v.Level, v.Text)
			}
			if v.Level == LevelOK {
				well++
			}
		}
	}
	if well < 100 || ill < 100 {
		t.Errorf("%d verdicts were good, and %d histories were not: the histories are too much alike", well, ill)
	}
	for _, want := range []string{Delivering, DeliveryNever, DeliveryBehind, DeliveryHeld, DeliveryLosing, DeliveryLost, DeliveryPaused, DeliveryIdle} {
		if states[want] == 0 {
			t.Errorf("no target was ever %s: %v", want, states)
		}
	}
	t.Logf("%d good verdicts; %v", well, states)
}

// A target that is well is said to be, and each thing that is not well is named and has its exit code.
func TestEachThingCounts(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	good := func() Status {
		return Status{Running: true, Now: now, WAL: WALStatus{Appended: 9, MaxBytes: 1 << 30, FreeBytes: 1 << 40, MinFreeBytes: 1 << 28},
			Probes:  []ProbeStatus{{Name: "host", State: "ok", Interval: 15 * time.Second}},
			Targets: []TargetStatus{{Name: "a", State: StateOK, Ledger: LedgerStatus{Appended: 9, Delivered: 9, Balanced: true}}, {Name: "b", State: StateOK, Ledger: LedgerStatus{Appended: 9, Delivered: 9, Balanced: true}}}}
	}
	for _, c := range []struct {
		name   string
		change func(*Status)
		code   int
		text   string // in the verdict
		state  string // of the first target
	}{
		{"all is well", func(*Status) {}, ExitOK, "All data is delivered", Delivering},
		{"never delivered", func(s *Status) {
			s.Targets[0].Ledger = LedgerStatus{Appended: 9, Pending: 9, Balanced: true}
		}, ExitTarget, "not at a", DeliveryNever},
		{"nothing delivered yet", func(s *Status) {
			for i := range s.Targets {
				s.Targets[i].Ledger, s.Targets[i].LagSeconds = LedgerStatus{Appended: 9, Pending: 9, Balanced: true}, 44
			}
		}, ExitTarget, "Nothing is delivered yet", DeliveryNever},
		{"the first request is not answered yet", func(s *Status) {
			for i := range s.Targets {
				s.Targets[i].State, s.Targets[i].Ledger, s.Targets[i].LagSeconds = StateStarting, LedgerStatus{Appended: 9, Pending: 9, Balanced: true}, 44
				s.Targets[i].PendingSamples = 9
			}
		}, ExitOK, "Ready; the first samples are on their way", DeliveryIdle},
		{"the first request is not answered for long", func(s *Status) {
			for i := range s.Targets {
				s.Targets[i].State, s.Targets[i].Ledger, s.Targets[i].LagSeconds = StateStarting, LedgerStatus{Appended: 9, Pending: 9, Balanced: true}, 46
			}
		}, ExitTarget, "Nothing was ever delivered", DeliveryNever},
		{"a second target is new", func(s *Status) {
			s.Targets[0].State, s.Targets[0].Ledger, s.Targets[0].LagSeconds = StateStarting, LedgerStatus{Appended: 9, Pending: 9, Balanced: true}, 9
		}, ExitOK, "Data arrives; the first samples for a are on their way", DeliveryIdle},
		{"a probe fails before the first request", func(s *Status) {
			for i := range s.Targets {
				s.Targets[i].State, s.Targets[i].Ledger, s.Targets[i].LagSeconds = StateStarting, LedgerStatus{Appended: 9, Pending: 9, Balanced: true}, 9
			}
			s.Probes[0].State, s.Probes[0].LastError = "failing", "no answer"
		}, ExitAttention, "Ready; the first samples are on their way; probe host: no answer", DeliveryIdle},
		{"nothing is collected within the first interval", func(s *Status) {
			s.Started, s.WAL.Appended = now.Add(-44*time.Second), 0
			s.Targets[0].Ledger, s.Targets[1].Ledger = LedgerStatus{Balanced: true}, LedgerStatus{Balanced: true}
		}, ExitOK, "Ready; nothing collected yet", DeliveryIdle},
		{"nothing is collected for long", func(s *Status) {
			s.Started, s.WAL.Appended = now.Add(-46*time.Second), 0
			s.Targets[0].Ledger, s.Targets[1].Ledger = LedgerStatus{Balanced: true}, LedgerStatus{Balanced: true}
		}, ExitAttention, "Ready; nothing collected yet", DeliveryIdle},
		{"the first round is to come", func(s *Status) {
			s.Started, s.WAL.Appended = now, 0
			s.Targets[0].Ledger, s.Targets[1].Ledger = LedgerStatus{Balanced: true}, LedgerStatus{Balanced: true}
			s.Probes = append(s.Probes, ProbeStatus{Name: "slow", State: "waiting", Interval: time.Minute, FirstRun: now.Add(40 * time.Second)})
			s.Probes[0].State, s.Probes[0].FirstRun = "waiting", now.Add(7*time.Second)
		}, ExitOK, "Ready; the first round of probes begins at 12:00:07", DeliveryIdle},
		{"nothing ever delivered, and the age of the samples is unknown", func(s *Status) {
			for i := range s.Targets {
				s.Targets[i].Ledger = LedgerStatus{Appended: 9, Pending: 9, Balanced: true}
			}
		}, ExitTarget, "Nothing was ever delivered", DeliveryNever},
		{"nothing ever delivered", func(s *Status) {
			for i := range s.Targets {
				s.Targets[i].Ledger, s.Targets[i].LagSeconds = LedgerStatus{Appended: 9, Pending: 9, Balanced: true}, 46
			}
		}, ExitTarget, "Nothing was ever delivered", DeliveryNever},
		{"held, and the other has had nothing to get", func(s *Status) {
			s.Targets[0].State, s.Targets[1].Ledger = StateHeld, LedgerStatus{Balanced: true}
		}, ExitTarget, "Data arrives at 0 of 2 targets; not at a", DeliveryHeld},
		{"a missing file before the first request", func(s *Status) {
			s.Targets[0].State, s.Targets[0].Credentials = StateStarting, "open x: no such file or directory"
		}, ExitTarget, "Data arrives at 1 of 2 targets; not at a", DeliveryHeld},
		{"a reload changes the entry of a target that was down", func(s *Status) {
			s.Targets, s.Started, s.Config.LoadedAt = s.Targets[:1], now.Add(-time.Hour), now.Add(-2*time.Second)
			s.Targets[0].State, s.Targets[0].LagSeconds, s.Targets[0].PendingSamples, s.Targets[0].DownSince = StateStarting, 20, 30, now.Add(-20*time.Second)
		}, ExitTarget, "No data arrives: the first try with the changed entry is under way; 20 s behind; 30 samples wait on disk", DeliveryBehind},
		{"a reload changes the entry of a target that was down, with a large backlog", func(s *Status) {
			s.Started, s.Config.LoadedAt = now.Add(-time.Hour), now.Add(-2*time.Second)
			s.Targets[0].State, s.Targets[0].LagSeconds, s.Targets[0].PendingSamples, s.Targets[0].DownSince = StateBehind, 20, 3000, now.Add(-20*time.Second)
		}, ExitTarget, "Data arrives at 1 of 2 targets; not at a: the first try with the changed entry is under way", DeliveryBehind},
		{"a reload changes the entry of a target that never took anything", func(s *Status) {
			s.Targets, s.Started, s.Config.LoadedAt = s.Targets[:1], now.Add(-time.Hour), now.Add(-2*time.Second)
			s.Targets[0].Ledger = LedgerStatus{Appended: 9, Pending: 9, Balanced: true}
			s.Targets[0].State, s.Targets[0].LagSeconds, s.Targets[0].PendingSamples, s.Targets[0].DownSince = StateStarting, 20, 9, now.Add(-20*time.Second)
		}, ExitTarget, "Nothing is delivered yet: the first try with the changed entry is under way", DeliveryNever},
		{"a reload changes the entry of a healthy target", func(s *Status) {
			s.Started, s.Config.LoadedAt = now.Add(-time.Hour), now.Add(-2*time.Second)
			s.Targets[0].State, s.Targets[0].LagSeconds, s.Targets[0].PendingSamples = StateStarting, 9, 30
		}, ExitOK, "All data arrives, 9 s behind", Delivering},
		{"a restart in an outage", func(s *Status) {
			s.Targets, s.Started, s.Config.LoadedAt, s.WAL.Appended = s.Targets[:1], now.Add(-time.Second), now.Add(-time.Second), 0
			s.Targets[0].State, s.Targets[0].LagSeconds, s.Targets[0].PendingSamples, s.Targets[0].DownSince = StateStarting, 40, 973, now.Add(-40*time.Second)
			s.Probes[0].State, s.Probes[0].FirstRun = "waiting", now.Add(7*time.Second)
		}, ExitTarget, "No data arrives: the first try since the restart is under way; 40 s behind; 973 samples wait on disk", DeliveryBehind},
		{"a restart after a while", func(s *Status) {
			s.Targets, s.Started, s.WAL.Appended = s.Targets[:1], now.Add(-time.Second), 0
			s.Targets[0].State, s.Targets[0].LagSeconds, s.Targets[0].PendingSamples = StateStarting, 400, 973
		}, ExitTarget, "No data arrives: the first try since the restart is under way; 6.7 min behind; 973 samples wait on disk", DeliveryBehind},
		{"a healthy restart", func(s *Status) {
			s.Targets, s.Started, s.WAL.Appended = s.Targets[:1], now.Add(-time.Second), 0
			s.Targets[0].State, s.Targets[0].LagSeconds, s.Targets[0].PendingSamples = StateStarting, 20, 21
			s.Probes[0].State, s.Probes[0].FirstRun = "waiting", now.Add(7*time.Second)
		}, ExitOK, "Ready; 21 samples wait on disk, from before the restart; the first try is under way", Delivering},
		{"the worst first", func(s *Status) {
			s.Targets[0].State, s.Targets[1].State, s.Targets[1].Permanent = StateRetrying, StateHeld, true
			s.Targets = append(s.Targets, TargetStatus{Name: "c", State: StateOK, Ledger: LedgerStatus{Appended: 9, Delivered: 9, Balanced: true}})
		}, ExitTarget, "Data arrives at 1 of 3 targets; not at b, a", DeliveryBehind},
		{"held", func(s *Status) { s.Targets[0].State = StateHeld }, ExitTarget, "not at a", DeliveryHeld},
		{"behind", func(s *Status) { s.Targets[0].LagSeconds = 46 }, ExitTarget, "up to 46 s late", DeliveryBehind},
		{"nearly behind", func(s *Status) { s.Targets[0].LagSeconds = 44 }, ExitOK, "Data arrives, 44 s behind", Delivering},
		{"of unknown age", func(s *Status) { s.Targets[0].PendingSamples = 5 }, ExitTarget, "Data arrives", DeliveryIdle},
		{"losing", func(s *Status) {
			s.Losses = []LossStatus{{Target: "a", Reason: "budget", Samples: 144329, FirstAt: now.Add(-time.Hour), LastAt: now.Add(-time.Minute)}}
		}, ExitTarget, "are being lost", DeliveryLosing},
		{"lost", func(s *Status) {
			s.Losses = []LossStatus{{Target: "a", Reason: "budget", Samples: 144329, FirstAt: now.Add(-2 * time.Hour), LastAt: now.Add(-time.Hour)}}
		}, ExitTarget, "144\u202f329 samples lost", DeliveryLost},
		{"may be stored", func(s *Status) {
			s.Losses = []LossStatus{{Target: "a", Reason: "unconfirmed", Samples: 7, FirstAt: now.Add(-time.Minute), LastAt: now.Add(-time.Minute)}}
		}, ExitTarget, "; target a: samples unconfirmed: they may be stored or not", Delivering},
		{"lost and acknowledged", func(s *Status) {
			s.Losses = []LossStatus{{Target: "a", Reason: "budget", Samples: 144329, LastAt: now.Add(-time.Hour), Acknowledged: true}}
		}, ExitOK, "All data", Delivering},
		{"lost two days ago", func(s *Status) {
			s.Losses = []LossStatus{{Target: "a", Reason: "budget", Samples: 144329, LastAt: now.Add(-48 * time.Hour)}}
		}, ExitOK, "All data", Delivering},
		{"refused by the log", func(s *Status) {
			s.Losses = []LossStatus{{Reason: ReasonRefused, Samples: 7, FirstAt: now.Add(-time.Hour), LastAt: now.Add(-time.Hour)}}
		}, ExitAttention, "7 samples refused in the last", Delivering},
		{"refused by the receiver", func(s *Status) {
			s.Losses = []LossStatus{{Target: "a", Reason: ReasonRejected, Samples: 7, FirstAt: now.Add(-time.Minute), LastAt: now.Add(-time.Minute)}}
		}, ExitTarget, "Samples are refused: 7 so far, at a", DeliveryLosing},
		{"refused by the receiver, with its words", func(s *Status) {
			s.Targets[0].LastRefusal = "the receiver refuses the samples: 400 Bad Request: out of order sample: {}"
			s.Losses = []LossStatus{{Target: "a", Reason: ReasonRejected, Samples: 7, LastAt: now.Add(-time.Minute)}}
		}, ExitTarget, "Samples are refused: 7 so far, at a: out of order sample: {}", DeliveryLosing},
		{"refused before a restart", func(s *Status) {
			s.Started = now.Add(-50 * time.Second)
			s.Losses = []LossStatus{{Target: "a", Reason: ReasonRejected, Samples: 52, LastAt: now.Add(-time.Minute)}}
		}, ExitTarget, "52 samples were refused until 11:59:00; data arrives again", DeliveryLost},
		{"refused before a restart that has not sent anything yet", func(s *Status) {
			s.Started = now.Add(-3 * time.Second)
			s.Targets[0].State, s.Targets[0].PendingSamples, s.Targets[0].LagSeconds = StateStarting, 9, 5
			s.Losses = []LossStatus{{Target: "a", Reason: ReasonRejected, Samples: 52, LastAt: now.Add(-time.Minute)}}
		}, ExitTarget, "52 samples were refused until 11:59:00; the first try since the restart is under way, 5 s behind", DeliveryLost},
		{"refused before an outage", func(s *Status) {
			s.Targets[0].LastRefusalAt, s.Targets[0].LastErrorAt = now.Add(-2*time.Minute), now.Add(-time.Minute)
			s.Losses = []LossStatus{{Target: "a", Reason: ReasonRejected, Samples: 1, LastAt: now.Add(-2 * time.Minute)}}
		}, ExitTarget, "1 sample was refused until 11:58:00; data arrives again", DeliveryLost},
		{"refused before and after a restart", func(s *Status) {
			s.Started = now.Add(-50 * time.Second)
			s.Losses = []LossStatus{{Target: "a", Reason: ReasonRejected, Samples: 52, LastAt: now.Add(-time.Second)}}
		}, ExitTarget, "Samples are refused: 52 so far, at a", DeliveryLosing},
		{"refused and lost", func(s *Status) {
			s.Losses = []LossStatus{{Target: "a", Reason: ReasonRejected, Samples: 7, LastAt: now.Add(-time.Hour)}, {Target: "a", Reason: "budget", Samples: 5, LastAt: now.Add(-time.Hour)}}
		}, ExitTarget, "5 samples lost, 7 refused in the last", DeliveryLost},
		{"the record of losses is unreadable", func(s *Status) {
			s.Losses = []LossStatus{{Reason: ReasonUnread, LastAt: now}}
		}, ExitAttention, "; log: the record of losses could not be read", Delivering},
		{"lost long ago by a clock that has jumped", func(s *Status) {
			s.Losses = []LossStatus{{Target: "a", Reason: "budget", Samples: 144329, LastAt: now.Add(-48 * time.Hour), Until: now.Add(time.Hour)}}
		}, ExitTarget, "144\u202f329 samples lost", DeliveryLost},
		{"paused", func(s *Status) { s.Targets[0].State = StatePaused }, ExitTarget, "not at a", DeliveryPaused},
		{"series are muted", func(s *Status) {
			s.Targets[0].Muted = []MuteStatus{{Reason: "series-limit", Text: "the receiver's limit of series is reached", Words: "per-user series limit", Series: 5000, Example: `{__name__="a"}`, Since: now}}
		}, ExitTarget, "; target a: ", Delivering},
		{"a reload failed", func(s *Status) { s.Config.ReloadError = "x" }, ExitAttention, "Data arrives; configuration: reload failed: x", Delivering},
		{"a probe fails", func(s *Status) { s.Probes[0].State, s.Probes[0].LastError = "failing", "no answer\nmore" }, ExitAttention, "Data arrives; probe host: no answer", Delivering},
		{"two things fail", func(s *Status) {
			s.Config.ReloadError, s.Probes[0].State = "x", "failing"
		}, ExitAttention, "reload failed: x (and 1 more problem)", Delivering},
		{"little is free", func(s *Status) { s.WAL.FreeBytes = 1<<29 - 1 }, ExitAttention, "Data arrives; log: 512 MiB are free", Delivering},
		{"the clocks differ", func(s *Status) { s.Targets[0].ClockSkew = -20 * time.Minute }, ExitTarget, "Data arrives; target a: this host's clock is 20 min behind the receiver's", Delivering},
		{"all down for one reason", func(s *Status) {
			for i, url := range []string{"http://192.0.2.1:9090/w", "http://192.0.2.2:9090/w"} {
				s.Targets[i].State, s.Targets[i].URL = StateRetrying, url
				s.Targets[i].LastError = "connection refused by " + url[7:21]
			}
		}, ExitTarget, "No data arrives: connection refused by its address", DeliveryBehind},
		{"all down for different reasons", func(s *Status) {
			for i, why := range []string{"connection refused", "no route"} {
				s.Targets[i].State, s.Targets[i].LastError, s.Targets[i].LagSeconds = StateRetrying, why, 9
			}
		}, ExitTarget, "No data arrives, 9 s behind", DeliveryBehind},
		{"a text of a receiver that is long and controls the terminal", func(s *Status) {
			s.Targets = s.Targets[:1]
			s.Targets[0].State, s.Targets[0].LagSeconds, s.Targets[0].LastError = StateRetrying, 9, "\x1b[2J"+strings.Repeat("x", 1000)
		}, ExitTarget, "No data arrives: ?[2J" + strings.Repeat("x", 115) + "…; 9 s behind", DeliveryBehind},
		{"down from the start", func(s *Status) {
			s.Targets = s.Targets[:1]
			s.Targets[0].Ledger, s.Targets[0].LagSeconds = LedgerStatus{Appended: 9, Pending: 9, Balanced: true}, 9
			s.Targets[0].State, s.Targets[0].LastError, s.Targets[0].PendingSamples = StateRetrying, "connection refused", 9
		}, ExitTarget, "Nothing is delivered yet: connection refused; 9 samples wait on disk", DeliveryNever},
		{"down after it refused a sample", func(s *Status) {
			s.Targets = s.Targets[:1]
			s.Targets[0].State, s.Targets[0].LastError = StateRetrying, "connection refused"
			s.Losses = []LossStatus{{Target: "a", Reason: ReasonRejected, Samples: 7, LastAt: now.Add(-time.Minute)}}
		}, ExitTarget, "No data arrives: connection refused", DeliveryLosing},
		{"down, and the log is full", func(s *Status) {
			s.Targets = s.Targets[:1]
			s.Targets[0].State, s.Targets[0].LastError = StateRetrying, "connection refused"
			s.Losses = []LossStatus{{Target: "a", Reason: "budget", Samples: 7, LastAt: now.Add(-time.Minute)}}
		}, ExitTarget, "Samples are being lost: 7 so far, at a", DeliveryLosing},
		{"not running", func(s *Status) { s.Running = false }, ExitNotRunning, "not running", DeliveryIdle},
		{"an orphan waits", func(s *Status) { s.Targets[0].State, s.Targets[0].PendingSamples = StateOrphan, 5 }, ExitTarget, "; target a: is ", DeliveryHeld},
		{"it lasts a day and no more", func(s *Status) {
			s.WAL.BytesPerSec, s.WAL.WarnFullSeconds = 12000, 86400
			s.Targets[0].State, s.Targets[0].PendingSamples, s.Targets[0].PendingBytes = StateHeld, 5, 1<<26
		}, ExitTarget, "not at a", DeliveryHeld},
	} {
		s := good()
		c.change(&s)
		s = Judge(s)
		if v := *s.Verdict; v.ExitCode != c.code || !strings.Contains(v.Text, c.text) || (v.Level == LevelOK) != (c.code == ExitOK) {
			t.Errorf("%s: %+v, want exit code %d and %q", c.name, v, c.code, c.text)
		}
		for _, p := range s.Problems {
			if strings.Contains(s.Verdict.Text, "arrives again") && p.Severity == SeverityError {
				t.Errorf("%s: what is over is an error: %+v", c.name, p)
			}
		}
		if s.Targets[0].Delivery != c.state {
			t.Errorf("%s: target a is %s, want %s", c.name, s.Targets[0].Delivery, c.state)
		}
		for _, p := range s.Problems {
			if p.Severity != SeverityNote && (p.Text == "" || p.Try == "" && !strings.Contains(p.Text, "behind")) {
				t.Errorf("%s: the problem %+v does not say what to do", c.name, p)
			}
		}
	}
}

// A loss says when, why, how many and what to do.
func TestLossIsTold(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := Judge(Status{Running: true, Now: now, Losses: []LossStatus{
		{Target: "a", Reason: "budget", Samples: 144329, FirstAt: now.Add(-2 * time.Hour), LastAt: now.Add(-time.Hour)},
		{Target: "a", Reason: "rejected", Samples: 1, LastAt: now.Add(-time.Hour)},
	}, Targets: []TargetStatus{{Name: "a", State: StateOK}}})
	var said strings.Builder
	for _, p := range s.Problems {
		fmt.Fprintln(&said, p.Severity, p.Subject, p.Text, p.Try)
	}
	for _, want := range []string{"144\u202f329 samples were lost from 10:00:00 to 11:00:00 (60 min): the log", "wal.max_bytes", "events ack",
		"1 sample was refused before 11:00:00: the receiver does not accept", "hwsagent targets rejected a"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not told:\n%s", want, said.String())
		}
	}
}

// A remedy can be typed as it is, and names the cause that is likely.
func TestRemedies(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	refused := func(words string) Status {
		return Status{Targets: []TargetStatus{{Name: "a", State: StateOK, LastRefusal: "the receiver refuses the samples: 400 Bad Request: " + words}},
			Losses: []LossStatus{{Target: "a", Reason: ReasonRejected, Samples: 7, LastAt: now.Add(-time.Hour)}}}
	}
	wrong := refused("out of order sample")
	wrong.Targets[0].ClockSkew = time.Hour
	const labels = "another sender may send the same series: give each agent its own external_labels; `hwsagent targets rejected a`"
	for _, c := range []struct {
		s         Status
		want, not string
	}{
		{Status{WAL: WALStatus{Dir: "/var/lib/hwsagent", Error: "open /var/lib/hwsagent/wal/00000007: permission denied"}}, "let the agent's user write to " + filepath.Join("/var/lib/hwsagent", "wal"), "make room"},
		{Status{WAL: WALStatus{Dir: "/var/lib/hwsagent", Error: "write: no space left on device"}}, "make room or repair the file system at /var/lib/hwsagent", "let the"},
		{Status{Targets: []TargetStatus{{Name: "portal", State: StateOrphan, PendingSamples: 5}}}, "hwsagent targets drop portal --yes,", "drop portal,"},
		{Status{Targets: []TargetStatus{{Name: "a", State: StateOK, DeadLetters: 21, Ledger: LedgerStatus{Dropped: map[string]uint64{ReasonRejected: 52}, Balanced: true}}}},
			"21 dead letters, for 52 samples refused since", "21 samples"},
		{refused("out of order sample"), labels, "NAME"},
		{refused("err-mimir-sample-out-of-order"), labels, "NAME"},
		{refused("duplicate sample for timestamp"), labels, "NAME"},
		{refused("label name is too long"), "`hwsagent targets rejected a`", "another sender"},
		{wrong, "`hwsagent targets rejected a`", "another sender"},
	} {
		c.s.Running, c.s.Now = true, now
		var said strings.Builder
		for _, p := range Judge(c.s).Problems {
			fmt.Fprintln(&said, p.Text, p.Try)
		}
		if !strings.Contains(said.String(), c.want) || strings.Contains(said.String(), c.not) {
			t.Errorf("%q is not in, or %q is:\n%s", c.want, c.not, said.String())
		}
	}
}

// The words of a refusal stay, with their time, when another error follows, as long as the loss is shown.
func TestWordsOfARefusalStay(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := now.Add(-time.Hour)
	s := Status{Running: true, Now: now, Losses: []LossStatus{{Target: "a", Reason: ReasonRejected, Samples: 7, FirstAt: at, LastAt: at}},
		Targets: []TargetStatus{{Name: "a", State: StateRetrying, LastError: "connection refused", LastErrorAt: now, LastRefusalAt: at,
			LastRefusal: "the receiver refuses the samples: 400 Bad Request: out of order sample: {}"}}}
	said := func() (all string) {
		for _, p := range Judge(s).Problems {
			all += p.Text + "\n"
		}
		return all
	}
	if want := ". It said last, at 11:00:00: out of order sample: {}\n"; !strings.Contains(said(), want) {
		t.Errorf("%q is not in\n%s", want, said())
	}
	s.Targets[0].LastErrorAt = at
	if want := ". It said last: out of order sample: {}\n"; !strings.Contains(said(), want) {
		t.Errorf("%q is not in\n%s", want, said())
	}
	s.Losses[0].Acknowledged = true
	if strings.Contains(said(), "out of order") {
		t.Errorf("after events ack:\n%s", said())
	}
}

// A full log drops ranges unread. Where a target gets only a part of a range, the number is an upper bound, and each place
// that shows it says so: finding, verdict and note. Where it gets all, the number is exact.
func TestLossIsAnUpperBound(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for bound, losing := range map[bool]time.Duration{true: time.Minute, false: time.Hour} {
		for _, reason := range []string{"budget", "rejected"} {
			s := Status{Running: true, Now: now, Losses: []LossStatus{{Target: "a", Reason: reason, Samples: 3000, FirstAt: now.Add(-2 * time.Hour), LastAt: now.Add(-losing)}},
				Targets: []TargetStatus{{Name: "a", State: StateOK, LostAtMost: bound, Ledger: LedgerStatus{Lost: 5000, Delivered: 1, Appended: 5001, Dropped: map[string]uint64{reason: 5000}}}}}
			Bound(s)
			s = Judge(s)
			said := s.Verdict.Text
			for _, p := range s.Problems {
				said += "\n" + p.Text
			}
			want := map[bool]int{true: 3, false: 0}[bound && reason == "budget"]
			if reason == "rejected" && bound {
				want = 1 // the sum since the target was added has other losses, too
			}
			if got := strings.Count(said, "at most "); got != want {
				t.Errorf("bound %t, %s: %d times \"at most\", want %d:\n%s", bound, reason, got, want, said)
			}
		}
	}
}

func TestLasts(t *testing.T) {
	s := Status{Running: true, WAL: WALStatus{MaxBytes: 1000_000, Bytes: 400_000, FreeBytes: 500_000, MinFreeBytes: 100_000, BytesPerSec: 1},
		Targets: []TargetStatus{{Name: "a", PendingBytes: 300_000}}}
	// The budget has room for 700,000, the file system for 400,000 and what is delivered of the log.
	if d, ok := Lasts(s); !ok || d != 500_000*time.Second {
		t.Errorf("lasts %v, %v", d, ok)
	}
	s.WAL.FreeBytes = 1 << 40
	if d, _ := Lasts(s); d != 700_000*time.Second {
		t.Errorf("lasts %v with much free space", d)
	}
	s.Targets[0].State, s.Targets[0].PendingSamples, s.Targets[0].MaxBacklogBytes = StateHeld, 1, 300_060
	if d, ok := FullIn(s, s.Targets[0]); !ok || d != time.Minute {
		t.Errorf("the target's share lasts %v, %v", d, ok)
	}
	if said := Problems(s); len(said) == 0 || !strings.Contains(said[len(said)-1].Text, " on disk, with room for a minute or less at this rate") {
		t.Errorf("the target's problem does not say how long there is room: %+v", said)
	}
	if room := Room(s, TargetStatus{Name: "b", State: StateHeld, PendingSamples: 1, PendingBytes: 1}, s.Targets[0]); room != "room for a minute or less" {
		t.Errorf("of two targets %q", room)
	}
	for d, want := range map[time.Duration]string{76 * time.Hour: "about 3 days", 250 * time.Minute: "about 4 hours", 59 * time.Second: "a minute or less", 2 * time.Minute: "about 2 minutes",
		47 * time.Hour: "about 47 hours", 20 * 24 * time.Hour: "about 2 weeks", 100 * 24 * time.Hour: "about 3 months", 1 << 62: "years"} {
		if got := Lasting(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
