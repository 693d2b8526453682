package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
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
	now func() time.Time
}

// proc and sys are paths below the two roots.
func (e *environment) proc(name string) string { return e.ProcPath + "/" + name }
func (e *environment) sys(name string) string  { return e.SysPath + "/" + name }

// Probe reads this machine. It keeps what it needs to notice counters that jump back
// and reads that hang; Collect must not be called twice at a time.
type Probe struct {
	log        *slog.Logger
	collectors []*collector

	duration, success *probes.Family
}

// collector is one enabled reader.
type collector struct {
	name   string
	labels []string
	reader
	present  bool // its last run found something to read
	panicked bool // its last run panicked
}

// New checks the configuration and makes the probe. It reads nothing yet: hardware
// may appear and vanish while the probe lives. Labels of the samples that it adds
// are shared between samples and between rounds and must not be modified.
func New(c Config, log *slog.Logger) (*Probe, error) {
	s, err := newSettings(c)
	if err != nil {
		return nil, fmt.Errorf("host probe: %w", err)
	}
	env := &environment{settings: s, now: time.Now}
	p := &Probe{
		log:      log,
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
// failed, each with its collector's name; it wraps [probes.ErrPartial] if anything was
// read at all. It returns soon after ctx ends; collectors that had not run by then
// are named.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	var errs []error
	useful := false
	for i, c := range p.collectors {
		if ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("not read: %s: %w", strings.Join(names(p.collectors[i:]), ", "), context.Cause(ctx)))
			break
		}
		began, samples := time.Now(), len(r.Samples())
		err := c.attempt(ctx, r)
		c.note(p.log, err)
		if !c.present {
			continue
		}
		for _, s := range r.Samples()[samples:] {
			useful = true
			for i, l := range s.Labels {
				s.Labels[i] = valid(l)
			}
		}
		r.Add(p.duration, time.Since(began).Seconds(), c.labels...)
		r.Add(p.success, boolean(err == nil), c.labels...)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	err := errors.Join(errs...)
	if err != nil && useful {
		return fmt.Errorf("%w: %w", probes.ErrPartial, err)
	}
	return err
}

// attempt reads and turns a panic into an error: a file in a form that nobody thought
// of costs one collector.
func (c *collector) attempt(ctx context.Context, r *probes.Round) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return c.read(ctx, r)
}

// note logs what changed with this run and the runner cannot know.
func (c *collector) note(log *slog.Logger, err error) {
	if present := !errors.Is(err, errAbsent); present != c.present {
		c.present = present
		log.Debug("What the collector reads came or went", "collector", c.name, "present", present)
	}
	var bug *panicError
	if errors.As(err, &bug) && !c.panicked {
		log.Error("The collector panicked", "collector", c.name, "panic", bug.value, "stack", string(bug.stack))
	}
	c.panicked = bug != nil
}

// panicError is a recovered panic.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

func names(cs []*collector) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.name
	}
	return out
}
