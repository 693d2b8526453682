package host

import (
	"context"
	"errors"
	"fmt"
	"math"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// hardware collects the hw_* of some classes of devices. Each device is read under guard.
type hardware struct {
	machine *machine
	guard   guard[[]hw.Report]
	classes []hardwareClass
	// join turns the reports of all classes into those of the round; nil: they stay as they are.
	join func([]hw.Report) []hw.Report
}

// hardwareClass is a directory with a device in each of its directories.
type hardwareClass struct {
	dir string
	// wanted reports whether to read the device with that name in dir; nil: all.
	wanted func(name string) bool
	// query reads the device in a directory. It runs concurrently with itself and must not change anything that it did
	// not create.
	query func(dir string) []hw.Report
}

func (e *environment) hardware(classes ...hardwareClass) *hardware {
	return &hardware{machine: e.machine, guard: guard[[]hw.Report]{limit: e.limit, panics: e.panics}, classes: classes}
}

func (h *hardware) read(ctx context.Context, r *probes.Round) error {
	var errs []error
	var dirs []string
	queries := make(map[string]func(string) []hw.Report)
	for _, c := range h.classes {
		names, err := list(c.dir)
		if err != nil {
			if !errors.Is(err, errAbsent) {
				errs = append(errs, err)
			}
			continue
		}
		for _, name := range names {
			if c.wanted == nil || c.wanted(name) {
				dir := c.dir + "/" + name
				dirs, queries[dir] = append(dirs, dir), c.query
			}
		}
	}
	var all []hw.Report
	for i, o := range h.guard.all(ctx, dirs, func(dir string) []hw.Report { return queries[dir](dir) }) {
		if o.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", dirs[i], o.err))
		}
		all = append(all, o.value...)
	}
	if h.join != nil {
		all = h.join(all)
	}
	for i := range all {
		h.machine.add(r, &all[i])
	}
	if len(all) == 0 && len(errs) == 0 {
		return errAbsent
	}
	return errors.Join(errs...)
}

// machine is the state that the collectors of hw_* share in one round. Only the goroutine of Collect uses it.
type machine struct {
	given map[componentKey]int // IDs used in this round, and how often

	// Readings that concern the whole machine.
	margin   float64            // the least distance of a temperature to its limit, +Inf: none
	measured float64            // watts of the whole machine; NaN: not measured
	parts    map[string]float64 // joules of processors and memory, by ID
	platform float64            // joules by the platform's own counter; NaN: it has none
	battery  float64            // watts supplied by batteries; NaN: none is in use
}

type componentKey struct {
	kind hw.Kind
	id   string
}

func newMachine() *machine {
	m := &machine{given: make(map[componentKey]int), parts: make(map[string]float64)}
	m.begin()
	return m
}

// begin resets the state for a new round.
func (m *machine) begin() {
	clear(m.given)
	clear(m.parts)
	m.margin, m.measured, m.platform, m.battery = math.Inf(1), math.NaN(), math.NaN(), math.NaN()
}

// add adds a report to the round, under a unique ID, and records readings that concern the whole machine. It only
// records a report of kind [hw.Host]: hw_host sends one for all.
func (m *machine) add(r *probes.Round, p *hw.Report) {
	m.note(p)
	if p.Kind == hw.Host {
		return
	}
	key := componentKey{p.Kind, p.ID}
	m.given[key]++
	if n := m.given[key]; n > 1 {
		p.ID = fmt.Sprintf("%s#%d", p.ID, n)
	}
	p.AddTo(r)
}

func (m *machine) note(p *hw.Report) {
	now, limit := math.NaN(), math.NaN()
	for _, v := range p.Readings {
		switch v.Metric {
		case hw.TemperatureNow:
			now = v.Value
		case hw.TemperatureLimit:
			if high := v.Attributes[1]; high == "high.critical" || high == "high.degraded" {
				limit = min(v.Value, nanIs(limit, math.Inf(1)))
			}
		case hw.HostPower:
			m.measured = nanIs(m.measured, v.Value)
		case hw.HostEnergy:
			m.platform = nanIs(m.platform, v.Value)
		case hw.Energy:
			if p.Kind == hw.CPU || p.Kind == hw.Memory {
				m.parts[p.ID] = v.Value
			}
		case hw.Power:
			if p.Kind == hw.Battery && v.Value < 0 { // it gives
				m.battery = nanIs(m.battery, 0) - v.Value
			}
		}
	}
	if p.Kind == hw.Temperature && limit-now < m.margin {
		m.margin = limit - now
	}
}

// nanIs returns v, or other if v is not a number.
func nanIs(v, other float64) float64 {
	if math.IsNaN(v) {
		return other
	}
	return v
}
