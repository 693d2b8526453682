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
	"sync"
	"time"

	"hwsagent/agent/web"
	"hwsagent/internal/watchdog"
	"hwsagent/remotewrite"
	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/deadletter"
	rwmetrics "hwsagent/remotewrite/metrics"
	"hwsagent/wal"
)

// target is a running remote_write entry: its client, its reader of the log, and the queue between them.
type target struct {
	planned
	url     string // for people: without user, password and query
	client  *client.Client
	reader  *wal.Reader
	letters *deadletter.Store
	queue   *remotewrite.Queue
	metrics *rwmetrics.Target
	rate    rate
	paused  time.Time // since when the target is paused by command; zero: the queue runs

	cancel context.CancelFunc
	done   chan struct{} // closed when the queue has ended
}

// maxSplay bounds a queue's random wait before its first request. It spreads the requests of hosts that a roll-out
// restarts in the same second. It is no longer than a sample may wait for its batch to fill.
const maxSplay = 5 * time.Second

// lettersDir holds the dead letters of all targets, below the storage path.
const lettersDir = "deadletters"

// besideLog returns the directories of the storage path that are not part of the log.
func besideLog() []string { return []string{lettersDir, pushgatewayDir, historyDir} }

// maxNameBytes is the longest name of a directory on ext4, xfs, btrfs, APFS and NTFS.
const maxNameBytes = 255

// letterDir returns the directory of a target's dead letters. It escapes the name, including dots, so that it is always
// a single path element. It also escapes the first letter of names that Windows reserves for devices, such as con or
// lpt1, because no directory can have them. A name that would be too long for a directory, such as that of a tenant in
// Chinese, becomes "%~" and its SHA-256: no escaped name begins so.
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

// isDevice reports whether Windows reserves a name without a dot for a device. See
// https://learn.microsoft.com/windows/win32/fileio/naming-a-file.
func isDevice(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(name) == 4 && (name[:3] == "com" || name[:3] == "lpt") && '0' <= name[3] && name[3] <= '9'
}

// close closes everything that open opened.
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
	if t.metrics != nil {
		t.metrics.Unregister()
	}
	return errors.Join(errs...)
}

// start runs the target's queue until ctx ends or stop is called.
func (t *target) start(ctx context.Context) {
	ctx, t.cancel = context.WithCancel(ctx)
	watchdog.Do(ctx, t.part(), t.startParts)
}

func (t *target) startParts(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { t.client.Run(ctx) })
	if t.paused.IsZero() {
		parts.Go(func() { t.queue.Run(ctx) })
	} else {
		t.metrics.SetState(web.StatePaused)
		parts.Go(func() { t.rest(ctx) })
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

// rest replaces the queue of a paused target: it only reads the oldest pending sample, so that the status has its age.
func (t *target) rest(ctx context.Context) {
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

// part returns the target's name in the list of the program's parts.
func (t *target) part() string { return fmt.Sprintf("target %q", t.name) }
