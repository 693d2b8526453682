package snmp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gosnmp/gosnmp"
	"github.com/prometheus/common/model"

	"hwsagent/internal/redact"
	"hwsagent/probes"
	"hwsagent/probes/devices"
	"hwsagent/probes/snmp/library"
)

// Probe reads one device. It implements [probes.Probe] and [probes.Closer]; its calls
// must not overlap.
type Probe struct {
	session *session
	modules []*emitter
	log     *slog.Logger
	hide    *redact.Holder
	version string
	contact devices.Contact
	uptimes uptimes
	pool    *bufferPool
}

// Plans makes probes of one configuration, which share the modules of files: it reads each file and parses each module once.
// It is for one goroutine. The zero value is ready for use.
type Plans struct {
	config Config // of plan, without the differences between devices
	plan   *plan
	read   sources
	// libraries caches loaded libraries by their directories: parsing the definitions costs more than all else.
	libraries map[string]*library.Library
	pool      *bufferPool // of all probes
}

// New checks c, reads the files of modules that it names, and makes its probe. It sends nothing
// before the first Collect. A nil pace means no rate limit.
func New(c Config, pace *devices.Pace, logger *slog.Logger) (*Probe, error) {
	return new(Plans).New(c, pace, logger)
}

// New is like the function New, but does not reread files that it read for the previous probe.
func (s *Plans) New(c Config, pace *devices.Pace, logger *slog.Logger) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	plan, err := s.of(c, logger)
	if err != nil {
		return nil, err
	}
	if !c.Auth.own() {
		c.Auth = plan.auth
	}
	session, err := newSession(&c, logger)
	if err != nil {
		return nil, err
	}
	session.pace = pace
	if s.pool == nil {
		s.pool = new(bufferPool)
	}
	p := &Probe{session: session, log: logger, hide: redact.Hold(&c), version: plan.version, pool: s.pool}
	for _, m := range plan.modules {
		p.modules = append(p.modules, newEmitter(m))
		session.unconnected = session.unconnected || m.params.unconnected
	}
	return p, nil
}

// of returns the plan of c: the last plan if it is for the same configuration.
func (s *Plans) of(c Config, logger *slog.Logger) (*plan, error) {
	c.Target = ""
	if c.Auth.own() { // may differ from device to device; the plan does not depend on it
		c.Auth = Auth{Version: c.Auth.version()}
	}
	if s.plan != nil && reflect.DeepEqual(s.config, c) {
		return s.plan, nil
	}
	if s.read == nil {
		s.read = sources{}
	}
	p, err := planWith(&c, s.read, s.library)
	if err != nil {
		return nil, err
	}
	for _, n := range p.notes {
		if n.Severe {
			logger.Warn("A file of modules is not as it should be", "file", n.File, "line", n.Line, "reason", n.Text, "hint", n.Try)
		}
	}
	s.config, s.plan = c, p
	return p, nil
}

// library returns the library with these directories.
func (s *Plans) library(dirs ...string) (*library.Library, error) {
	key := strings.Join(dirs, "\x00")
	if l := s.libraries[key]; l != nil {
		return l, nil
	}
	l, err := library.Load(dirs...)
	if err != nil {
		return nil, err
	}
	if s.libraries == nil {
		s.libraries = map[string]*library.Library{}
	}
	s.libraries[key] = l
	return l, nil
}

// Version differs between two probes of one configuration if the contents of its files differ.
func (p *Probe) Version() string { return p.version }

// OnRead makes a round call f with the OID of every accepted variable. It must be called
// before the first round.
func (p *Probe) OnRead(f func(oid string)) {
	p.session.read = func(o oid) { f(o.String()) }
}

// Close closes the connection.
func (p *Probe) Close() error {
	p.session.close()
	return nil
}

// sysUpTime of SNMPv2-MIB (RFC 3418): every agent has this object.
const sysUpTime = "1.3.6.1.2.1.1.3.0"

// Collect reads every module once. A device that does not answer costs one packet and its retries; once
// it has been silent for long, one packet at growing intervals. A failing module is skipped and named in
// the error.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	clean := false
	own := p.pool.take()
	p.session.buffers = own
	defer func() {
		p.session.buffers = nil
		if !clean { // a panic is on its way to the runner: the state of the socket is unknown
			p.session.close()
			return
		}
		p.pool.give(own)
	}()
	err := p.collect(ctx, r)
	clean = true
	if err != nil { // which may repeat texts of a device
		err = p.hide.Secrets().Error(err)
	}
	return err
}

