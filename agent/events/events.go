// Package events keeps a journal of the agent's events and losses of the last 24 hours, over restarts.
//
// A loss is the difference between a target's ledger and the losses that the journal already has. The ledger is durable
// before samples are dropped, so a kill at any moment hides no loss. If the journal's file is missing or damaged, the
// losses in the ledgers become old losses of unknown time. Samples that the log refused are in no ledger: then the
// journal says that their record is gone.
package events

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"hwsagent/agent/status"
)

// Bounds of the journal.
const (
	// For is how long events are kept.
	For = status.LossesFor

	// maxEvents bounds the number of events; the oldest are dropped.
	maxEvents = 500

	// oneLoss: losses of one target for one reason less than this apart are reported as one.
	oneLoss = 10 * time.Minute

	// maxLosses bounds how many losses are kept separately; beyond it all losses of one target for one reason are
	// merged.
	maxLosses = 200
)

// The kinds of an event.
const (
	Started      = "restart"
	Stopped      = "stop"
	Down         = "down"
	Held         = "held"
	Up           = "up"
	Paused       = "paused"
	Resumed      = "resumed"
	Reloaded     = "reload"
	ReloadFailed = "reload_failed"
	Credentials  = "credentials" // a token, password or certificate was replaced
	Acknowledged = "acknowledged"
	Muted        = "muted"    // series are not sent because the receiver refuses them for a known reason
	Released     = "released" // these series are sent again
)

// The kind of a loss is its [status.LossStatus.Outcome].

// Event is one thing that happened in the agent.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Subject string    `json:"subject"` // "target mimir", "log", "config", "agent"
	Text    string    `json:"text"`
}

// Journal holds events and losses. It is safe for concurrent use; only [Journal.Save] waits for a disk.
type Journal struct {
	file string

	mu      sync.Mutex // guards the fields below; never held during I/O
	s       state
	last    *status.Status // as of the last Observe
	refused uint64         // samples refused by the log since it was opened, as far as accounted for
	changes uint64         // counts changes of s, including new events
	growing bool           // losses have grown since the last save
	unread  bool           // the file could not be read, so its losses are missing
	looked  bool           // this process has looked at the losses before

	accounted bool // this process has compared the ledgers before

	saveMu sync.Mutex // held during a save
	saved  uint64     // value of changes on disk
	at     time.Time  // time of the last save
}

// state is the content of the file.
type state struct {
	Schema  int  `json:"schema"` // 1
	Running bool `json:"running"`

	// Looked is the time of the last comparison with the ledgers; Accounted has their figures at that time, by target.
	Looked    time.Time          `json:"looked_at,omitzero"`
	Accounted map[string]account `json:"accounted,omitempty"`

	// Down is since when each target accepts nothing, so that an outage goes on over a restart.
	Down map[string]time.Time `json:"down_since,omitempty"`

	// Flow is the kind of the last event of each target that was down, held or paused at the last look, so that a restart
	// repeats no event.
	Flow map[string]string `json:"flow,omitempty"`

	Losses []status.LossStatus `json:"losses,omitempty"` // in the order of FirstAt
	Events []Event             `json:"events,omitempty"` // oldest first
}

// account holds the figures of a ledger.
type account struct {
	Appended uint64            `json:"appended"`
	Dropped  map[string]uint64 `json:"dropped,omitempty"`
}

// noLoss reports whether samples dropped for that reason need no warning: a command skipped them.
func noLoss(reason string) bool { return reason == "skipped" }

// Account records the losses since its last call, by the ledgers in the status, and returns the losses of the last 24
// hours.
func (j *Journal) Account(s status.Status) []status.LossStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	since, last := j.s.Looked, s.Now
	if !j.accounted && s.Started.After(since) && s.Started.Before(last) {
		last = s.Started // an earlier process lost them, and was killed before it saved that
	}
	j.accounted = true
	for _, t := range s.Targets {
		j.account(t.Name, account{t.Ledger.Appended, t.Ledger.Dropped}, since, last)
	}
	if n := s.WAL.Refused; s.Running && n > j.refused {
		j.lose("", status.ReasonRefused, n-j.refused, since, s.Now)
		j.refused = n
	}
	j.s.Looked = s.Now
	j.forget(s.Now)
	return slices.Clone(j.s.Losses)
}

