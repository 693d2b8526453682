package targets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"hwsagent/agent/status"
	"hwsagent/internal/meter"
	"hwsagent/internal/watchdog"
	"hwsagent/remotewrite"
	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/deadletter"
	rwmetrics "hwsagent/remotewrite/metrics"
	"hwsagent/wal"
)

// target is a running remote_write entry: its client, its reader of the log, and the queue between them.
type Target struct {
	entry
	url     string // for people: without user, password and query
	client  *client.Client
	reader  *wal.Reader
	letters *deadletter.Store
	queue   *remotewrite.Queue
	metrics *rwmetrics.Target
	ledgers *ledgers
	tenants func() *status.TenantsStatus
	rate    meter.Rate
	paused  time.Time // since when the target is paused by command; zero: the queue runs

	cancel context.CancelFunc
	done   chan struct{} // closed when the queue has ended
}

// maxSplay bounds a queue's random wait before its first request. It spreads the requests of hosts that a roll-out
// restarts in the same second. It is no longer than a sample may wait for its batch to fill.
const maxSplay = 5 * time.Second

// close closes everything that open opened.
func (t *Target) close() error {
	var errs []error
	if t.client != nil {
		t.client.Close()
	}
	if t.reader != nil {
		errs = append(errs, t.reader.Close())
	}
	if t.letters != nil {
		errs = append(errs, t.letters.Close())
	}
	if t.metrics != nil {
		t.metrics.Unregister()
	}
	return errors.Join(errs...)
}

// start runs the target's queue until ctx ends or stop is called.
func (t *Target) start(ctx context.Context) {
	ctx, t.cancel = context.WithCancel(ctx)
	watchdog.Do(ctx, t.part(), t.startParts)
}

func (t *Target) startParts(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { t.client.Run(ctx) })
	if t.paused.IsZero() {
		parts.Go(func() { t.queue.Run(ctx) })
	} else {
		t.metrics.SetState(status.StatePaused)
		parts.Go(func() { t.watchOldest(ctx) })
	}
	parts.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.client.CredentialsChanged():
				t.queue.CredentialsChanged()
			}
		}
	})
	go func() {
		defer close(t.done)
		parts.Wait()
	}()
}

// watchOldest replaces the queue of a paused target: it only reads the oldest pending sample, so that the status has its age.
func (t *Target) watchOldest(ctx context.Context) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		lane := t.reader.Lane
		if _, ok := t.reader.Backlog().Reach(); ok {
			lane = t.reader.Backlog()
		}
		e, err := lane.Next(ctx)
		end, wait := uint64(0), true
		switch {
		case errors.Is(err, wal.ErrCaughtUp):
			lane.Rewind()
		case err != nil:
			return // ctx or the log ended
		default:
			end, wait = e.End.Commit, e.Count() > 0
		}
		if wait {
			lane.Release() // a pause may last for weeks
		}
		for wait {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			// Wait until the log's budget removes it.
			sp := t.reader.Savepoint()
			wait = sp.Acked().Commit < end
		}
	}
}

// stop ends the queue, saves the savepoint and closes everything.
func (t *Target) stop(logger *slog.Logger) {
	watchdog.Do(context.Background(), t.part(), func(context.Context) {
		if t.cancel != nil {
			t.cancel()
			<-t.done
		}
		if err := t.close(); err != nil {
			logger.Error("The target did not close cleanly", "target", t.name, "err", err)
		}
	})
}

// part returns the target's name in the list of the program's parts.
func (t *Target) part() string { return fmt.Sprintf("target %q", t.name) }
