//go:build linux

package crashlab

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"hwsagent/agent/demo/receiver"
)

// status is what the lab reads of the agent's status, running or not.
type status struct {
	Running bool
	Now     time.Time
	Clock   clockStatus
	WAL     struct {
		Refused uint64 `json:"samples_refused"`
		Error   string
	}
	Targets []target
	Probes  []probe
}

type probe struct {
	Name    string
	Skipped uint64 `json:"skipped_rounds"`
}

type target struct {
	Name, State, Why string
	Lag              float64 `json:"lag_seconds"`
	Missed           uint64  `json:"missed_samples"`
	Ledger           ledger
}

type ledger struct {
	Appended, Delivered, Filtered, Lost, Pending uint64
	Dropped                                      map[string]uint64
	Balanced                                     bool
}

// UnmarshalJSON also counts what may be stored as lost: the tests allow it only where they say so.
func (g *ledger) UnmarshalJSON(b []byte) error {
	type plain ledger
	err := json.Unmarshal(b, (*plain)(g))
	g.Lost += g.Dropped["unconfirmed"]
	return err
}

// secondValues returns how many samples were rejected because another sample of their series had the same time: a damaged message can have two.
func (l *lab) secondValues() (n uint64) {
	l.t.Helper()
	out, err := exec.Command(l.args[0], "targets", "rejected", "lab", "--limit", "0", "--json", "--storage.path", l.storage).Output()
	if err != nil {
		l.t.Fatalf("targets rejected: %v", err)
	}
	var list struct {
		Letters []struct {
			Reason, Text string
			Samples      uint64
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		l.t.Fatal(err)
	}
	for _, letter := range list.Letters {
		if letter.Reason == "rejected" && strings.Contains(letter.Text, "another sample of the series has the same time") {
			n += max(letter.Samples, 1)
		}
	}
	return n
}

// addsUp says what is wrong with a ledger, "" if nothing.
func (g ledger) addsUp() string {
	sum := g.Delivered + g.Filtered + g.Pending
	for _, n := range g.Dropped {
		sum += n
	}
	if sum != g.Appended || !g.Balanced {
		return fmt.Sprintf("the ledger does not add up (%d ≠ %d): %+v", g.Appended, sum, g)
	}
	return ""
}

// client reaches the agent's web server, wherever it runs.
func (l *lab) client(timeout time.Duration) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	if l.inside != nil {
		transport.DialContext = l.inside.dial
	}
	return &http.Client{Timeout: timeout, Transport: transport}
}

// get asks the running agent's web server.
func (l *lab) get(path string) (string, error) {
	resp, err := l.client(3 * time.Second).Get("http://" + l.web + path)
	if err != nil {
		if l.gone() {
			err = fmt.Errorf("the agent has ended, %s: %w", l.cmd.ProcessState, err)
		}
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return string(body), err
}

// status asks the running agent. Its ledger is always checked.
func (l *lab) status() status {
	l.t.Helper()
	body, err := l.get("/api/v1/status")
	if err != nil {
		l.t.Fatalf("status: %v %s\n%s", err, body, l.tail(20))
	}
	return l.checked(body)
}

// offline runs `hwsagent status --json` for the agent that is down and checks the ledger.
func (l *lab) offline() status {
	l.t.Helper()
	const notRunning = 7
	cmd := exec.Command(l.args[0], "status", "--json", "--storage.path", l.storage)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != notRunning {
		l.t.Fatalf("status of an agent that is down: exit code %d, %v\n%s%s", code, err, out, errs.String())
	}
	if len(out) == 0 {
		return status{} // killed before there was a log
	}
	return l.checked(string(out))
}

func (l *lab) checked(body string) status {
	l.t.Helper()
	var s status
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		l.t.Fatalf("status: %v\n%s", err, body)
	}
	for _, tg := range s.Targets {
		if wrong := tg.Ledger.addsUp(); wrong != "" {
			l.t.Errorf("target %s: %s", tg.Name, wrong)
		}
	}
	return s
}

// target returns the lab's one target.
func (l *lab) target() target {
	l.t.Helper()
	s := l.status()
	if len(s.Targets) != 1 {
		l.t.Fatalf("%d targets, want 1", len(s.Targets))
	}
	return s.Targets[0]
}

// canary returns the running agent's probe.
func (l *lab) canary() probe {
	l.t.Helper()
	p := l.status().canary()
	if p.Name == "" {
		l.t.Fatal("the status has no canary")
	}
	return p
}

// canary returns the state of the probe, zero if there is none.
func (s status) canary() probe {
	for _, p := range s.Probes {
		if p.Name == "canary" {
			return p
		}
	}
	return probe{}
}

