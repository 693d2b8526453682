package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hwsagent/remotewrite"
	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/deadletter"
	rwmetrics "hwsagent/remotewrite/metrics"
	"hwsagent/wal"
	"hwsagent/watchdog"
	"hwsagent/web"
)

// target is one remote_write entry at work: its client, its end of the log and the
// queue between them.
type target struct {
	planned
	url     string // for people: without user, password and query
	client  *client.Client
	reader  *wal.Reader
	letters *deadletter.Store
	queue   *remotewrite.Queue
	metrics *rwmetrics.Target
	rate    rate
	paused  time.Time // since when a person wants nothing to be sent; zero: the queue runs

	cancel context.CancelFunc
	done   chan struct{} // closed when the queue has ended
}

// maxSplay bounds how long a queue waits before its first request, at random: hosts that a
// roll-out restarts in one second are spread over it. A sample may wait as long for its
// batch to fill.
const maxSplay = 5 * time.Second

// lettersDir is where the dead letters of all targets are kept, below the storage path.
const lettersDir = "deadletters"

// besideLog are the directories of the storage path that are not the log's.
func besideLog() []string { return []string{lettersDir, pushgatewayDir, historyDir} }

// maxNameBytes bounds the name of a directory on ext4, xfs, btrfs, APFS and NTFS.
const maxNameBytes = 255

// letterDir is the directory of a target's dead letters. The name is escaped, its dots
// too, so that it is one element of a path, whatever it is. So is the first letter of a name
// that Windows keeps for a device, such as con or lpt1: no directory can have it there. A name
// that would be too long for a directory, such as that of a tenant in Chinese, becomes "%~" and its
// SHA-256: no escaped name begins so.
func letterDir(storage, target string) string {
	name := strings.ReplaceAll(url.QueryEscape(target), ".", "%2E")
	if isDevice(name) {
		name = fmt.Sprintf("%%%02X", name[0]) + name[1:]
	}
	if len(name) > maxNameBytes {
		sum := sha256.Sum256([]byte(target))
		name = "%~" + hex.EncodeToString(sum[:])
	}
	return filepath.Join(storage, lettersDir, name)
}

// isDevice reports whether Windows keeps a name, which has no dot, for a device. See
// https://learn.microsoft.com/windows/win32/fileio/naming-a-file.
func isDevice(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(name) == 4 && (name[:3] == "com" || name[:3] == "lpt") && '0' <= name[3] && name[3] <= '9'
}

// close closes everything that open has opened.
func (t *target) close() error {
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
	t.metrics.Unregister()
	return errors.Join(errs...)
}

// start runs the target's queue until ctx ends or stop is called.
func (t *target) start(ctx context.Context, logger *slog.Logger) {
	ctx, t.cancel = context.WithCancel(ctx)
	watchdog.Do(ctx, t.part(), func(ctx context.Context) { t.startParts(ctx, logger) })
}

func (t *target) startParts(ctx context.Context, logger *slog.Logger) {
	var g errgroup.Group
	g.Go(func() error { return t.client.Run(ctx) })
	if t.paused.IsZero() {
		g.Go(func() error { return t.queue.Run(ctx) })
	} else {
		t.metrics.SetState(web.StatePaused)
		g.Go(func() error { return t.rest(ctx) })
	}
	g.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-t.client.CredentialsChanged():
				t.queue.CredentialsChanged()
			}
		}
	})
	go func() {
		defer close(t.done)
		if err := g.Wait(); err != nil && ctx.Err() == nil {
			logger.Error("The target stopped; its data stays in the log", "target", t.name, "err", err)
		}
	}()
}

// rest stands in for the queue of a paused target: it looks at the oldest sample that
// waits, so that the status tells how old it is, and does nothing else.
func (t *target) rest(ctx context.Context) error {
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
			return nil // ctx's end, or the log's
		default:
			end, wait = e.End.Commit, e.Count() > 0
		}
		for wait {
			select {
			case <-ctx.Done():
				return nil
			case <-look.C:
			}
			// Until the budget takes it.
			sp := t.reader.Savepoint()
			wait = sp.Acked().Commit < end
		}
	}
}

// stop ends the queue, saves the savepoint and closes everything.
func (t *target) stop(logger *slog.Logger) {
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

// part is the name of the target among the parts of the program.
func (t *target) part() string { return fmt.Sprintf("target %q", t.name) }
