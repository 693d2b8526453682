package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"hwsagent/agent/events"
	"hwsagent/web"
)

// lookEvery is how often the status is looked at for events, and they become durable. What comes and goes between is none.
const lookEvery = 5 * time.Second

// openEvents reads what is remembered. Without it the agent runs as well: losses are in the ledgers.
func (a *Agent) openEvents() {
	var err error
	if a.events, err = events.Open(a.o.StoragePath); err != nil {
		a.logger.Error("The events of the last 24 hours cannot be read; what the ledgers have lost is told as lost at an unknown time", "err", err)
	}
	a.events.Begin(time.Now(), Version)
}

// watchEvents notes events until ctx ends.
func (a *Agent) watchEvents(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var failing bool
	for ctx.Err() == nil {
		a.events.Observe(a.Status())
		err := a.events.Save(time.Now())
		if err != nil && !failing {
			a.logger.Error("The events of the last 24 hours cannot be saved; trying again until they can", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// endEvents notes that the agent has stopped in order, and what was lost until then. That targets are
// stopped by then is no event.
func (a *Agent) endEvents() {
	a.Status() // it takes the account of losses
	a.events.End(time.Now())
}

// saveEvents saves the last of them: after the log is closed, which matters more.
func (a *Agent) saveEvents() {
	if err := a.events.Save(time.Now()); err != nil {
		a.logger.Error("The last events cannot be saved", "err", err)
	}
}

// shownEvents are the events of the last 24 hours as the page takes them.
func (a *Agent) shownEvents() []web.Event {
	all := a.events.Events(time.Now())
	shown := make([]web.Event, len(all))
	for i, e := range all {
		shown[i] = web.Event(e)
	}
	return shown
}

// acknowledge ends the warnings of losses, durably.
func (a *Agent) acknowledge() (samples uint64, err error) {
	a.Status() // losses of this moment count
	samples = a.events.Acknowledge(time.Now())
	if err := a.events.Save(time.Now()); err != nil {
		return samples, fmt.Errorf("acknowledged until the agent ends, but not durably: %w", err)
	}
	return samples, nil
}

// EventList is what happened in the last 24 hours, oldest first.
type EventList struct {
	Schema  int            `json:"schema"`  // 1
	Running bool           `json:"running"` // false: read from the directory of an agent that is down
	Events  []events.Event `json:"events"`
}

// EventsAck is what an acknowledgement did.
type EventsAck struct {
	Schema  int    `json:"schema"` // 1
	Running bool   `json:"running"`
	Samples uint64 `json:"samples"` // of losses that are no warning any more
}

// FetchEvents asks the agent that runs on the storage directory what happened, or reads it there.
func FetchEvents(ctx context.Context, storage string) (EventList, error) {
	list := EventList{}
	if err := askAgent(ctx, storage, "/control/events/list", &list); !errors.Is(err, ErrNotRunning) {
		return list, err
	}
	now := time.Now()
	if _, err := OfflineStatus(storage, now); err != nil {
		return list, err
	}
	j, err := events.Open(storage)
	if err != nil {
		return list, err
	}
	return EventList{Schema: 1, Events: j.Events(now)}, nil
}

// AcknowledgeEvents ends the warnings of losses so far, by the agent that runs on the storage directory or in it.
func AcknowledgeEvents(ctx context.Context, storage string) (EventsAck, error) {
	var ack EventsAck
	if err := askAgent(ctx, storage, "/control/events/ack", &ack); !errors.Is(err, ErrNotRunning) {
		return ack, err
	}
	now := time.Now()
	s, err := OfflineStatus(storage, now)
	if err != nil {
		return ack, err
	}
	j, err := events.Open(storage)
	if err != nil {
		return ack, err
	}
	j.Account(s)
	ack = EventsAck{Schema: 1, Samples: j.Acknowledge(now)}
	return ack, j.Save(now)
}

// WriteText prints the events for people.
func (l EventList) WriteText(w io.Writer) error {
	if len(l.Events) == 0 {
		_, err := fmt.Fprintln(w, "nothing happened in the last 24 hours")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tEVENT\tOF\tWHAT")
	for _, e := range l.Events {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", e.Time.Local().Format(time.DateTime), e.Kind, printable(e.Subject), printable(e.Text))
	}
	return table.Flush()
}
