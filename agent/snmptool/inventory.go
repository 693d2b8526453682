package snmptool

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"hwsagent/probes"
	"hwsagent/probes/snmp"
)

// Component is a part of a device, as its hw_* samples tell.
type Component struct {
	ID     string            `json:"id"`
	Name   string            `json:"name"`
	Type   string            `json:"type,omitempty"`
	State  string            `json:"state,omitempty"` // "" where the device tells none
	Parent string            `json:"parent,omitempty"`
	Facts  map[string]string `json:"facts,omitempty"`  // vendor, model, serial_number, …
	Values map[string]string `json:"values,omitempty"` // by metric, with what tells several apart
}

// Inventory is a device's hardware.
type Inventory struct {
	Target     string       `json:"target"`
	Components []*Component `json:"components"` // by type, name and id
	Problem    string       `json:"problem,omitempty"`
}

// inventoryWithin bounds the reading.
const inventoryWithin = 5 * time.Minute

// Take reads the hardware of a device, with all modules that know hardware.
func Take(ctx context.Context, o Options) (Inventory, error) {
	c := config(o.Target, o.Auth, o.Timeout, o.Retries)
	c.Modules = []string{"entity_sensor", "ucd_lmsensors"}
	if slices.Contains(snmp.Modules(), "hardware") {
		c.Modules, c.Definitions = []string{"hardware"}, o.Definitions
	}
	p, err := snmp.New(c, nil, o.Logger)
	if err != nil {
		return Inventory{Target: o.Target}, err
	}
	defer func() { _ = p.Close() }()
	ctx, cancel := context.WithTimeout(ctx, inventoryWithin)
	defer cancel()
	r := probes.NewRound(0)
	err = p.Collect(ctx, r)
	inv := Inventory{Target: o.Target, Components: components(r.Samples())}
	if err != nil {
		inv.Problem = err.Error()
		if len(inv.Components) == 0 {
			return inv, err
		}
	}
	return inv, nil
}

// components puts the samples of each component together.
func components(samples []probes.Sample) []*Component {
	byID := map[string]*Component{}
	for _, s := range samples {
		labels := map[string]string{}
		for i := 0; i+1 < len(s.Labels); i += 2 {
			labels[s.Labels[i]] = s.Labels[i+1]
		}
		metric, ok := strings.CutPrefix(s.Family.Name, "hw_")
		id := labels["hw_id"]
		if !ok || id == "" {
			continue
		}
		c := byID[id]
		if c == nil {
			c = &Component{ID: id, Facts: map[string]string{}, Values: map[string]string{}}
			byID[id] = c
		}
		c.Name, c.Type, c.Parent = cmp.Or(c.Name, labels["hw_name"]), cmp.Or(c.Type, labels["hw_type"]), cmp.Or(c.Parent, labels["hw_parent"])
		switch metric {
		case "status":
			if s.Value == 1 {
				c.State = labels["hw_state"]
			}
		case "component_info":
			for name, value := range labels {
				if fact, ok := strings.CutPrefix(name, "hw_"); ok && value != "" && !slices.Contains([]string{"id", "name", "type", "parent"}, fact) {
					c.Facts[fact] = value
				}
			}
		default:
			name := metric
			for _, l := range []string{"hw_limit_type", "hw_error_type", "error_type", "network_io_direction", "hw_quality"} {
				if labels[l] != "" {
					name += " " + labels[l]
				}
			}
			c.Values[name] = strconv.FormatFloat(s.Value, 'g', -1, 64)
		}
	}
	var all []*Component
	for _, c := range byID {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Component) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return all
}

// Write prints the components as a tree, each below the one that it is in.
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
	fmt.Fprintf(&b, "%s: %d components\n", inv.Target, len(inv.Components))
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
	for _, c := range inv.Components { // of a circle of parents
		if !written[c.ID] {
			written[c.ID] = true
			b.WriteString("  " + c.line() + "\n")
			write(c.ID, "    ")
		}
	}
	if inv.Problem != "" {
		fmt.Fprintf(&b, "not all could be read: %s\n", inv.Problem)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line is the component in one line: state, type, name, model, values.
func (c *Component) line() string {
	parts := []string{fmt.Sprintf("%-9s", cmp.Or(c.State, "-")), cmp.Or(c.Type, "sensor"), strconv.Quote(cmp.Or(c.Name, c.ID))}
	for _, fact := range []string{"vendor", "model", "serial_number", "firmware_version"} {
		if c.Facts[fact] != "" {
			parts = append(parts, oneLine(c.Facts[fact]))
		}
	}
	var values []string
	for name, v := range c.Values {
		values = append(values, name+" "+v)
	}
	slices.Sort(values)
	return strings.TrimRight(strings.Join(append(parts, values...), " "), " ")
}