// Outages records since when targets accept nothing, and sets DownSince of those whose outage began before the agent did: a
// target has accepted nothing since its record was made if it has accepted nothing since the start of its queue.
func (j *Journal) Outages(now time.Time, targets []status.TargetStatus) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range targets {
		t := &targets[i]
		was, recorded := j.s.Down[t.Name]
		down := (t.State == status.StateHeld || t.State == status.StateRetrying) && !t.DownSince.IsZero()
		switch {
		case recorded && (down || t.Unproven()) && was.After(t.LastSuccess):
			if was = byClock(now, was); t.DownSince.IsZero() || was.Before(t.DownSince) {
				t.DownSince = was
			}
		case down:
			if j.s.Down == nil {
				j.s.Down = map[string]time.Time{}
			}
			j.s.Down[t.Name] = t.DownSince
			j.changes++
		case recorded && (t.LastSuccess.After(was) || t.State == status.StateOrphan):
			delete(j.s.Down, t.Name)
			j.changes++
		}
	}
}

// Rename moves the losses accounted for at one target, or tenant's target, to the name that its queue has now. The
// ledger moves with the queue; without Rename all its losses since it was first known would be reported again.
func (j *Journal) Rename(from, to string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if was, ok := j.s.Accounted[from]; ok {
		j.s.Accounted[to] = was
		delete(j.s.Accounted, from)
	} else {
		delete(j.s.Accounted, to)
	}
	for i := range j.s.Losses {
		if l := &j.s.Losses[i]; l.Target == from {
			l.Target = to
		}
	}
	if since, ok := j.s.Down[from]; ok {
		j.s.Down[to] = since
		delete(j.s.Down, from)
	}
	if kind, ok := j.s.Flow[from]; ok {
		j.s.Flow[to] = kind
		delete(j.s.Flow, from)
	}
	j.changes++
}

// account compares a ledger with its last figures. A target without an entry that existed at the last comparison had
// lost nothing.
func (j *Journal) account(target string, is account, since, now time.Time) {
	was := j.s.Accounted[target]
	if is.Appended < was.Appended && sum(is.Dropped) < sum(was.Dropped) {
		was = account{} // another queue has this name now
	}
	for reason, n := range is.Dropped {
		if more := n - min(n, was.Dropped[reason]); more > 0 && !noLoss(reason) {
			j.lose(target, reason, more, since, now)
		}
	}
	for reason, n := range was.Dropped {
		if back := n - min(n, is.Dropped[reason]); back > 0 {
			j.regain(target, reason, back)
		}
	}
	if old, ok := j.s.Accounted[target]; maps.Equal(old.Dropped, is.Dropped) && j.s.Accounted != nil {
		if old.Appended = is.Appended; ok { // so that the next queue of that name has fewer
			j.s.Accounted[target] = old
		}
		return
	}
	if j.s.Accounted == nil {
		j.s.Accounted = map[string]account{}
	}
	is.Dropped = maps.Clone(is.Dropped)
	j.s.Accounted[target] = is
	j.growing = true
}

// regain records that samples were not lost after all: requests in flight when the log dropped their samples have been
// answered.
func (j *Journal) regain(target, reason string, n uint64) {
	for i := range slices.Backward(j.s.Losses) {
		if l := &j.s.Losses[i]; l.Target == target && l.Reason == reason {
			back := min(l.Samples, n)
			l.Samples, n = l.Samples-back, n-back
		}
	}
	j.s.Losses = slices.DeleteFunc(j.s.Losses, func(l status.LossStatus) bool { return l.Samples == 0 && l.Reason != status.ReasonUnread })
}

// lose records a loss between since, which may be zero, and now.
func (j *Journal) lose(target, reason string, n uint64, since, now time.Time) {
	j.growing = true
	for i := range slices.Backward(j.s.Losses) {
		l := &j.s.Losses[i]
		if l.Target != target || l.Reason != reason || l.Acknowledged {
			continue
		}
		if now.Sub(l.LastAt) < oneLoss || len(j.s.Losses) >= maxLosses {
			l.Samples, l.LastAt, l.Until = l.Samples+n, now, now.Add(For)
			if target == "" { // no ledger has it, so it must not wait for the next save of growing losses
				j.changes++
			}
			return
		}
		break
	}
	j.s.Losses = append(j.s.Losses, status.LossStatus{Target: target, Reason: reason, Samples: n, FirstAt: since, LastAt: now, Until: now.Add(For)})
	j.changes++
}

// Forget ends the account of a target whose queue was dropped. The next queue of that name has a new ledger: if it has
// fewer drops, no samples came back, and all its drops are new losses. The losses of the dropped queue remain.
func (j *Journal) Forget(target string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.s.Accounted, target)
	delete(j.s.Down, target)
	delete(j.s.Flow, target)
	j.changes++
}