func (p *Probe) collect(ctx context.Context, r *probes.Round) error {
	defer p.contact.Report(r)
	defer p.uptimes.report(r)
	start := time.Now()
	if err := p.contact.Wait(start); err != nil {
		return err
	}
	up, err := p.greet(ctx)
	p.contact.Greeted(start, reasonOf(err), p.hide.Secrets().Error(err))
	if err != nil {
		return err
	}
	if up != nil && p.uptimes.note(*up, start) {
		p.log.Info("The device has restarted", "device", p.session.endpoint.String(), "uptime", up.String())
	}
	var errs []error
	for _, m := range p.modules {
		if over(ctx) != nil {
			errs = append(errs, fmt.Errorf("module %s and later ones not read: the time for this round is over", m.module.name))
			break
		}
		if err := p.read(ctx, m, r); err != nil {
			errs = append(errs, fmt.Errorf("module %s: %w", m.module.name, err))
		}
	}
	if len(errs) == 0 && slices.ContainsFunc(p.modules, func(m *emitter) bool { return m.device != nil && len(m.device.last.Reports) == 0 }) {
		return ErrNothingKnown
	}
	return errors.Join(errs...)
}

// greet asks the device for its sysUpTime; nil means a device without one.
func (p *Probe) greet(ctx context.Context) (*time.Duration, error) {
	if p.session.tune(walkParams{}); p.contact.Impatient() {
		p.session.retries = 0
	}
	if err := p.session.begin(ctx); err != nil {
		return nil, err
	}
	h := p.session.buffers.harvest
	h.reset()
	if err := p.session.get(ctx, []string{sysUpTime}, h); err != nil {
		return nil, err
	}
	for i := range h.vars {
		if v := &h.vars[i]; v.typ == gosnmp.TimeTicks || v.typ == gosnmp.Uinteger32 {
			return new(time.Duration(v.bits) * tick), nil // #nosec G115 -- of 32 bits
		}
	}
	return nil, nil
}

// read reads one module. A module that was read only in part adds no samples: missing rows
// would look like rows that are gone.
func (p *Probe) read(ctx context.Context, m *emitter, r *probes.Round) error {
	s := p.session
	s.stats = stats{}
	start := time.Now()
	s.tune(m.module.params)
	walked, err := p.readInto(ctx, m, r)
	name := m.module.name
	r.Add(&walkDuration, walked.Seconds(), "module", name)
	r.Add(&packetsSent, float64(s.stats.sent), "module", name)
	r.Add(&packetsRetried, float64(s.stats.retried), "module", name)
	r.Add(&pdusReturned, float64(s.stats.pdus), "module", name)
	r.Add(&scrapeDuration, time.Since(start).Seconds(), "module", name)
	return err
}

// readInto reads one module and adds its samples; walked is how long the device took.
func (p *Probe) readInto(ctx context.Context, m *emitter, r *probes.Round) (walked time.Duration, err error) {
	start := time.Now()
	if m.device != nil {
		err = m.device.read(ctx, p.session, r)
		return time.Since(start), err
	}
	h := p.session.buffers.harvest
	h.reset()
	err = p.session.readModule(ctx, m.module, h)
	walked = time.Since(start)
	if err == nil {
		m.emit(h, r)
	}
	return walked, err
}

// The cost of a round, under the names of snmp_exporter. They are gauges: each describes one
// round.
var (
	walkDuration   = probes.Family{Name: "snmp_scrape_walk_duration_seconds", Help: "Time the module took to read from the device.", Type: model.MetricTypeGauge, Unit: "seconds"}
	packetsSent    = probes.Family{Name: "snmp_scrape_packets_sent", Help: "Packets sent for the module, retries included.", Type: model.MetricTypeGauge}
	packetsRetried = probes.Family{Name: "snmp_scrape_packets_retried", Help: "Packets of the module sent again because no answer came.", Type: model.MetricTypeGauge}
	pdusReturned   = probes.Family{Name: "snmp_scrape_pdus_returned", Help: "Variables that the device returned for the module.", Type: model.MetricTypeGauge}
	scrapeDuration = probes.Family{Name: "snmp_scrape_duration_seconds", Help: "Time the module took in all.", Type: model.MetricTypeGauge, Unit: "seconds"}
)
