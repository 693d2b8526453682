package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"hwsagent/probes"
)

// reader reads one kind of thing. What it added before an error is kept. errAbsent
// means that this machine has nothing of the kind.
type reader interface {
	read(ctx context.Context, r *probes.Round) error
}

// errAbsent is not a failure: a kernel without the feature, a host without the part.
var errAbsent = errors.New("not present on this machine")

// environment is what readers are made from.
type environment struct {
	*settings
	log *slog.Logger
	now func() time.Time
}

// proc and sys are paths below the two roots.
func (e *environment) proc(name string) string { return e.ProcPath + "/" + name }
func (e *environment) sys(name string) string  { return e.SysPath + "/" + name }

// Probe reads this machine. It keeps what it needs to notice counters that jump back
// and reads that hang; Collect must not be called twice at a time.
type Probe struct {
	log        *slog.Logger
	now        func() time.Time
	collectors []*collector

	duration, success *probes.Family
}

// collector is one enabled reader.
type collector struct {
	name   string
	labels []string
	reader
	failing bool // its last run failed: transitions are logged, repetitions are not
}

// New checks the configuration and makes the probe. It reads nothing yet: hardware
// may appear and vanish while the probe lives. Labels of the samples that it adds
// are shared between samples and between rounds and must not be modified.
func New(c Config, log *slog.Logger) (*Probe, error) { return newProbe(c, log, time.Now) }

func newProbe(c Config, log *slog.Logger, now func() time.Time) (*Probe, error) {
	s, err := newSettings(c)
	if err != nil {
		return nil, fmt.Errorf("host probe: %w", err)
	}
	env := &environment{settings: s, log: log, now: now}
	p := &Probe{
		log:      log,
		now:      now,
		duration: gauge("node_scrape_collector_duration_seconds", "How long the collector took."),
		success:  gauge("node_scrape_collector_success", "Whether the collector succeeded (1) or failed (0)."),
	}
	makers := readerMakers()
	for _, name := range s.enabled {
		p.collectors = append(p.collectors, &collector{
			name:   name,
			labels: []string{"collector", name},
			reader: makers[name](env),
		})
	}
	return p, nil
}

// Collect runs every collector once. The error joins those of the collectors that
// failed, each with its collector's name; it wraps [probes.ErrPartial] unless all of
// them failed. It returns soon after ctx ends; collectors that had not run by then
// are named.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	var errs []error
	good := 0
	for i, c := range p.collectors {
		if ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("not read: %s: %w", strings.Join(names(p.collectors[i:]), ", "), context.Cause(ctx)))
			break
		}
		began := time.Now()
		err := c.read(ctx, r)
		if errors.Is(err, errAbsent) {
			continue
		}
		r.Add(p.duration, time.Since(began).Seconds(), c.labels...)
		r.Add(p.success, boolean(err == nil), c.labels...)
		if failed := err != nil; failed != c.failing {
			c.failing = failed
			if failed {
				p.log.Debug("collector fails", "collector", c.name, "err", err)
			} else {
				p.log.Debug("collector works again", "collector", c.name)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
		} else {
			good++
		}
	}
	err := errors.Join(errs...)
	if err != nil && good > 0 {
		return fmt.Errorf("%w: %w", probes.ErrPartial, err)
	}
	return err
}

func names(cs []*collector) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.name
	}
	return out
}