// forget removes entries older than a day, and puts the times of the others on the clock as it is set now.
func (j *Journal) forget(now time.Time) {
	if j.unread {
		j.unread = false
		j.s.Losses = append(j.s.Losses, status.LossStatus{Reason: status.ReasonUnread, LastAt: now, Until: now.Add(For)})
		j.changes++
	}
	for i := range j.s.Losses {
		l := &j.s.Losses[i]
		l.FirstAt, l.LastAt = byClock(now, l.FirstAt), byClock(now, l.LastAt)
		if l.FirstAt.After(l.LastAt) {
			l.FirstAt = l.LastAt
		}
		l.Until = j.until(now, *l)
	}
	j.looked = true
	for i := range j.s.Events {
		j.s.Events[i].Time = byClock(now, j.s.Events[i].Time)
	}
	for name, since := range j.s.Down {
		j.s.Down[name] = byClock(now, since)
	}
	all := len(j.s.Losses)
	if j.s.Losses = slices.DeleteFunc(j.s.Losses, func(l status.LossStatus) bool { return !now.Before(l.Until) }); len(j.s.Losses) < all {
		j.changes++ // save it: the next start would show the loss for another day
	}
	j.s.Events = slices.DeleteFunc(j.s.Events, func(e Event) bool { return now.Sub(e.Time) >= For })
	if n := len(j.s.Events) - maxEvents; n > 0 {
		j.s.Events = slices.Delete(j.s.Events, 0, n)
	}
}

// until returns when a loss ends, on the clock as it is set now. A loss whose day ended while no agent ran gets another
// one, unless it is acknowledged: the loss was not shown in that time, or the clock has jumped and the day has not passed.
func (j *Journal) until(now time.Time, l status.LossStatus) time.Time {
	left := min(l.Ends().Sub(now), For)
	if left <= 0 && !j.looked && !l.Acknowledged {
		left = For
	}
	return now.Add(left)
}

// byClock converts a time of this process to the wall clock as it is set now: many boards start in 1970, and events
// from before their clock was set must not seem older than a day after the next start. A time that an earlier process
// recorded stays unchanged, unless it is in the future: then the clock was wrong, and the entry would never become old.
func byClock(now, t time.Time) time.Time {
	switch recorded := t == t.Round(0); { // without a monotonic reading
	case t.IsZero(), recorded && t.Sub(now) < oneLoss:
		return t
	case recorded:
		return now
	}
	return now.Add(t.Sub(now))
}

// Observe records the changes since its last call.
func (j *Journal) Observe(s status.Status) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range s.Targets {
		if t.State != status.StateOrphan {
			j.observe(s.Now, t)
		}
	}
	if j.last != nil {
		for _, e := range Between(*j.last, s) {
			j.add(e)
		}
	}
	j.last = &s
}

// observe adds the event for the state of a target, if there is one.
func (j *Journal) observe(now time.Time, t status.TargetStatus) {
	kind, text := turn(j.s.Flow[t.Name], t)
	switch kind {
	case "":
		return
	case Up, Resumed:
		delete(j.s.Flow, t.Name)
	default:
		if j.s.Flow == nil {
			j.s.Flow = map[string]string{}
		}
		j.s.Flow[t.Name] = kind
	}
	j.add(Event{now, kind, "target " + t.Name, text})
}

// Add adds an event.
func (j *Journal) Add(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(e)
}

func (j *Journal) add(e Event) {
	j.s.Events = append(j.s.Events, e)
	j.changes++
	j.forget(e.Time)
}

// Begin records that the agent has started.
func (j *Journal) Begin(now time.Time, version string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := "started, version " + version
	if j.s.Running {
		text += "; it had not shut down cleanly before"
	}
	j.s.Running = true
	j.add(Event{now, Started, "agent", text})
}

// End records that the agent stops in order.
func (j *Journal) End(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.s.Running = false
	j.add(Event{now, Stopped, "agent", "stopped"})
}

// Acknowledge ends the warnings of all losses so far, and returns how many samples they cover, as far as known.
func (j *Journal) Acknowledge(now time.Time) (samples uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	some := false
	for i := range j.s.Losses {
		if l := &j.s.Losses[i]; !l.Acknowledged {
			l.Acknowledged, some = true, true
			samples += l.Samples
		}
	}
	if some {
		j.add(Event{now, Acknowledged, "agent", "losses acknowledged"})
	}
	return samples
}

// Events returns the events of the last 24 hours, losses included, oldest first.
func (j *Journal) Events(now time.Time) []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forget(now)
	all := slices.Clone(j.s.Events)
	for _, l := range j.s.Losses {
		subject := "log"
		if l.Target != "" {
			subject = "target " + l.Target
		}
		text := l.Text(now)
		if l.Acknowledged {
			text += " (acknowledged)"
		}
		all = append(all, Event{l.LastAt, l.Outcome(), subject, text})
	}
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) })
	return all
}

func sum(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}
