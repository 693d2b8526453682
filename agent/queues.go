package agent

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
	"hwsagent/remotewrite/deadletter"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// queues is the state of targets on disk: their positions in the log, and their dead letters.
type queues struct {
	log     *wal.Log
	storage string
}

// explain adds helpful context to errors of the log.
func (q queues) explain(name string, err error) error {
	switch {
	case errors.Is(err, wal.ErrNoTarget):
		text := fmt.Sprintf("no such target: the log has no queue of %q", name)
		if names := q.names(); len(names) > 0 {
			text += "; it has those of " + strings.Join(names, ", ")
		}
		return &plainError{text, config.ErrNoSuchTarget}
	case errors.Is(err, wal.ErrWanted):
		return fmt.Errorf("%w: it is in the configuration", err)
	}
	return err
}

// names returns the targets that have a queue in the log.
func (q queues) names() (names []string) {
	in, err := wal.Glance(q.storage)
	if err != nil {
		return nil // the caller reports another error
	}
	for _, t := range in.Targets {
		names = append(names, t.Name)
	}
	return names
}

func (q queues) account(c *TargetChange) {
	l, _ := q.log.Account(c.Target)
	c.Ledger, c.PausedSince = ledgerStatus(l), q.log.PausedSince(c.Target)
}

// pause makes a pause or its end durable.
func (q queues) pause(c *TargetChange) error {
	if err := q.log.Pause(c.Target, c.Action == ActionPause); err != nil {
		return q.explain(c.Target, err)
	}
	q.account(c)
	return nil
}

// lookBefore finds the samples to skip, and the mark at which they end. It has to read them all, which takes a minute
// for a few gigabytes; meanwhile it calls progress with the bytes read so far, and the most that it may have to read.
func (q queues) lookBefore(ctx context.Context, c *TargetChange, before time.Time, progress func(read, of int64)) (end wal.Mark, err error) {
	s, err := q.log.Before(ctx, c.Target, before, progress)
	if err != nil {
		return end, q.explain(c.Target, err)
	}
	c.Samples, c.Bytes, c.Oldest, c.Newest, c.GoesOn = s.Samples, s.Bytes, s.From, s.To, s.Rest
	q.account(c)
	return s.End, nil
}

// skip gives up the samples before end that have not been delivered meanwhile.
func (q queues) skip(c *TargetChange, end wal.Mark) (err error) {
	if c.Samples, err = q.log.Skip(c.Target, end); err != nil {
		return q.explain(c.Target, err)
	}
	q.account(c)
	return nil
}

// adopt gives the queue and the dead letters of from to another target.
func (q queues) adopt(c *TargetChange, from, to string) error {
	c.Target, c.From = to, from
	waits, _ := q.log.Account(from)
	if err := q.log.Adopt(from, to); err != nil {
		if errors.Is(err, wal.ErrOwnData) {
			own, _ := q.log.Account(to)
			return fmt.Errorf("%w: it has had %d samples, of which %d are pending. Two queues cannot be merged: "+
				"put the entry of %q back until its queue is empty, or send the samples that %q lacks with "+
				"`hwsagent wal replay --target %s`, and then drop %q", err, own.Appended, own.Pending, from, to, to, from)
		}
		return q.explain(from, err)
	}
	if err := q.moveLetters(from, to); err != nil {
		return errors.Join(err, q.log.Adopt(to, from)) // neither moves without the other
	}
	c.Samples = waits.Pending
	q.account(c)
	return nil
}

// adoptTenants adopts the queues of an entry's tenants. A queue that cannot be moved stays under its former name, as
// that of an unconfigured target.
func (q queues) adoptTenants(ids []string, from, to string) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, q.adopt(&TargetChange{}, queue.Member(from, id), queue.Member(to, id)))
	}
	return errors.Join(errs...)
}

// moveLosses lets the recorded losses of an entry and of its tenants follow their queues to the entry's new name. A queue
// that could not be moved keeps its losses.
func (q queues) moveLosses(j *events.Journal, tenants []string, from, to string) {
	left := q.names()
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
func (q queues) moveLetters(from, to string) error {
	there, err := deadletter.List(letterDir(q.storage, to))
	if err != nil || len(there) > 0 {
		return err
	}
	if err := deadletter.Remove(letterDir(q.storage, to)); err != nil {
		return err
	}
	err = os.Rename(letterDir(q.storage, from), letterDir(q.storage, to))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("move dead letters: %w", err)
	}
	return nil
}

// drop removes the queue of a target that is not configured, its account in the journal, and its dead letters. If the
// letters cannot be read, they are not counted, and the change has the reason.
func (q queues) drop(c *TargetChange, j *events.Journal) error {
	c.PausedSince = q.log.PausedSince(c.Target)
	l, err := q.log.Forget(c.Target)
	if err != nil {
		return q.explain(c.Target, err)
	}
	j.Forget(c.Target)
	c.Ledger, c.Samples = ledgerStatus(l), l.Pending
	dir := letterDir(q.storage, c.Target)
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

// clear removes the dead letters of a target, through its open store if it has one.
func (q queues) clear(c *TargetChange, open *deadletter.Store) (err error) {
	if open != nil {
		c.Letters, err = open.Clear()
	} else {
		dir := letterDir(q.storage, c.Target)
		if _, statErr := os.Stat(dir); statErr != nil && !slices.Contains(q.names(), c.Target) {
			return q.explain(c.Target, wal.ErrNoTarget)
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
