package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"hwsagent/agent/queues"
	"hwsagent/wal/queue"
)

// livesSteps are all things that happen.
var livesSteps = []string{
	"kill", "stop", "entry removed", "entry put back", "entry changed", "entry renamed", queues.ActionPause, queues.ActionResume,
	"queue dropped", "queue skipped", "savepoints refused", "kill amid a change",
}

func (l *life) count(what string) { l.to.set(func() { l.to.fired[what]++ }) }

// step lets one thing happen.
func (l *life) step() {
	r := l.rnd
	switch r.IntN(12) {
	case 0, 1:
		l.count("kill")
		l.commit() // perhaps the first samples of a tenant
		time.Sleep(time.Duration(r.IntN(2)*r.IntN(1000)) * time.Millisecond)
		l.kill()
		l.start()
	case 2:
		l.count("stop")
		l.unblock()
		if err := l.stop(); err != nil {
			l.t.Errorf("the agent ended with %v", err)
		}
		l.start()
	case 3:
		l.unblock()
		l.absent = !l.absent
		l.count(map[bool]string{true: "entry removed", false: "entry put back"}[l.absent])
		l.reload()
	case 4:
		l.unblock()
		if !l.absent {
			l.count("entry changed")
			l.change()
			if r.IntN(4) == 0 && l.toDefault() != "b" { // which could become a tenant with a target of its own
				l.defaults = append(l.defaults, []string{"", "rest", "others"}[r.IntN(3)])
			}
			l.reload()
		}
	case 5:
		l.unblock()
		if !l.absent {
			l.adopt()
		}
	case 6:
		l.unblock()
		l.pause()
	case 7:
		l.unblock()
		if l.absent {
			l.drop()
		}
	case 10:
		l.unblock()
		l.skip()
	case 8, 9:
		if l.free == nil {
			l.count("savepoints refused")
			l.block()
		} else {
			l.unblock()
		}
	}
}

// reload uses the configuration. Without the entry and its queue, no target gets what comes meanwhile.
func (l *life) reload() {
	if !l.absent && l.dropped {
		for n := range l.to.samples {
			l.excused[n] = true
		}
		l.dropped = false
	}
	l.looked()
	l.configure()
	if l.amid(func(a *Agent) error { return a.Reload() }) {
		l.start()
	}
}

// amid makes a change, and kills the agent meanwhile at times.
func (l *life) amid(change func(a *Agent) error) (killed bool) {
	if l.rnd.IntN(4) > 0 {
		if err := change(l.Agent); err != nil {
			l.t.Fatal(err)
		}
		return false
	}
	l.count("kill amid a change")
	done, a := make(chan error, 1), l.Agent
	go func() { done <- change(a) }()
	time.Sleep(time.Duration(l.rnd.IntN(1000)) * time.Millisecond)
	l.kill()
	<-done
	return true
}

func (l *life) adopt() {
	l.count("entry renamed")
	l.looked()
	from := l.name()
	l.names = append(l.names, fmt.Sprintf("m%d", len(l.names)))
	l.configure()
	adopt := func(a *Agent) error {
		_, err := a.manage(queues.Request{Action: queues.ActionAdopt, Target: from, To: l.name()})
		return err
	}
	if l.amid(adopt) {
		l.rename(from, l.name())
		l.start()
	}
}

// rename finishes what a killed agent began, as an operator does.
func (l *life) rename(from, to string) {
	log, err := queues.OpenOffline(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	q := queues.Store{Log: log, Storage: l.dir}
	if slices.Contains(q.Names(), from) {
		err = q.Adopt(&queues.Change{}, from, to)
	}
	var left []string
	for id := range log.Members(from) {
		left = append(left, id)
	}
	if err := errors.Join(err, q.AdoptTenants(left, from, to), log.Close()); err != nil {
		l.t.Fatal(err)
	}
}

// queues returns the names of the targets that the log has.
func (l *life) queues() []string { return queues.Store{Log: l.log, Storage: l.dir}.Names() }

func (l *life) pause() {
	names := l.queues()
	if len(names) == 0 {
		return
	}
	name := names[l.rnd.IntN(len(names))]
	action := queues.ActionPause
	if !l.log.PausedSince(name).IsZero() {
		action = queues.ActionResume
	}
	l.count(action)
	if _, err := l.manage(queues.Request{Action: action, Target: name}); err != nil && slices.Contains(l.queues(), name) {
		l.t.Fatal(err)
	}
}

// excuse no longer asks for the waiting samples of a queue.
func (l *life) excuse(name string) {
	tenant, own := queue.MemberOf(l.name(), name)
	for n, s := range l.to.samples {
		if !own || s.tenant == tenant {
			l.excused[n] = true
		}
	}
}

func (l *life) skip() {
	names := l.queues()
	if len(names) == 0 || l.rnd.IntN(3) > 0 {
		return
	}
	name := names[l.rnd.IntN(len(names))]
	l.count("queue skipped")
	l.excuse(name)
	r := queues.Request{Action: queues.ActionSkip, Target: name, Before: time.Now()}
	if _, err := l.Agent.skip(l.t.Context(), r, func(int64, int64) {}); err != nil && slices.Contains(l.queues(), name) {
		l.t.Fatal(err)
	}
}

func (l *life) drop() {
	names := l.queues()
	if len(names) == 0 {
		return
	}
	name := names[l.rnd.IntN(len(names))]
	l.count("queue dropped")
	l.dropped = l.dropped || name == l.name()
	l.excuse(name)
	if _, err := l.manage(queues.Request{Action: queues.ActionDrop, Target: name}); err != nil {
		l.t.Fatal(err)
	}
}
