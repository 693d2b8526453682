// Package inventory shows hardware to a person: the components of a machine or device as a tree, each with its state, from the
// hw_* samples of a probe.
package inventory

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"hwsagent/internal/text"
	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// Component is a part of a machine or device, built from its hw_* samples.
type Component struct {
	ID     string            `json:"id"`
	Name   string            `json:"name"`
	Type   string            `json:"type,omitempty"`
	State  string            `json:"state,omitempty"` // "" if the device reports none
	Parent string            `json:"parent,omitempty"`
	Facts  map[string]string `json:"facts,omitempty"`  // vendor, model, serial_number, …
	Values map[string]string `json:"values,omitempty"` // by metric and the labels that distinguish several values
}

// Inventory is the hardware that one probe reads.
type Inventory struct {
	Name       string       `json:"name"` // of the probe, or of the file read
	Type       string       `json:"type"` // of the probe
	Target     string       `json:"target,omitempty"`
	Device     *Device      `json:"device,omitempty"` // over SNMP
	Components []*Component `json:"components"`       // by type, name and id; never null
	// Machine has the values of the whole machine, by metric; empty for most probes.
	Machine map[string]string `json:"machine,omitempty"`
	Refused []string          `json:"refused,omitempty"` // values that are not sent because hardware cannot have them, with metric and component
	Problem string            `json:"problem,omitempty"` // why not everything could be read; "" if it could
}

// Add builds the inventory from the hw_* samples of a round, which have the names of the OpenTelemetry conventions.
func (inv *Inventory) Add(r *probes.Round) {
	inv.Components, inv.Machine = components(r.Samples())
	inv.Device = deviceOf(r.Samples())
	for _, s := range r.Refused() {
		name := "" // of the component
		for i := 0; i+1 < len(s.Labels); i += 2 {
			if s.Labels[i] == hw.LabelName {
				name = s.Labels[i+1]
			}
		}
		inv.Refused = append(inv.Refused, fmt.Sprintf("%s %s of %s", strings.TrimPrefix(s.Family.Name, hw.Prefix), number(s.Value), strconv.Quote(name)))
	}
}

// components groups the samples by component.
func components(samples []probes.Sample) (all []*Component, machine map[string]string) {
	byID, machine := map[string]*Component{}, map[string]string{}
	for _, s := range samples {
		labels := map[string]string{}
		for i := 0; i+1 < len(s.Labels); i += 2 {
			labels[s.Labels[i]] = s.Labels[i+1]
		}
		metric, ok := strings.CutPrefix(s.Family.Name, hw.Prefix)
		id := labels[hw.LabelID]
		switch {
		case !ok:
			continue
		case id == "":
			if strings.HasPrefix(metric, "host_") || strings.HasPrefix(metric, "kernel_") {
				machine[valueName(metric, s.Labels)] = number(s.Value)
			}
			continue
		}
		c := byID[id]
		if c == nil {
			c = &Component{ID: id, Facts: map[string]string{}, Values: map[string]string{}}
			byID[id] = c
		}
		c.Name, c.Type, c.Parent = cmp.Or(c.Name, labels[hw.LabelName]), cmp.Or(c.Type, labels[hw.LabelType]), cmp.Or(c.Parent, labels[hw.LabelParent])
		switch metric {
		case "status":
			if s.Value == 1 {
				c.State = joined(c.State, labels[hw.LabelState])
			}
		case "component_info":
			for name, value := range labels {
				if fact, ok := strings.CutPrefix(name, hw.Prefix); ok && value != "" && !slices.Contains([]string{"id", "name", "type", "parent"}, fact) {
					c.Facts[fact] = value
				}
			}
		default:
			c.Values[valueName(metric, s.Labels)] = number(s.Value)
		}
	}
	all = []*Component{}
	for _, c := range byID {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Component) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return all, machine
}

// joined combines two states of a component: ok is dropped beside a warning.
func joined(state, further string) string {
	if state == "" || state == "ok" {
		return further
	}
	return state + "+" + further
}

// valueName returns a metric with the labels that distinguish its values within one component.
func valueName(metric string, labels []string) string {
	for i := 0; i+1 < len(labels); i += 2 {
		switch labels[i] {
		case hw.LabelID, hw.LabelName, hw.LabelParent, hw.LabelType, hw.Source, hw.Serial, hw.UUID:
		default:
			if labels[i+1] != "" {
				metric += " " + labels[i+1]
			}
		}
	}
	return metric
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Write prints the components as a tree, each below its parent.
func (inv *Inventory) Write(w io.Writer) error {
	known := map[string]bool{}
	below := map[string][]*Component{}
	for _, c := range inv.Components {
		known[c.ID] = true
	}
	for _, c := range inv.Components {
		parent := c.Parent
		if !known[parent] || parent == c.ID {
			parent = ""
		}
		below[parent] = append(below[parent], c)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n", inv.Name, strings.TrimSpace(inv.Type+" "+inv.Target), counts(inv.Components))
	inv.writeDevice(&b)
	written := map[string]bool{}
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for _, c := range below[parent] {
			if written[c.ID] {
				continue
			}
			written[c.ID] = true
			b.WriteString(indent + c.line() + "\n")
			write(c.ID, indent+"  ")
		}
	}
	write("", "  ")
	for _, c := range inv.Components { // left over from a cycle of parents
		if !written[c.ID] {
			written[c.ID] = true
			b.WriteString("  " + c.line() + "\n")
			write(c.ID, "    ")
		}
	}
	if len(inv.Machine) > 0 {
		fmt.Fprintf(&b, "  the whole machine: %s\n", strings.Join(texts(inv.Machine), " "))
	}
	if n := len(inv.Refused); n > 0 {
		fmt.Fprintf(&b, "  not sent, because hardware cannot have it: %s: %s\n", text.Counted(n, "value"), strings.Join(inv.Refused, ", "))
	}
	if inv.Problem != "" {
		fmt.Fprintf(&b, "  not all could be read: %s\n", text.OneLine(inv.Problem))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// counts describes the number of components, in all and per state.
func counts(all []*Component) string {
	states := map[string]int{}
	for _, c := range all {
		states[cmp.Or(c.State, "without a state")]++
	}
	var parts []string
	for _, state := range [...]string{"failed", "degraded", "predicted_failure", "needs_cleaning", "unknown", "ok", "without a state"} {
		if states[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", states[state], state))
		}
	}
	text := fmt.Sprintf("%d components", len(all))
	if len(all) == 1 {
		text = "1 component"
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// line formats the component in one line: state, type, name, model, values.
func (c *Component) line() string {
	parts := []string{fmt.Sprintf("%-9s", cmp.Or(c.State, "-")), cmp.Or(c.Type, "sensor"), strconv.Quote(cmp.Or(c.Name, c.ID))}
	for _, fact := range []string{"vendor", "model", "serial_number", "firmware_version"} {
		if c.Facts[fact] != "" {
			parts = append(parts, text.OneLine(c.Facts[fact]))
		}
	}
	return strings.TrimRight(strings.Join(append(parts, texts(c.Values)...), " "), " ")
}

// texts returns names and values, in order.
func texts(values map[string]string) []string {
	var all []string
	for name, v := range values {
		all = append(all, text.OneLine(name)+" "+v)
	}
	slices.Sort(all)
	return all
}
