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
	"time"

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

	// Readings are the Values for people, in order. Seen is the time of the newest sample; zero: read just now. Since is when the
	// component came into its state, or, if First, when the agent first saw it there; zero: unknown.
	Readings []Reading `json:"-"`
	Seen     time.Time `json:"-"`
	Since    time.Time `json:"-"`
	First    bool      `json:"-"`
}

// Inventory is the hardware that one probe reads, or of which one device has samples.
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

	Whole []Reading `json:"-"` // Machine for people
}

// Sample is a sample of a probe.
type Sample struct {
	Name   string
	Labels []string // name, value, name, value, …
	Value  float64
	At     time.Time // zero: read just now
}

// Add builds the inventory from the samples of a round, which have the names of the OpenTelemetry conventions.
func (inv *Inventory) Add(r *probes.Round) {
	var all []Sample
	for _, s := range r.Samples() {
		all = append(all, Sample{Name: s.Family.Name, Labels: s.Labels, Value: s.Value})
	}
	inv.Build(all)
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

// Build builds the inventory from samples, those of hw_* and of the device's description.
func (inv *Inventory) Build(samples []Sample) {
	inv.Components, inv.Whole = components(samples)
	inv.Machine, inv.Device = values(inv.Whole), deviceOf(samples)
}

// components groups the samples by component.
func components(samples []Sample) (all []*Component, whole []Reading) {
	byID := map[string]*Component{}
	for _, s := range samples {
		labels := map[string]string{}
		for i := 0; i+1 < len(s.Labels); i += 2 {
			labels[s.Labels[i]] = s.Labels[i+1]
		}
		metric, ok := strings.CutPrefix(s.Name, hw.Prefix)
		id := labels[hw.LabelID]
		switch {
		case !ok:
			continue
		case id == "":
			if strings.HasPrefix(metric, "host_") || strings.HasPrefix(metric, "kernel_") {
				whole = append(whole, newReading(metric, s))
			}
			continue
		}
		c := byID[id]
		if c == nil {
			c = &Component{ID: id, Facts: map[string]string{}}
			byID[id] = c
		}
		c.add(metric, s, labels)
	}
	all = []*Component{}
	for _, c := range byID {
		c.Readings, c.Values = sorted(c.Readings), values(c.Readings)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Component) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), natural(a.Name, b.Name), natural(a.ID, b.ID))
	})
	return all, sorted(whole)
}

// add adds a sample of the component.
func (c *Component) add(metric string, s Sample, labels map[string]string) {
	c.Name, c.Type, c.Parent = cmp.Or(c.Name, labels[hw.LabelName]), cmp.Or(c.Type, labels[hw.LabelType]), cmp.Or(c.Parent, labels[hw.LabelParent])
	if s.At.After(c.Seen) {
		c.Seen = s.At
	}
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
		c.Readings = append(c.Readings, newReading(metric, s))
	}
}

// natural compares names such that FAN2 comes before FAN10.
func natural(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if n, m := digits(a[i:]), digits(b[i:]); n > 0 && m > 0 {
			x, y := strings.TrimLeft(a[i:i+n], "0"), strings.TrimLeft(b[i:i+m], "0")
			if by := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); by != 0 {
				return by
			}
		}
		if a[i] != b[i] {
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// digits returns how many digits a text begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

func sorted(readings []Reading) []Reading {
	slices.SortStableFunc(readings, func(a, b Reading) int { return strings.Compare(a.key, b.key) })
	return readings
}

// joined combines two states of a component: ok is dropped beside a warning.
func joined(state, further string) string {
	if state == "" || state == "ok" {
		return further
	}
	return state + "+" + further
}

// Walk visits the components as a tree: each after the one that contains it, at its depth. A circle of parents begins anywhere.
func (inv *Inventory) Walk(visit func(c *Component, depth int)) {
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
	visited := map[string]bool{}
	var walk func(all []*Component, depth int)
	walk = func(all []*Component, depth int) {
		for _, c := range all {
			if !visited[c.ID] {
				visited[c.ID] = true
				visit(c, depth)
				walk(below[c.ID], depth+1)
			}
		}
	}
	walk(below[""], 0)
	walk(inv.Components, 0) // left over from a circle
}

// Write prints the components as a tree, each below its parent.
func (inv *Inventory) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n", inv.Name, strings.TrimSpace(inv.Type+" "+inv.Target), counts(inv.Components))
	inv.writeDevice(&b)
	inv.Walk(func(c *Component, depth int) {
		c.write(&b, strings.Repeat("  ", depth+1))
	})
	if len(inv.Whole) > 0 {
		b.WriteString("  the whole machine:")
		writeLines(&b, "    ", Lines("host", inv.Whole))
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

// write prints the component: state, type, name, maker; its value beside them, or several below them.
func (c *Component) write(b *strings.Builder, indent string) {
	parts := []string{fmt.Sprintf("%-9s", cmp.Or(c.State, "-")), cmp.Or(c.Type, "sensor"), strconv.Quote(cmp.Or(c.Name, c.ID))}
	for _, fact := range []string{"vendor", "model", "serial_number", "firmware_version"} {
		if c.Facts[fact] != "" {
			parts = append(parts, text.OneLine(c.Facts[fact]))
		}
	}
	b.WriteString(indent + strings.Join(parts, " "))
	writeLines(b, indent+"    ", Lines(c.Type, c.Readings))
}

// writeLines ends a line with a value, or prints several below it.
func writeLines(b *strings.Builder, indent string, lines []Line) {
	if len(lines) == 1 {
		b.WriteString(" " + lines[0].String())
	}
	b.WriteString("\n")
	for i := 0; len(lines) > 1 && i < len(lines); i++ {
		b.WriteString(indent + lines[i].String() + "\n")
	}
}