func (l *lab) journal() receiver.Journal {
	l.t.Helper()
	j, err := receiver.ReadJournal(l.journalFile())
	if err != nil {
		l.t.Fatal(err)
	}
	return j
}

// quiet ends the load. The configuration stays one with a load, for the next life.
func (l *lab) quiet() {
	l.t.Helper()
	l.last = l.status()
	l.configure(false)
	defer l.configure(true)
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, "http://"+l.web+"/-/reload", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	resp, err := l.client(time.Minute).Do(req)
	if err != nil {
		l.t.Fatalf("reload: %v", err)
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		l.t.Fatalf("reload: status %d\n%s", resp.StatusCode, l.tail(5))
	}
}

// settle ends the load, lets everything be delivered and returns the account.
func (l *lab) settle() (receiver.Result, ledger) {
	l.t.Helper()
	l.recv.Behave(l.behaviour)
	if err := l.recv.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.quiet()
	eventually(l.t, time.Minute, func() string {
		if l.gone() {
			l.t.Fatalf("the agent ended by itself: %s", l.cmd.ProcessState)
		}
		if tg := l.target(); tg.Ledger.Pending > 0 {
			return fmt.Sprintf("%d samples pending, %s: %s", tg.Ledger.Pending, tg.State, tg.Why)
		}
		return ""
	})
	r, g := l.oracle.Verify(l.journal(), l.series), l.target().Ledger
	l.t.Logf("account: %+v", r)
	l.t.Logf("ledger:  %+v", g)
	if r.Appended == 0 {
		l.t.Error("the load did nothing")
	}
	return r, g
}

// sound fails the test for results that no fault excuses: wrong order, values or numbers that were never sent, more
// duplicates than samples sent around a fault, and a ledger that differs from the log.
func (l *lab) sound(r receiver.Result, g ledger) {
	l.t.Helper()
	if r.OutOfOrder != 0 || r.Garbled != 0 || r.Ghosts != 0 {
		l.t.Errorf("out of order %d, garbled %d, never tried %d; want none of each", r.OutOfOrder, r.Garbled, r.Ghosts)
	}
	l.fewTwice(r)
	if n := g.Dropped["damage"]; n > 0 {
		l.t.Errorf("%d samples count as damage: no fault here damages the log", n)
	}
}

// fewTwice fails the test for more duplicates than were sent about a fault. A life asks once a minute, with a sample that
// was delivered, whether a receiver with a backlog takes old samples.
func (l *lab) fewTwice(r receiver.Result) {
	l.t.Helper()
	// A sample sent twice was sent after the last savepoint before a fault, or was in flight. Requests are recorded
	// when they begin to arrive.
	window := time.Second + 300*time.Millisecond + l.lastSlow + 2*l.witness.slippedBy()
	seen := l.recv.Seen()
	suspects := uint64(len(l.faults) + 1)
	if len(seen) > 0 {
		suspects += uint64(seen[len(seen)-1].At.Sub(seen[0].At) / time.Minute)
	}
	for _, s := range seen {
		for _, f := range l.faults {
			if s.At.After(f.Add(-window)) && s.At.Before(f.Add(pace)) {
				suspects += uint64(s.Samples)
				break
			}
		}
	}
	if r.Duplicated > suspects {
		l.t.Errorf("%d samples came twice; only %d were sent within %s before a fault, or to ask", r.Duplicated, suspects, window)
	}
}

// complete fails the test if an acknowledged sample is missing or counted as lost.
func (l *lab) complete(r receiver.Result, g ledger) {
	l.t.Helper()
	if r.Missing != 0 {
		l.t.Errorf("%d of %d acknowledged samples are lost: rounds %v", r.Missing, r.Appended, l.oracle.Missing(l.journal(), l.series))
	}
	if g.Lost != 0 {
		l.t.Errorf("the ledger says that %d samples are lost, the receiver has them all: %+v", g.Lost, g)
	}
	// The ledger counts the same samples as the oracle, and the runner's own report.
	j := l.journal()
	round := uint64(l.series + report)
	if least := uint64(len(j.Acked)) * round; g.Appended < least {
		l.t.Errorf("the ledger counts %d appended samples, %d were acknowledged", g.Appended, least)
	}
	// A round that came late has the report only; stopping the probe marks all stale.
	if most := (j.Tried+1)*round + report*j.Tried/4; g.Appended > most {
		l.t.Errorf("the ledger counts %d appended samples, at most %d were tried", g.Appended, most)
	}
}
