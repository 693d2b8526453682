package agent

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/inputs"
	"hwsagent/agent/status"
	"hwsagent/probes/hw"
)

// componentsEvery is how often the newest samples are searched for components while the page is open.
const componentsEvery = 10 * time.Second

// components remembers the hardware, and since when each component is in its state.
type components struct {
	mu     sync.Mutex
	at     time.Time // of all
	all    []status.Component
	states map[[2]string]stateSince // by device and ID

	shown   inventory.Inventory // the device whose page was asked for last
	shownAt time.Time
}

type stateSince struct {
	state string
	since time.Time
	first bool // the agent has seen no other state
}

// hardware returns the components in memory. The history asks each minute, so that since is known to a minute.
func (a *Agent) hardware() []status.Component {
	c := &a.components
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.at) >= componentsEvery {
		c.take(componentsOf(a.inputs.Newest(nil)), now)
	}
	return c.all
}

// device returns the hardware of one device in memory, with all its values. It must not be changed.
func (a *Agent) device(name string) inventory.Inventory {
	a.hardware() // so that each component's state has its time
	c := &a.components
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.shown.Name == name && now.Sub(c.shownAt) < componentsEvery {
		return c.shown
	}
	inv := inventory.Inventory{Name: name}
	inv.Build(samplesOf(name, a.inputs.Newest(nil)))
	for _, one := range inv.Components {
		at := c.states[[2]string{name, one.ID}]
		one.Since, one.First = at.since, at.first
	}
	c.shown, c.shownAt = inv, now
	return inv
}

// samplesOf returns the samples of one device that an inventory shows: hw_* in either dialect, and the device's description.
func samplesOf(device string, newest []inputs.Sample) (all []inventory.Sample) {
	for _, s := range newest {
		name := s.Labels.Get(model.MetricNameLabel)
		isHW := strings.HasPrefix(name, hw.Prefix)
		if s.Labels.Get(model.InstanceLabel) != device || s.H != nil || s.FH != nil || !isHW && !strings.HasPrefix(name, "sys") && name != "snmp_device_info" {
			continue
		}
		var pairs []string
		s.Labels.Range(func(l labels.Label) { pairs = append(pairs, l.Name, l.Value) })
		if isHW {
			pairs = hw.OwnLabels(pairs)
		}
		all = append(all, inventory.Sample{Name: name, Labels: pairs, Value: s.V, At: time.UnixMilli(s.T)})
	}
	return all
}

// take stores the present components. c.mu must be held.
func (c *components) take(all []status.Component, now time.Time) {
	states := make(map[[2]string]stateSince, len(all))
	for i := range all {
		one := &all[i]
		key := [2]string{one.Device, one.ID}
		before, known := c.states[key]
		if !known || before.state != one.State {
			before = stateSince{one.State, one.Seen, !known}
		}
		states[key] = before
		one.Since, one.First = before.since, before.first
	}
	c.at, c.all, c.states = now, all, states
}

// componentsOf groups hw_* samples by device and component.
func componentsOf(samples []inputs.Sample) []status.Component {
	type place struct{ device, id string }
	type sensor struct {
		place
		location string
	}
	found := map[place]*status.Component{}
	celsius, limits := map[sensor]float64{}, map[sensor]float64{}
	for _, s := range samples {
		metric, ok := strings.CutPrefix(s.Labels.Get(model.MetricNameLabel), hw.Prefix)
		if !ok || s.H != nil || s.FH != nil {
			continue
		}
		at := place{s.Labels.Get(model.InstanceLabel), label(s.Labels, hw.LabelID)}
		if at.id == "" && metric != "host_power_watts" {
			continue
		}
		c := found[at]
		if c == nil {
			c = &status.Component{Device: at.device, ID: at.id}
			found[at] = c
		}
		c.Name, c.Type = cmp.Or(c.Name, label(s.Labels, hw.LabelName)), cmp.Or(c.Type, s.Labels.Get(hw.LabelType))
		c.Parent = cmp.Or(c.Parent, s.Labels.Get(hw.LabelParent), s.Labels.Get("hw_parent_id"))
		if t := time.UnixMilli(s.T); t.After(c.Seen) {
			c.Seen = t
		}
		where := sensor{at, label(s.Labels, hw.LabelLocation)}
		switch metric {
		case "status":
			if s.V == 1 {
				c.State = status.WorseState(c.State, label(s.Labels, hw.LabelState))
			}
		case "component_info":
			c.Vendor, c.Model, c.Serial = label(s.Labels, hw.Vendor), label(s.Labels, hw.Model), label(s.Labels, hw.Serial)
		case "temperature_celsius":
			celsius[where] = s.V
		case "temperature_limit_celsius":
			if old, ok := limits[where]; strings.HasPrefix(label(s.Labels, hw.LabelLimitType), "high") && (!ok || s.V < old) {
				limits[where] = s.V
			}
		case "host_power_watts":
			c.Watts = s.V
		}
	}
	for where, limit := range limits {
		c := found[where.place]
		if v, ok := celsius[where]; ok && limit > 0 && (c.Limit == 0 || limit-v < c.Limit-c.Celsius) {
			c.Celsius, c.Limit = v, limit
		}
	}
	all := make([]status.Component, 0, len(found))
	for _, c := range found {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b status.Component) int {
		return cmp.Or(strings.Compare(a.Device, b.Device), strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return all
}

// label returns a label by its name, or by that of MetricsHub's names, which lack the prefix.
func label(ls labels.Labels, name string) string {
	return cmp.Or(ls.Get(name), ls.Get(strings.TrimPrefix(name, hw.Prefix)))
}
