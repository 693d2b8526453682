package queues

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/inspect"
	"hwsagent/agent/selector"
	"hwsagent/internal/version"
	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/replay"
	"hwsagent/wal"
)

// ReplayOptions select the samples to send again.
type ReplayOptions struct {
	ConfigFile, Storage string
	Target              string
	From, To            time.Time // timestamps: From included, To excluded
	Match               string    // a selector of series as they are sent; "" for all
	DryRun              bool      // only count
	Rate                float64   // samples per second at most; 0: no limit
	After               uint64    // continue after the commit with that number

	Logger   *slog.Logger         // of the client; nil: none
	Progress func(ReplayProgress) // may be nil; called after each commit
}

// ReplayProgress is the progress of a replay.
type ReplayProgress struct {
	Read, Total         int64 // bytes of the log
	Selected, Delivered uint64
}

// ReplayResult is the outcome of a replay. Its counts are separate from the target's ledger, which counts each appended
// sample once and ignores replays.
type ReplayResult struct {
	Schema   int       `json:"schema"` // 1
	Target   string    `json:"target"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Match    string    `json:"match,omitempty"`
	DryRun   bool      `json:"dry_run"`
	Complete bool      `json:"complete"` // all selected samples were sent, or counted

	Samples     uint64          `json:"samples"` // selected, as far as the log was read
	Series      int             `json:"series"`
	Delivered   uint64          `json:"delivered"`
	Refused     uint64          `json:"refused"`
	Unconfirmed uint64          `json:"unconfirmed"` // refused; they may be stored
	Unsupported uint64          `json:"unsupported"` // excluded by the protocol or the entry
	Filtered    uint64          `json:"filtered"`    // removed by write_relabel_configs
	Refusals    []ReplayRefusal `json:"refusals"`

	Requests uint64    `json:"requests"`
	Bytes    uint64    `json:"bytes"`
	Seconds  float64   `json:"seconds"`
	Oldest   time.Time `json:"oldest,omitzero"` // timestamps of these samples
	Newest   time.Time `json:"newest,omitzero"`

	DamagedBytes int64  `json:"damaged_bytes"`    // unreadable bytes of the log, skipped
	Gone         int64  `json:"missing_segments"` // removed while the log was read, or lost before
	After        uint64 `json:"after"`            // the commit after which a further replay continues
	Stopped      string `json:"stopped,omitempty"`
}

// ReplayRefusal is one refusal of samples by the receiver.
type ReplayRefusal struct {
	Status    int    `json:"status"`
	Text      string `json:"text"`
	Samples   uint64 `json:"samples"`
	Series    string `json:"series"` // of the first refused sample
	Timestamp int64  `json:"timestamp_ms"`
}

// ErrReplayRefused means that the target does not accept, or no longer accepts, the replayed samples.
// ErrReplayInterrupted means that the replay was stopped. Both come with a result.
var (
	ErrReplayRefused     = errors.New("the replay ended")
	ErrReplayInterrupted = errors.New("the replay was interrupted")
)

// Replay sends a part of the log in the storage directory to a target of the configuration file. It sends from this
// process, whether or not an agent runs there, and leaves the target's queue alone. When ctx ends, it ends after the
// request in flight.
func Replay(ctx context.Context, o ReplayOptions) (ReplayResult, error) {
	res := ReplayResult{Schema: 1, Target: o.Target, From: o.From, To: o.To, Match: o.Match, DryRun: o.DryRun, Refusals: []ReplayRefusal{}, After: o.After}
	began := time.Now()
	matchers, err := selector.Parse(o.Match)
	if err != nil {
		return res, fmt.Errorf("%w: %w", config.ErrUsage, err)
	}
	cfg, _, err := config.Load(o.ConfigFile, os.LookupEnv)
	if err != nil {
		return res, err
	}
	c, err := cfg.Target(o.Target)
	if err != nil {
		return res, err
	}
	archive, err := wal.OpenArchive(o.Storage, o.After)
	if errors.Is(err, fs.ErrNotExist) {
		return res, inspect.NoLog(o.Storage)
	}
	if err != nil {
		return res, err
	}
	defer archive.Close() // read-only: nothing to lose

	ro := replay.Options{
		Config: *c, ExternalLabels: cfg.Global.Labels(), Archive: archive, Logger: o.Logger,
		From: o.From, To: o.To, Matchers: matchers, Rate: o.Rate, After: o.After,
	}
	if o.Progress != nil {
		ro.Progress = func(c replay.Count) {
			p := ReplayProgress{Selected: c.Selected, Delivered: c.Delivered}
			p.Read, p.Total = archive.Progress()
			o.Progress(p)
		}
	}
	if !o.DryRun {
		sender, err := client.New(c, client.Options{Version: version.Version, Logger: o.Logger})
		if err != nil {
			return res, err
		}
		defer runClient(sender)()
		ro.Sender = sender
	}
	count, err := replay.Run(ctx, ro)
	res.fill(count, o.After)
	res.DamagedBytes, res.Gone = archive.Skipped()
	res.Seconds, res.Complete = time.Since(began).Seconds(), err == nil
	var stopped *replay.Error
	switch {
	case errors.As(err, &stopped):
		err = fmt.Errorf("%w: %w", ErrReplayRefused, stopped)
	case err != nil && ctx.Err() != nil:
		err = ErrReplayInterrupted
	}
	if err != nil {
		res.Stopped = err.Error()
	}
	return res, err
}

// runClient refreshes the client's credentials until stop is called.
func runClient(c *client.Client) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}

// fill copies the counts.
func (res *ReplayResult) fill(c replay.Count, after uint64) {
	res.Samples, res.Series, res.Delivered, res.Refused = c.Selected, c.Series, c.Delivered, c.Refused
	res.Unconfirmed, res.Unsupported, res.Filtered = c.Unconfirmed, c.Unsupported, c.Filtered
	res.Requests, res.Bytes, res.Oldest, res.Newest = c.Requests, c.Bytes, c.Oldest, c.Newest
	res.After = max(c.Done, after)
	for _, f := range c.Refusals {
		res.Refusals = append(res.Refusals, ReplayRefusal(f))
	}
}
