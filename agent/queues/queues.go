package queues

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/events"
	"hwsagent/agent/history"
	"hwsagent/agent/status"
	"hwsagent/receivers/pushgateway"
	"hwsagent/remotewrite/deadletter"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// Store is the state of targets on disk: their positions in the log, and their dead letters. A target must not run while
// its state changes.
type Store struct {
	Log     *wal.Log
	Storage string
}

// Explain adds helpful context to errors of the log.
func (q Store) Explain(name string, err error) error {
	switch {
	case errors.Is(err, wal.ErrNoTarget):
		text := fmt.Sprintf("the log has no queue of %q", name)
		if names := q.Names(); len(names) > 0 {
			text += "; it has those of " + strings.Join(names, ", ")
		}
		return fmt.Errorf("%w: %s", config.ErrNoSuchTarget, text)
	case errors.Is(err, wal.ErrWanted):
		return fmt.Errorf("%w: it is in the configuration", err)
	}
	return err
}

// Names returns the targets that have a queue in the log.
func (q Store) Names() (names []string) {
	in, err := wal.Glance(q.Storage)
	if err != nil {
		return nil // the caller reports another error
	}
	for _, t := range in.Targets {
		names = append(names, t.Name)
	}
	return names
}

func (q Store) account(c *Change) {
	l, _ := q.Log.Account(c.Target)
	c.Ledger, c.PausedSince = Ledger(l), q.Log.PausedSince(c.Target)
}

// Pause makes a pause or its end durable.
func (q Store) Pause(c *Change) error {
	if err := q.Log.Pause(c.Target, c.Action == ActionPause); err != nil {
		return q.Explain(c.Target, err)
	}
	q.account(c)
	return nil
}

// LookBefore finds the samples to skip, and the mark at which they end. It has to read them all, which takes a minute
// for a few gigabytes; meanwhile it calls progress with the bytes read so far, and the most that it may have to read.
func (q Store) LookBefore(ctx context.Context, c *Change, before time.Time, progress func(read, of int64)) (end wal.Mark, err error) {
	s, err := q.Log.Before(ctx, c.Target, before, progress)
	if err != nil {
		return end, q.Explain(c.Target, err)
	}
	c.Samples, c.Bytes, c.Oldest, c.Newest, c.GoesOn = s.Samples, s.Bytes, s.From, s.To, s.Rest
	q.account(c)
	return s.End, nil
}

// Skip gives up the samples before end that have not been delivered meanwhile.
func (q Store) Skip(c *Change, end wal.Mark) (err error) {
	if c.Samples, err = q.Log.Skip(c.Target, end); err != nil {
		return q.Explain(c.Target, err)
	}
	q.account(c)
	return nil
}

// Adopt gives the queue and the dead letters of from to another target.
func (q Store) Adopt(c *Change, from, to string) error {
	c.Target, c.From = to, from
	waits, _ := q.Log.Account(from)
	if err := q.Log.Adopt(from, to); err != nil {
		if errors.Is(err, wal.ErrOwnData) {
			own, _ := q.Log.Account(to)
			return fmt.Errorf("%w: it has had %d samples, of which %d are pending. Two queues cannot be merged: "+
				"put the entry of %q back until its queue is empty, or send the samples that %q lacks with "+
				"`hwsagent wal replay --target %s`, and then drop %q", err, own.Appended, own.Pending, from, to, to, from)
		}
		return q.Explain(from, err)
	}
	if err := q.moveLetters(from, to); err != nil {
		return errors.Join(err, q.Log.Adopt(to, from)) // neither moves without the other
	}
	c.Samples = waits.Pending
	q.account(c)
	return nil
}

// AdoptTenants adopts the queues of an entry's tenants. A queue that cannot be moved stays under its former name, as
// that of an unconfigured target.
func (q Store) AdoptTenants(ids []string, from, to string) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, q.Adopt(&Change{}, queue.Member(from, id), queue.Member(to, id)))
	}
	return errors.Join(errs...)
}

// MoveLosses lets the recorded losses of an entry and of its tenants follow their queues to the entry's new name. A queue
// that could not be moved keeps its losses.
func (q Store) MoveLosses(j *events.Journal, tenants []string, from, to string) {
	left := q.Names()
	move := func(from, to string) {
		if !slices.Contains(left, from) {
			j.Rename(from, to)
		}
	}
	move(from, to)
	for _, id := range tenants {
		move(queue.Member(from, id), queue.Member(to, id))
	}
}

// moveLetters moves the dead letters of a target to its new name, unless that name already has some.
func (q Store) moveLetters(from, to string) error {
	there, err := deadletter.List(deadletter.Dir(q.Storage, to))
	if err != nil || len(there) > 0 {
		return err
	}
	if err := deadletter.Remove(deadletter.Dir(q.Storage, to)); err != nil {
		return err
	}
	err = os.Rename(deadletter.Dir(q.Storage, from), deadletter.Dir(q.Storage, to))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("move dead letters: %w", err)
	}
	return nil
}

// Drop removes the queue of a target that is not configured, its account in the journal, and its dead letters. If the
// letters cannot be read, they are not counted, and the change has the reason.
func (q Store) Drop(c *Change, j *events.Journal) error {
	c.PausedSince = q.Log.PausedSince(c.Target)
	l, err := q.Log.Forget(c.Target)
	if err != nil {
		return q.Explain(c.Target, err)
	}
	j.Forget(c.Target)
	c.Ledger, c.Samples = Ledger(l), l.Pending
	dir := deadletter.Dir(q.Storage, c.Target)
	letters, unread := deadletter.List(dir)
	if c.Letters = len(letters); unread != nil {
		c.UnreadLetters = unread.Error()
	}
	if err := deadletter.Remove(dir); err != nil {
		return fmt.Errorf("the queue of %q, with %d pending samples, is removed, but its dead letters are not: %w: remove the directory %s",
			c.Target, c.Samples, errors.Join(err, unread), dir)
	}
	return nil
}

// Clear removes the dead letters of a target, through its open store if it has one.
func (q Store) Clear(c *Change, open *deadletter.Store) (err error) {
	if open != nil {
		c.Letters, err = open.Clear()
	} else {
		dir := deadletter.Dir(q.Storage, c.Target)
		if _, statErr := os.Stat(dir); statErr != nil && !slices.Contains(q.Names(), c.Target) {
			return q.Explain(c.Target, wal.ErrNoTarget)
		}
		letters, listErr := deadletter.List(dir)
		if listErr != nil {
			return listErr
		}
		c.Letters, err = len(letters), deadletter.Remove(dir)
	}
	q.account(c)
	return err
}

// ProbeFolder is the directory of the storage path with what probes keep across restarts.
const ProbeFolder = "probe_state"

// BesideLog returns the directories of the storage path that are not part of the log.
func BesideLog() []string {
	return []string{deadletter.Folder, pushgateway.Folder, history.Folder, ProbeFolder}
}

// Ledger returns the account of a queue for the status.
func Ledger(l queue.Ledger) status.LedgerStatus {
	s := status.LedgerStatus{
		Appended: l.Appended, Delivered: l.Delivered, Filtered: l.Filtered,
		Lost: l.Lost(), Pending: l.Pending, Balanced: l.Balanced(),
	}
	for r, n := range l.Dropped {
		if n > 0 {
			if s.Dropped == nil {
				s.Dropped = map[string]uint64{}
			}
			s.Dropped[queue.Reason(r).String()] = n
		}
	}
	return s
}
