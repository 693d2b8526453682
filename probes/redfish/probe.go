package redfish

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/internal/panics"
	"hwsagent/internal/redact"
	"hwsagent/probes"
	"hwsagent/probes/devices"
	"hwsagent/probes/hw"
)

// Probe reads one service. It implements [probes.Probe] and [probes.Closer]; its calls must not overlap.
type Probe struct {
	config  Config
	guard   *panics.Guard
	hide    *redact.Holder
	service *service        // nil until the first round
	health  map[string]bool // health lines of the last round
	pace    *devices.Pace
	contact devices.Contact
	meter   hw.Meter
}

// New checks c and returns its probe, which reads and sends nothing before the first Collect. The pace limits its
// requests, and the guard contains the panics of its goroutines; both may be nil.
func New(c Config, pace *devices.Pace, guard *panics.Guard) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Probe{config: c, guard: guard, pace: pace}
	p.hide = redact.Hold(&p.config)
	return p, nil
}

// The cost of a round, as gauges, because each value describes one round.
var (
	requestsSent  = probes.Family{Name: "redfish_scrape_requests", Help: "Requests that the probe sent in the round.", Type: model.MetricTypeGauge}
	bytesRead     = probes.Family{Name: "redfish_scrape_answers_bytes", Help: "Bytes of the answers that the probe received in the round.", Type: model.MetricTypeGauge, Unit: "bytes"}
	resourcesRead = probes.Family{Name: "redfish_scrape_resources", Help: "Resources that the round used, including cached ones.", Type: model.MetricTypeGauge}
)

// Collect reads the service once. It skips a resource that cannot be read; if the service is unreachable or refuses the
// login, the round fails.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	defer p.contact.Report(r)
	start := time.Now()
	if err := p.contact.Wait(start); err != nil {
		return err
	}
	if p.service == nil {
		s, err := newService(&p.config, p.pace, time.Now)
		if err != nil {
			return err
		}
		p.service = s
	}
	p.service.begin()
	w := walker{source: p.service, guard: p.guard, changed: func(lines []string, ill bool) bool {
		return ill || slices.ContainsFunc(lines, func(l string) bool { return !p.health[l] })
	}}
	t, err := w.walk(ctx)
	requests, bytes, answered := p.service.cost()
	err = p.note(start, answered, err)
	switch {
	case !answered:
		return err
	case len(t.nodes) > 1:
		all := reports(t)
		if last := len(all) - 1; last >= 0 && all[last].Kind == hw.Host {
			all[last] = p.meter.Whole(start, all[last], all[:last])
		}
		for i := range all {
			all[i].AddTo(r)
		}
		p.remember(t)
	case err == nil:
		err = errors.New("the service's root leads to no chassis, system or manager: does this account have the privilege to read them?")
	}
	r.Add(&requestsSent, float64(requests))
	r.Add(&bytesRead, float64(bytes))
	r.Add(&resourcesRead, float64(len(t.nodes)))
	var fatal *fatalError
	if err != nil && !errors.As(err, &fatal) && len(t.nodes) > 1 {
		err = fmt.Errorf("%w: %w", probes.ErrPartial, err)
	}
	return err
}

// note records the outcome of a round that began at start, and returns its error without secrets.
func (p *Probe) note(start time.Time, answered bool, err error) error {
	var unverified *tls.CertificateVerificationError
	if errors.As(err, &unverified) { // the file with its CA may be replaced soon
		err = errors.Join(err, p.service.reconnect())
	}
	err = p.hide.Secrets().Error(err)
	var fatal *fatalError
	var locked *lockedOutError
	switch {
	case answered:
		p.contact.Answered(start)
	case err == nil, errors.Is(err, context.Canceled): // a stop of the agent says nothing about the device
	case errors.As(err, new(*slowError)):
		p.contact.Failed(start, devices.NoAnswer, err)
	case !errors.As(err, &fatal):
		p.contact.Failed(start, devices.Protocol, err)
	case fatal.why == devices.Secret, fatal.why == devices.Limit, fatal.why == devices.Name, errors.As(err, &locked):
		p.contact.Unasked(start, fatal.why)
	default:
		p.contact.Failed(start, fatal.why, err)
	}
	return err
}

// remember stores the overall health in the tree.
func (p *Probe) remember(t *tree) {
	lines, _ := t.health()
	p.health = make(map[string]bool, len(lines))
	for _, l := range lines {
		p.health[l] = true
	}
}

// Close ends the session, and the connections.
func (p *Probe) Close() error {
	if p.service == nil {
		return nil
	}
	err := p.service.login.out()
	p.service.client.close()
	p.service = nil
	if err != nil {
		return p.hide.Secrets().Error(err)
	}
	return nil
}
