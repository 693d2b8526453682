package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"hwsagent/agent/control"
	"hwsagent/agent/events"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/internal/text"
	"hwsagent/internal/version"
)

// lookEvery is how often events are taken from the status and made durable. A condition that begins and ends in between
// is not recorded.
const lookEvery = 5 * time.Second

// openEvents reads the journal of events. The agent also runs without it: the ledgers have all losses.
func (a *Agent) openEvents() {
	var err error
	if a.events, err = events.Open(a.o.StoragePath); err != nil {
		a.logger.Error("Cannot read the events of the last 24 hours; losses in the ledgers are shown without their time", "err", err)
	}
	a.events.Begin(time.Now(), version.Version)
}

// watchEvents records events until ctx ends.
func (a *Agent) watchEvents(ctx context.Context) {
	ticks, stop := a.beat.Every(lookEvery)
	defer stop()
	var failing bool
	for ctx.Err() == nil {
		a.events.Observe(a.Status())
		err := a.events.Save(time.Now())
		if err != nil && !failing {
			a.logger.Error("Cannot save the events of the last 24 hours; retrying", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

// endEvents records the orderly stop of the agent, and the losses up to it. Targets that are stopped by then cause no
// event.
func (a *Agent) endEvents() {
	a.Status() // this records losses
	a.events.End(time.Now())
}

// saveEvents saves the last events, after the log is closed, which matters more.
func (a *Agent) saveEvents() {
	if err := a.events.Save(time.Now()); err != nil {
		a.logger.Error("Cannot save the last events", "err", err)
	}
}

// shownEvents returns the events of the last 24 hours for the page.
func (a *Agent) shownEvents() []status.Event {
	all := a.events.Events(time.Now())
	shown := make([]status.Event, len(all))
	for i, e := range all {
		shown[i] = status.Event(e)
	}
	return shown
}

// acknowledge ends the warnings about losses, durably.
func (a *Agent) acknowledge() (EventsAck, error) {
	ack := EventsAck{Schema: 1, Running: true, Losses: warned(a.Status().Losses)} // with the losses up to now
	ack.Samples = a.events.Acknowledge(time.Now())
	if err := a.events.Save(time.Now()); err != nil {
		return ack, fmt.Errorf("acknowledged until the agent stops, but not durably: %w", err)
	}
	return ack, nil
}

// warned returns the number of losses that cause a warning.
func warned(all []status.LossStatus) (n int) {
	for _, l := range all {
		if !l.Acknowledged {
			n++
		}
	}
	return n
}

// EventList holds the events of the last 24 hours, oldest first.
type EventList struct {
	Schema  int            `json:"schema"`  // 1
	Running bool           `json:"running"` // false: read from the storage directory of a stopped agent
	Events  []events.Event `json:"events"`
}

// EventsAck is the outcome of an acknowledgement.
type EventsAck struct {
	Schema  int    `json:"schema"` // 1
	Running bool   `json:"running"`
	Losses  int    `json:"losses"`  // whose warnings ended
	Samples uint64 `json:"samples"` // of these losses; 0 if unknown
}

// FetchEvents asks the agent that runs on the storage directory for its events, or reads them there if no agent runs. If
// their file cannot be read, it returns an error and what the ledgers tell.
func FetchEvents(ctx context.Context, storage string) (EventList, error) {
	list := EventList{}
	if err := control.Call(ctx, storage, "/control/events/list", &list); !errors.Is(err, control.ErrNotRunning) {
		return list, err
	}
	now := time.Now()
	s, err := queues.OfflineStatus(storage, now)
	if err != nil {
		return list, err
	}
	j, err := events.Open(storage)
	if err != nil {
		err = fmt.Errorf("%w; the ledgers still have the losses of targets, without their time. `hwsagent events ack`, or the next start of the agent, replaces the file", err)
	}
	j.Account(s) // the file may lack the last losses before a kill
	return EventList{Schema: 1, Events: j.Events(now)}, err
}

// AcknowledgeEvents ends the warnings about losses so far, through the agent that runs on the storage directory or in
// the directory itself.
func AcknowledgeEvents(ctx context.Context, storage string) (EventsAck, error) {
	var ack EventsAck
	if err := control.Call(ctx, storage, "/control/events/ack", &ack); !errors.Is(err, control.ErrNotRunning) {
		return ack, err
	}
	now := time.Now()
	s, err := queues.OfflineStatus(storage, now)
	if err != nil {
		return ack, err
	}
	j, _ := events.Open(storage) // a damaged file is replaced, as by a starting agent: the ledgers have the losses of targets
	ack = EventsAck{Schema: 1, Losses: warned(j.Account(s)), Samples: j.Acknowledge(now)}
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
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", e.Time.Local().Format(time.DateTime), e.Kind, text.Printable(e.Subject), text.Printable(e.Text))
	}
	return table.Flush()
}
