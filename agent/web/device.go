package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

// Bounds of a device's page, which goes to each reader every two seconds.
const (
	mostLines  = 400 // components and their values; those with problems, and what contains them, come first
	mostValues = 12  // of a component
	mostLetter = 100 // of a text of the device
)

// deviceView is the page of one device or machine: the tree of its components.
type deviceView struct {
	Name, Level, Summary, About string
	Whole                       []valueView // of the whole machine
	Worst                       []partView  // the first with problems, also in the tree
	Parts                       []partView
	Left                        int
}

// partView is a component, Depth levels below the device.
type partView struct {
	Depth                          int
	Level, State, Name, Kind, Made string
	Word, Since, Age, Try          string // Word is since, or since before
	Clock                          moment
	Values                         []valueView
	More                           int // values left out
}

type valueView struct{ Level, Name, Value, Limits, Age string }

// newDevice returns the page of a device, with all its components or at most mostLines.
func newDevice(now time.Time, inv inventory.Inventory, all bool) deviceView {
	v := deviceView{Name: inv.Name, Level: status.LevelOK, Summary: "no hardware of it is in memory"}
	if d := inv.Device; d != nil {
		v.About = status.Cut(strings.Join(slices.DeleteFunc([]string{d.Name, d.Vendor, d.Family, d.Description}, func(s string) bool { return s == "" }), " · "), 3*mostLetter)
	}
	v.Whole, _ = newValues(now, time.Time{}, wholeLines(inv), mostValues)
	parts, parents := partsOf(now, inv)
	states := map[string]int{}
	for _, p := range parts {
		if status.Rank(p.Level) < status.Rank(status.SeverityNote) {
			p.Depth = 0
			v.Worst = append(v.Worst, p)
		}
		v.Level = worse(v.Level, p.Level)
		states[p.State]++
	}
	if len(parts)+len(v.Whole) == 0 {
		v.Level = status.SeverityNote
	}
	if len(parts) > 0 {
		v.Summary = text.Counted(len(parts), "component")
	}
	for _, state := range [...]string{"failed", "degraded", "predicted failure", "needs cleaning"} {
		if states[state] > 0 {
			v.Summary += fmt.Sprintf(", %d %s", states[state], state)
		}
	}
	slices.SortStableFunc(v.Worst, func(a, b partView) int { return cmp.Compare(status.Rank(a.Level), status.Rank(b.Level)) })
	v.Worst = first(v.Worst, mostComponents)
	v.Parts = parts
	if !all {
		v.Parts = worstParts(parts, parents)
	}
	v.Left = len(parts) - len(v.Parts)
	return v
}

// wholeLines returns the values of the whole machine. The heating margin has the name of its sensor, and the level and mark of a
// temperature that is as close to its limit.
func wholeLines(inv inventory.Inventory) []inventory.Line {
	all := inventory.Lines("host", inv.Whole)
	for i := range all {
		sensor, margin := closest(inv)
		if all[i].Name != "heating margin" || sensor == "" {
			continue
		}
		all[i].Limits = "to the limit of " + status.Cut(sensor, mostLetter)
		if level := marginLevel(margin); level != status.LevelOK {
			all[i].Level, all[i].Value = level, mark(level)+" "+all[i].Value
		}
	}
	return all
}

// closest returns the name of the temperature sensor that is closest to one of its upper limits, and how far below it is; empty: none has one.
func closest(inv inventory.Inventory) (name string, margin float64) {
	for _, c := range inv.Components {
		for _, r := range c.Readings {
			if c.Type != "temperature" || r.Metric != "temperature_celsius" {
				continue
			}
			for _, l := range c.Readings {
				if l.Metric == "temperature_limit_celsius" && l.Of == r.Of && strings.HasPrefix(l.Limit, "high.") && (name == "" || l.Value-r.Value < margin) {
					name, margin = cmp.Or(c.Name, c.ID), l.Value-r.Value
				}
			}
		}
	}
	return name, margin
}

