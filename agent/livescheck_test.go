package agent

import (
	"fmt"
	"math"
	"slices"
	"time"

	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/wal/queue"
)

// mayReject reports whether samples may count as lost: some were dropped, or are sent again that a strict receiver has.
func (l *life) mayReject() bool {
	return l.maxBacklog > 0 || l.unsaved || l.bad != "" || len(l.excused) > 0
}

// accounts checks that the accounts add up.
func (l *life) accounts() {
	for _, s := range l.Status().Targets {
		if !s.Ledger.Balanced {
			l.t.Errorf("%s: %+v", s.Name, s.Ledger)
		}
		if s.Ledger.Lost+s.Ledger.Dropped["unconfirmed"] > 0 && !l.mayReject() && s.Ledger.Dropped["no_tenant"] != s.Ledger.Lost {
			l.t.Errorf("%s loses samples: %+v", s.Name, s.Ledger)
		}
	}
}

// settle ends all trouble, and waits until nothing waits.
func (l *life) settle() {
	l.unblock()
	l.to.set(func() { clear(l.to.answer) })
	if l.absent {
		l.absent = false
		l.reload()
	}
	for _, name := range l.queues() {
		if !l.log.PausedSince(name).IsZero() {
			if _, err := l.manage(queues.Request{Action: queues.ActionResume, Target: name}); err != nil && slices.Contains(l.queues(), name) {
				l.t.Fatal(err)
			}
		}
	}
	began := time.Now()
	least := uint64(math.MaxUint64) // of the waiting samples so far
	for fell := began; ; time.Sleep(10 * time.Second) {
		if time.Since(began) < 5*time.Minute {
			l.commit()
			continue
		}
		waits, n := "", uint64(0)
		for _, s := range l.Status().Targets {
			if n += s.Ledger.Pending; s.Ledger.Pending > 0 {
				waits = fmt.Sprintf("%s: %s %s %+v", s.Name, s.State, s.Why, s.Ledger)
			}
		}
		if waits == "" {
			return
		}
		if n < least {
			least, fell = n, time.Now()
		}
		if time.Since(fell) > time.Hour {
			l.t.Errorf("all trouble has ended, and for an hour nothing has gone on: %s", waits)
			return
		}
	}
}

// isDefault reports whether the default target sent to that tenant at any time.
func (l *life) isDefault(id string) bool { return id != "" && slices.Contains(l.defaults, id) }

// fate is what is right about the places of a sample.
type fate int

const (
	wrong   fate = iota
	arrived      // at one target, or where the log allows several
	missing      // the accounts must tell why
)

// fate judges a sample that these tenants have. own: the present target of its tenant began before it.
func (l *life) fate(s lifeSample, excused, own bool, at []string) fate {
	atDefault := slices.ContainsFunc(at, l.isDefault)
	atOwn := s.tenant != "" && s.tenant != "x/y" && slices.Contains(at, s.tenant)
	switch {
	case slices.ContainsFunc(at, func(id string) bool { return !l.isDefault(id) && (id != s.tenant || !atOwn) }):
		return wrong // at another tenant
	case excused, len(at) == 1 && atOwn, len(at) == 1 && !own:
		return arrived
	case len(at) == 1 && l.maxBacklog > 0 && s.commit <= l.floors[s.tenant]: // dropped at the target that the tenant got then
		return arrived
	case len(at) == 0 && (s.bad || l.maxBacklog > 0 || !own && slices.Contains(l.defaults, "")):
		return missing
	case len(at) > 1 && !atOwn && s.commit <= l.floors[""]: // in flight when the default changed
		return arrived
	case len(at) > 1 && atOwn && atDefault && s.commit <= l.floors[s.tenant]:
		return arrived
	}
	return wrong
}

// check compares what each receiver has with what was appended, and with the accounts.
func (l *life) check() {
	st, err := queues.OfflineStatus(l.dir, time.Now())
	if err != nil {
		l.t.Fatal(err)
	}
	log, err := queues.OpenOffline(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	starts := log.Members(l.name())
	if err := log.Close(); err != nil {
		l.t.Error(err)
	}
	for _, x := range l.to.wrong {
		l.t.Error(x)
	}
	if len(l.to.early) > 0 && !l.liveFirst && !l.mayReject() {
		l.t.Errorf("%d samples came after newer ones of their series, the first is %s", len(l.to.early), l.to.early[0])
	}
	told := 0
	for n, s := range l.to.samples {
		at := l.to.of(n)
		from, own := starts[s.tenant]
		own = own && s.commit > from
		if l.fate(s, l.excused[n], own, at) != wrong {
			continue
		}
		if told++; told < 6 {
			l.t.Errorf("sample %d, %s, is at %q; its own target: %t, from %d", n, s, at, own, from)
		}
	}
	for _, s := range st.Targets {
		l.account(s)
	}
}

// account compares the account of a target with what its receiver has. All samples of the log are in the list, so a target's begin behind the
// appended ones.
func (l *life) account(s status.TargetStatus) {
	tenant, own := queue.MemberOf(l.name(), s.Name)
	if !own && s.Name != l.name() {
		return
	}
	var mine, has, both uint64 // of the default target, what its receiver has
	start := uint64(len(l.to.samples)) - s.Ledger.Appended
	for n := start; n < uint64(len(l.to.samples)); n++ {
		x, at := l.to.samples[n], l.to.of(int(n))
		if len(at) > 1 {
			both++
		}
		switch {
		case own && x.tenant == tenant:
			mine++
			if slices.Contains(at, tenant) {
				has++
			}
		case own:
		case slices.ContainsFunc(at, l.isDefault):
			mine++
			has++
		case len(at) == 0:
			mine++
		}
	}
	others := s.Ledger.Appended - mine
	d, lost := s.Ledger.Delivered, s.Ledger.Lost+s.Ledger.Dropped["unconfirmed"]
	no := !s.Ledger.Balanced || s.Ledger.Pending > 0
	no = no || d > has || own && (mine-has > lost || s.Ledger.Filtered > others)
	no = no || !l.mayReject() && (own || both == 0) && (d != has || mine-has != lost || s.Ledger.Filtered != others)
	if no {
		l.t.Errorf("%s: of %d samples it has %d, and %d are of others: %+v", s.Name, mine, has, others, s.Ledger)
	}
}
