package agent

import (
	"cmp"
	"iter"
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
	mu  sync.Mutex
	at  time.Time          // when all had all components
	all []status.Component // only those with a state if at is long ago

	shown   inventory.Inventory // the device whose page was asked for last
	shownAt time.Time
}

// watchHardware looks at the states of components, unless the page just did. It is called each minute, so that it is known to a minute
// since when each component is in its state. Series without a state are many, and cost no more than their names.
func (a *Agent) watchHardware() {
	c := &a.components
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.at) >= time.Minute {
		c.all = componentsOf(a.inputs.All(isStatus), c.all)
	}
}

// isStatus reports whether samples with that name say the state of a component.
func isStatus(name string) bool { return name == hw.Prefix+"status" }

// isHardware reports whether that is the name of a metric of hardware.
func isHardware(name string) bool { return strings.HasPrefix(name, hw.Prefix) }

// describesDevice reports whether samples with that name are of hardware, in either dialect, or of the device as a whole.
func describesDevice(name string) bool {
	return isHardware(name) || strings.HasPrefix(name, "sys") || name == "snmp_device_info"
}

// hardware returns the components in memory.
func (a *Agent) hardware() []status.Component {
	c := &a.components
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.at) >= componentsEvery {
		c.at, c.all = now, componentsOf(a.inputs.All(isHardware), c.all)
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
	inv.Build(samplesOf(name, a.inputs.All(describesDevice)))
	since := map[string]*status.Component{}
	for i := range c.all {
		if c.all[i].Device == name {
			since[c.all[i].ID] = &c.all[i]
		}
	}
	for _, one := range inv.Components {
		if at := since[one.ID]; at != nil {
			one.Since, one.First = at.Since, at.First
		}
	}
	c.shown, c.shownAt = inv, now
	return inv
}

// samplesOf returns the samples of one device that an inventory shows: hw_* in either dialect, and the device's description.
func samplesOf(device string, newest iter.Seq[inputs.Sample]) (all []inventory.Sample) {
	for s := range newest {
		name := s.Labels.Get(model.MetricNameLabel)
		if s.Labels.Get(model.InstanceLabel) != device || s.H != nil || s.FH != nil || !describesDevice(name) {
			continue
		}
		var pairs []string
		s.Labels.Range(func(l labels.Label) { pairs = append(pairs, l.Name, l.Value) })
		if isHardware(name) {
			pairs = hw.OwnLabels(pairs)
		}
		all = append(all, inventory.Sample{Name: name, Labels: pairs, Value: s.V, At: time.UnixMilli(s.T)})
	}
	return all
}

// componentsOf groups hw_* samples by device and component. before are the components that it returned last, which say since when
// each one is in its state.
func componentsOf(samples iter.Seq[inputs.Sample], before []status.Component) []status.Component {
	type place struct{ device, id string }
	type sensor struct {
		place
		location string
	}
	all := make([]status.Component, 0, len(before))
	found := make(map[place]int, len(before)) // places in all
	celsius, limits := map[sensor]float64{}, map[sensor]float64{}
	for s := range samples {
		metric, ok := strings.CutPrefix(s.Labels.Get(model.MetricNameLabel), hw.Prefix)
		if !ok || s.H != nil || s.FH != nil {
			continue
		}
		at := place{s.Labels.Get(model.InstanceLabel), label(s.Labels, hw.LabelID)}
		if at.id == "" && metric != "host_power_watts" {
			continue
		}
		i, known := found[at]
		if !known {
			i = len(all)
			found[at] = i
			all = append(all, status.Component{Device: at.device, ID: at.id})
		}
		c := &all[i]
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
		c := &all[found[where.place]]
		if v, ok := celsius[where]; ok && limit > 0 && (c.Limit == 0 || limit-v < c.Limit-c.Celsius) {
			c.Celsius, c.Limit = v, limit
		}
	}
	for i := range all {
		all[i].Since, all[i].First = all[i].Seen, true
	}
	for i := range before {
		was := &before[i]
		if i, known := found[place{was.Device, was.ID}]; known {
			if all[i].First = false; all[i].State == was.State {
				all[i].Since, all[i].First = was.Since, was.First
			}
		}
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