// partsOf returns the components in the order of the tree, and for each the place of the one that contains it; -1: none.
func partsOf(now time.Time, inv inventory.Inventory) (parts []partView, parents []int) {
	var path []int // of the components above
	inv.Walk(func(c *inventory.Component, depth int) {
		path = append(path[:depth], len(parts))
		parent := -1
		if depth > 0 {
			parent = path[depth-1]
		}
		parts, parents = append(parts, newPart(now, c, depth)), append(parents, parent)
	})
	return parts, parents
}

// worstParts returns mostLines of the parts in their order: those with problems and what contains them, then the first ones.
func worstParts(parts []partView, parents []int) (shown []partView) {
	keep := make([]bool, len(parts))
	n := 0
	for _, anyLevel := range []bool{false, true} {
		for i, p := range parts {
			if !anyLevel && status.Rank(p.Level) >= status.Rank(status.SeverityNote) {
				continue
			}
			for at := i; at >= 0 && !keep[at] && n < mostLines; at = parents[at] {
				keep[at] = true
				n += 1 + len(parts[at].Values)
			}
		}
	}
	for i, p := range parts {
		if keep[i] {
			shown = append(shown, p)
		}
	}
	return shown
}

func newPart(now time.Time, c *inventory.Component, depth int) partView {
	state := ""
	for _, one := range strings.Split(c.State, "+") { // a source may report several
		state = status.WorseState(state, one)
	}
	p := partView{Depth: depth, Level: status.ComponentLevel(state), State: cmp.Or(strings.ReplaceAll(state, "_", " "), "no state"), Name: status.Cut(cmp.Or(c.Name, c.ID), mostLetter), Kind: inWords(c.Type), Age: status.Ago(now, c.Seen)}
	of := status.Component{Type: c.Type, State: state, Serial: status.Cut(c.Facts["serial_number"], mostLetter)}
	p.Try = remedyOf(of)
	p.Made = madeOf(c.Facts)
	if status.Rank(p.Level) < status.Rank(status.SeverityNote) {
		p.Word, p.Clock, p.Since = sinceWords(now, c.Since, c.First)
	}
	p.Values, p.More = newValues(now, c.Seen, inventory.Lines(c.Type, c.Readings), mostValues)
	for _, l := range p.Values {
		p.Level = worse(p.Level, l.Level)
	}
	return p
}

