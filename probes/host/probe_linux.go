package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"hwsagent/internal/panics"
	"hwsagent/probes"
)

// reader reads one kind of data. Samples added before an error are kept. errAbsent means that this machine has nothing
// of the kind.
type reader interface {
	read(ctx context.Context, r *probes.Round) error
}

// errAbsent is not a failure: the kernel lacks the feature, or the host lacks the part.
var errAbsent = errors.New("not present on this machine")

// environment is the input of the readers.
type environment struct {
	*settings
	now    func() time.Time
	panics *panics.Guard

	chips   *sensorChips
	machine *machine
}

// proc and sys are paths below the two roots.
func (e *environment) proc(name string) string { return e.ProcPath + "/" + name }
func (e *environment) sys(name string) string  { return e.SysPath + "/" + name }

// Probe reads this machine. It keeps the state needed to detect counters that jump back and reads that hang; calls of
// Collect must not overlap.
type Probe struct {
	log        *slog.Logger
	panics     *panics.Guard
	env        *environment
	collectors []*collector

	duration, success *probes.Family
}

// collector is one enabled reader.
type collector struct {
	name   string
	labels []string
	reader
	present bool // its last run found data
}

// New checks the configuration and returns the probe. It reads nothing yet: hardware may appear and vanish while the
// probe lives. The labels of added samples are shared between samples and between rounds and must not be modified. The
// guard contains the panics of each collector; it may be nil.
func New(c Config, log *slog.Logger, guard *panics.Guard) (*Probe, error) {
	s, err := newSettings(c)
	if err != nil {
		return nil, fmt.Errorf("host probe: %w", err)
	}
	env := &environment{settings: s, now: time.Now, panics: guard}
	env.chips, env.machine = newSensorChips(env), newMachine()
	p := &Probe{
		log:      log,
		panics:   guard,
		env:      env,
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

// Collect runs every collector once. The error joins those of the collectors that failed, each with its collector's
// name; it wraps [probes.ErrPartial] if any data was read. It returns soon after ctx ends, and names collectors that
// had not run by then.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	var errs []error
	useful := false
	p.env.chips.begin()
	p.env.machine.begin()
	for i, c := range p.collectors {
		if ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("not read: %s: %w", strings.Join(names(p.collectors[i:]), ", "), context.Cause(ctx)))
			break
		}
		began, samples := time.Now(), len(r.Samples())
		turn, end := turnOf(ctx)
		err := p.panics.Do(func() error { return c.read(turn, r) }) // a panic only fails one collector
		end()
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

// turnOf returns the context for one collector: it ends after half of the remaining time. If the kernel holds a
// resource that several collectors need, each waits as long as a device may take; the later collectors still have time.
func turnOf(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}

// note logs changes since the last run that the runner cannot see.
func (c *collector) note(log *slog.Logger, err error) {
	if present := !errors.Is(err, errAbsent); present != c.present {
		c.present = present
		log.Debug("The collector's source appeared or disappeared", "collector", c.name, "present", present)
	}
}

func names(cs []*collector) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.name
	}
	return out
}
