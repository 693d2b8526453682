package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/config"
	"hwsagent/agent/inputs"
	"hwsagent/internal/exposition"
	"hwsagent/probes"
	"hwsagent/receivers"
	"hwsagent/receivers/pushgateway"
)

// pushedSpecs are the two sides of the push gateway: the receiver takes groups, and the probe reads them at each
// interval as Prometheus scrapes a Pushgateway with honor_labels, including stale markers and up.
type pushedSpecs struct {
	receiver receivers.Spec
	probe    probes.Spec
}

// pushedWithin is how long a round of the push gateway may take if its interval is shorter. The groups are in memory, so a round that takes
// long only lacks processor time. If it ended, the series that it has not read yet would be marked as stale.
const pushedWithin = 10 * time.Second

func (a *Agent) pushgateway(c *config.Pushgateway) (pushedSpecs, error) {
	identity := a.ids.of("receiver "+config.PushgatewayName, c)
	if a.pushed.identity != identity {
		g := a.gate(config.PushgatewayName, &c.Intake)
		store := a.pushed.store
		if store == nil {
			var err error
			if store, err = pushgateway.OpenStore(filepath.Join(a.o.StoragePath, pushgateway.Folder), a.logger.With("receiver", config.PushgatewayName)); err != nil {
				return pushedSpecs{}, err
			}
		}
		a.pushed = pushed{identity: identity, receiver: pushgateway.New(g, store), gate: g, store: store}
	}
	spec := a.receiverSpec(c, config.PushgatewayName, &c.Listener, a.pushed.gate, a.pushed.receiver)
	return pushedSpecs{
		receiver: spec,
		probe: probes.Spec{
			Name: config.PushgatewayName, Type: config.PushgatewayName, Host: a.hostname, Identity: identity,
			Probe: pushedProbe{a.pushed.receiver}, Out: a.inputs.Input(receiverKind, config.PushgatewayName, inputs.Settings{Interval: time.Duration(c.Interval)}),
			Interval: time.Duration(c.Interval), Timeout: max(time.Duration(c.Interval), pushedWithin),
			Labels:  labels.FromStrings(model.JobLabel, config.PushgatewayName, model.InstanceLabel, a.hostname),
			Bare:    true,
			Guard:   a.inputs.Guard(receiverKind, config.PushgatewayName),
			Relabel: c.MetricRelabelConfigs,
		},
	}, nil
}

// pushed holds the receiver of the configuration in force. Its groups survive a reload that does not change it.
type pushed struct {
	identity string
	receiver *pushgateway.Receiver
	gate     *receivers.Gate
	store    *pushgateway.Store // the same for the life of the agent; nil until needed
}

// pushedProbe reads the groups.
type pushedProbe struct{ receiver *pushgateway.Receiver }

// Collect implements [probes.Probe].
func (p pushedProbe) Collect(ctx context.Context, r *probes.Round) error {
	families := map[string]*probes.Family{}
	unsettled := p.receiver.Settle(ctx)
	err := p.receiver.Each(ctx, func(s *exposition.Sample) error {
		name := s.Labels.Get(model.MetricNameLabel)
		family := s.Family
		if family == "" {
			family = name
		}
		f := families[family]
		if f == nil {
			f = &probes.Family{Name: family, Help: s.Meta.Help, Type: s.Meta.Type, Unit: s.Meta.Unit}
			families[family] = f
		}
		pairs := make([]string, 0, 2*s.Labels.Len())
		s.Labels.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel {
				pairs = append(pairs, l.Name, l.Value)
			}
		})
		one := probes.Sample{Family: f, Name: name, Labels: pairs, Value: s.V, ST: s.ST}
		// The parser reuses its histograms.
		if s.H != nil {
			one.H = s.H.Copy()
		}
		if s.FH != nil {
			one.FH = s.FH.Copy()
		}
		r.AddSample(one)
		return nil
	})
	if err == nil && unsettled != nil {
		return fmt.Errorf("%w: mark vanished series of the groups stale, retried in the next round: %w", probes.ErrPartial, unsettled)
	}
	return errors.Join(err, unsettled)
}