// madeOf returns who made a component, and what identifies it.
func madeOf(facts map[string]string) string {
	parts := []string{strings.TrimSpace(facts["vendor"] + " " + facts["model"])}
	for _, fact := range [...]struct{ key, word string }{
		{"serial_number", "serial"}, {"firmware_version", "firmware"}, {"bios_version", "BIOS"}, {"driver_version", "driver"}, {"memory_type", ""},
		{"physical_disk_type", ""}, {"network_physical_address", ""}, {"device", ""},
	} {
		if value := facts[fact.key]; value != "" {
			parts = append(parts, strings.TrimSpace(fact.word+" "+value))
		}
	}
	for i := range parts {
		parts[i] = status.Cut(parts[i], mostLetter)
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

// sinceWords returns since when something is in its state.
func sinceWords(now, since time.Time, first bool) (word string, clock moment, span string) {
	if since.IsZero() {
		return "", moment{}, ""
	}
	clock, span = newMoment(now, since), status.Span(max(0, now.Sub(since)))
	if first { // the agent has seen no other state
		return "since before", clock, "first seen " + status.Ago(now, since)
	}
	return "since", clock, span
}

// newValues returns at most so many values. A value says its own age if it differs from that of the component.
func newValues(now, seen time.Time, lines []inventory.Line, most int) (all []valueView, more int) {
	lines, more = cut(lines, most)
	for _, l := range lines {
		v := valueView{Level: cmp.Or(l.Level, status.LevelOK), Name: status.Cut(l.Name, mostLetter), Value: l.Value, Limits: l.Limits}
		if seen.Sub(l.At) > time.Second || seen.IsZero() {
			v.Age = status.Ago(now, l.At)
		}
		all = append(all, v)
	}
	return all, more
}

func deviceScreen() screenful { return screenful{deviceTitle, deviceLevel, deviceMain} }

func deviceLevel(v view) string { return v.Device.Level }

func deviceTitle(v view) string {
	return mark(v.Device.Level) + " " + v.Device.Name + ": " + v.Device.Summary
}

func deviceMain(p *page, v view) {
	startMain(p, v, deviceTitle(v))
	p.raw(`<p class="who"><a href="/"><b>hwsagent</b></a>`)
	showWho(p, v)
	showConclusion(p, v.Device.Level, v.Device.Name+": "+v.Device.Summary)
	if v.Device.About != "" {
		p.put(`<p>`, v.Device.About, "</p>\n")
	}
	if len(v.Device.Worst) > 0 {
		p.raw("<section>\n<h2>With problems</h2>\n")
		showTree(p, v.Device.Worst)
		p.raw("</section>\n")
	}
	if len(v.Device.Whole) > 0 {
		p.raw("<section>\n<h2>The whole machine</h2>\n" + `<div class="card values">`)
		showValues(p, v.Device.Whole, 0)
		p.raw("</div>\n</section>\n")
	}
	if len(v.Device.Parts) > 0 {
		p.raw("<section>\n<h2>Components</h2>\n")
		showTree(p, v.Device.Parts)
		if v.Device.Left > 0 {
			p.number(`<p class="more">`, v.Device.Left, ` more without problems: <a href="/device?all&amp;name=`)
			p.encoded(v.Device.Name)
			p.raw("\">all components</a></p>\n")
		}
		p.raw("</section>\n")
	}
	p.put(`<footer>hwsagent `, v.Version, ``)
	p.raw(` · <a href="/">overview</a> · the same in a terminal: <code>hwsagent inventory</code></footer>
</main>`)
}

// showTree writes the components as lists in lists.
func showTree(p *page, parts []partView) {
	depth := -1
	for _, one := range parts {
		at := min(one.Depth, depth+1)
		switch {
		case depth < 0:
			p.raw(`<ul class="rows tree">`)
		case at > depth:
			p.raw(`<ul>`)
		default:
			for ; depth > at; depth-- {
				p.raw(`</li></ul>`)
			}
			p.raw(`</li>`)
		}
		depth = at
		showPart(p, one)
	}
	for ; depth >= 0; depth-- {
		p.raw(`</li></ul>`)
	}
	p.raw("\n")
}

// showPart begins the item of a component, and writes its row.
func showPart(p *page, one partView) {
	p.put(`<li class="`, one.Level, `"><div class="comp"><span class="state"><i></i>`)
	p.put(``, one.State, `</span> <span class="name"><b>`)
	p.put(``, one.Name, `</b> <small>`)
	p.put(``, one.Kind, ``)
	if one.Made != "" {
		p.put(` · `, one.Made, ``)
	}
	p.raw(`</small>`)
	if one.Word != "" {
		p.put(` <span class="since">`, one.Word, ` `)
		p.moment(one.Clock)
		p.put(`, `, one.Since, `</span>`)
	}
	if one.Try != "" {
		p.put(` <span class="try">Try: `, one.Try, `</span>`)
	}
	p.raw(`</span> <span class="values">`)
	showValues(p, one.Values, one.More)
	p.put(`</span> <small class="age">`, one.Age, "</small></div>\n")
}

func showValues(p *page, all []valueView, more int) {
	for _, l := range all {
		p.put(`<span class="`, l.Level, `">`)
		if l.Name != "" {
			p.put(`<span>`, l.Name, `</span> `)
		}
		p.put(`<b>`, l.Value, `</b>`)
		if l.Limits != "" {
			p.put(` <small>`, l.Limits, `</small>`)
		}
		if l.Age != "" {
			p.put(` <small>`, l.Age, `</small>`)
		}
		p.raw(`</span> `)
	}
	if more > 0 {
		p.number(`<small>and `, more, ` more</small>`)
	}
}
