package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

// Bounds of what the page shows of the hardware.
const (
	mostComponents = 8 // with a bad state
	mostHot        = 6 // temperatures
	mostPower      = 6 // machines
	mostDevices    = 24
)

// hardwareView is the hardware as the page shows it.
type hardwareView struct {
	Devices   []kindView      // components by device, those with bad ones first
	Kinds     []kindView      // components by kind, likewise
	Worst     []componentView // those that fail, or will
	More      int             // of these, left out
	Left      int             // devices left out
	Hot       []gaugeView     // temperatures, the closest to their limits first
	Power     []gaugeView     // machines, the largest consumer first
	Machines  int             // with known power
	Total     string          // their power
	Count     string
	Bad       kindView // all components that fail or will; Name is their device, or how many devices
	Described bool     // there is hardware
}

// kindView counts the components of a kind or of a device.
type kindView struct{ Level, Name, Count, Bad string }

type componentView struct {
	Level, State, Name, Kind, Device, In, Made, Word, Since, Age string // Word is since, or since before
	Try                                                          string // what to do
	Clock                                                        moment
}

// gaugeView is a value beside its limit. Part is in percent of the limit.
type gaugeView struct {
	Level, Device, Name, Value, Limit, Age string
	Part                                   int
}

// newHardware returns the hardware with its worst parts, and with all devices or mostDevices.
func newHardware(s status.Status, all []status.Component, whole bool) hardwareView {
	v := hardwareView{}
	names := map[[2]string]string{}
	for _, c := range all {
		names[[2]string{c.Device, c.ID}] = cmp.Or(c.Name, c.ID)
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b status.Component) int {
		return cmp.Or(cmp.Compare(status.Rank(status.ComponentLevel(a.State)), status.Rank(status.ComponentLevel(b.State))), a.Since.Compare(b.Since))
	})
	n := 0
	for _, c := range all {
		if c.ID == "" {
			continue
		}
		n++
		if level := status.ComponentLevel(c.State); status.Rank(level) < status.Rank(status.SeverityNote) {
			if len(v.Worst) == mostComponents {
				v.More++
				continue
			}
			v.Worst = append(v.Worst, newComponent(s, c, level, names[[2]string{c.Device, c.Parent}]))
		}
	}
	v.Described, v.Count = n > 0, text.Counted(n, "component")
	if len(v.Worst) > 0 {
		v.Bad = counts(all, func(status.Component) string { return "all" })[0]
	}
	v.Kinds = counts(all, func(c status.Component) string { return inWords(c.Type) })
	v.Devices = counts(all, func(c status.Component) string { return c.Device })
	bad := slices.DeleteFunc(slices.Clone(v.Devices), func(k kindView) bool { return k.Bad == "" })
	if v.Bad.Name = text.Counted(len(bad), "device"); len(bad) == 1 {
		v.Bad.Name = bad[0].Name
	}
	if !whole {
		v.Devices, v.Left = cut(v.Devices, mostDevices)
	}
	v.addGauges(s, all)
	return v
}

// with returns a verdict on the data and the hardware: the worse level of both, and both in words.
func (v hardwareView) with(data status.Verdict) status.Verdict {
	if v.Bad.Bad != "" {
		data.Level = worse(data.Level, v.Bad.Level)
		data.Text += "; hardware of " + v.Bad.Name + ": " + v.Bad.Bad
	}
	return data
}

func newComponent(s status.Status, c status.Component, level, parent string) componentView {
	v := componentView{
		Level: level, State: inWords(c.State), Name: cmp.Or(c.Name, c.ID), Kind: inWords(c.Type), Device: c.Device, In: parent,
		Made: strings.Join(slices.DeleteFunc([]string{c.Vendor, c.Model, c.Serial}, func(s string) bool { return s == "" }), " "), Age: status.Ago(s.Now, c.Seen), Try: remedyOf(c),
	}
	if c.State == "" {
		v.State = "no state"
		return v
	}
	v.Word, v.Clock, v.Since = sinceWords(s.Now, c.Since, c.First)
	return v
}

// remedyOf says what to do about a component that fails or will; empty: its state does not tell.
func remedyOf(c status.Component) string {
	do := ""
	switch c.State {
	case "failed":
		do = "replace it"
	case "predicted_failure":
		do = "copy its data and replace it before it fails"
		if c.Type != "physical_disk" {
			do = "replace it before it fails"
		}
	case "needs_cleaning":
		return "clean it"
	default:
		return ""
	}
	if c.Serial != "" {
		do += "; serial " + c.Serial
	}
	return do
}

func inWords(key string) string { return strings.ReplaceAll(cmp.Or(key, "sensor"), "_", " ") }

// counts counts the components by what key says, and by state; the empty key does not count.
func counts(all []status.Component, key func(status.Component) string) (kinds []kindView) {
	type count struct {
		n     int
		level string
		bad   map[string]int
	}
	by := map[string]*count{}
	for _, c := range all { // the worst come first
		name := key(c)
		if c.ID == "" || name == "" {
			continue
		}
		k := by[name]
		if k == nil {
			k = &count{level: status.ComponentLevel(c.State), bad: map[string]int{}}
			by[name] = k
		}
		if k.n++; status.Rank(status.ComponentLevel(c.State)) < status.Rank(status.SeverityNote) {
			k.bad[c.State]++
		}
	}
	for name, k := range by {
		var bad []string
		for _, state := range [...]string{"failed", "degraded", "predicted_failure", "needs_cleaning"} {
			if k.bad[state] > 0 {
				bad = append(bad, fmt.Sprintf("%d %s", k.bad[state], inWords(state)))
			}
		}
		kinds = append(kinds, kindView{k.level, name, fmt.Sprint(k.n), strings.Join(bad, ", ")})
	}
	slices.SortFunc(kinds, func(a, b kindView) int {
		return cmp.Or(cmp.Compare(status.Rank(a.Level), status.Rank(b.Level)), strings.Compare(a.Name, b.Name))
	})
	return kinds
}

// addGauges adds the temperatures and the power.
func (v *hardwareView) addGauges(s status.Status, all []status.Component) {
	hot := slices.DeleteFunc(slices.Clone(all), func(c status.Component) bool { return c.Limit == 0 })
	slices.SortStableFunc(hot, func(a, b status.Component) int { return cmp.Compare(a.Limit-a.Celsius, b.Limit-b.Celsius) })
	for _, c := range hot[:min(len(hot), mostHot)] {
		v.Hot = append(v.Hot, gaugeView{marginLevel(c.Limit - c.Celsius), c.Device, cmp.Or(c.Name, c.ID), inventory.Celsius(c.Celsius), "of " + inventory.Celsius(c.Limit) + ",", status.Ago(s.Now, c.Seen), part(c.Celsius, c.Limit)})
	}
	power := slices.DeleteFunc(slices.Clone(all), func(c status.Component) bool { return c.Watts <= 0 })
	slices.SortStableFunc(power, func(a, b status.Component) int { return cmp.Compare(b.Watts, a.Watts) })
	total := 0.0
	for i, c := range power {
		if total += c.Watts; i < mostPower {
			v.Power = append(v.Power, gaugeView{status.LevelOK, c.Device, c.Name, inventory.Watts(c.Watts), "", status.Ago(s.Now, c.Seen), part(c.Watts, power[0].Watts)})
		}
	}
	v.Machines, v.Total = len(power), inventory.Watts(total)
}

// marginLevel judges how far a temperature is below its limit.
func marginLevel(celsius float64) string {
	switch {
	case celsius <= 0:
		return status.SeverityError
	case celsius < 5:
		return status.SeverityWarning
	}
	return status.LevelOK
}

func part(value, whole float64) int { return int(min(100, max(0, 100*value/whole))) }

func showHardware(p *page, v hardwareView) {
	if !v.Described {
		return
	}
	p.put(`<section>
<h2>Hardware <small>`, v.Count, `</small></h2>
`)
	showCounts(p, v.Kinds, false)
	showComponents(p, v.Worst, v.More)
	if len(v.Hot)+len(v.Power) > 0 {
		p.raw(`<div class="gauges">
`)
		showGauges(p, `Closest to their limits`, "", v.Hot)
		showGauges(p, `Power`, v.Total, v.Power)
		p.raw("</div>\n")
	}
	if len(v.Devices) > 0 {
		p.number(`<h3>Devices <small>`, len(v.Devices)+v.Left, "</small></h3>\n")
		showCounts(p, v.Devices, true)
		showLeft(p, v.Left, ` more devices`)
	}
	p.raw("</section>\n\n")
}

// showCounts writes counts of components, those of devices with links to their pages.
func showCounts(p *page, all []kindView, devices bool) {
	p.raw("<ul class=\"kinds\">\n")
	for _, k := range all {
		p.put(`<li class="`, k.Level, `"><i></i>`)
		if devices {
			showDeviceLink(p, k.Name)
		} else {
			p.text(k.Name)
		}
		p.put(` <b>`, k.Count, `</b>`)
		if k.Bad != "" {
			p.put(`, <span class="state">`, k.Bad, `</span>`)
		}
		p.raw("</li>\n")
	}
	p.raw("</ul>\n")
}

// showDeviceLink writes the name of a device, which leads to its page.
func showDeviceLink(p *page, name string) {
	p.raw(`<a href="/device?name=`)
	p.encoded(name)
	p.put(`"><bdi>`, name, `</bdi></a>`)
}

// showComponents writes a row for each of some components, of which more are left out.
func showComponents(p *page, some []componentView, more int) {
	if len(some) == 0 {
		return
	}
	p.raw(`<ul class="rows parts">
`)
	for _, c := range some {
		p.put(`<li class="`, c.Level, `"><span class="state"><i></i>`)
		p.put(``, c.State, `</span> <span><b>`)
		p.put(``, c.Name, `</b> <small>`)
		p.put(``, c.Kind, `</small></span> <span>`)
		showDeviceLink(p, c.Device)
		if c.In != "" {
			p.put(`, in `, c.In, ``)
		}
		p.put(` <small>`, c.Made, `</small>`)
		if c.Try != "" {
			p.put(` <span class="try">Try: `, c.Try, `</span>`)
		}
		p.raw(`</span> <span class="when">`)
		p.put(``, c.Word, ` `)
		p.moment(c.Clock)
		p.raw(` `)
		p.put(`<small>`, c.Since, `</small></span> `)
		p.put(`<span class="cost"><small>read `, c.Age, "</small></span></li>\n")
	}
	if more > 0 {
		p.number(`<li class="more">and `, more, " more, on the pages of their devices</li>\n")
	}
	p.raw("</ul>\n")
}

// showGauges writes values as bars beside their limits.
func showGauges(p *page, title markup, total string, all []gaugeView) {
	if len(all) == 0 {
		return
	}
	p.raw(`<div class="card"><h3>` + title)
	if total != "" {
		p.put(` <small>`, total, ` in all</small>`)
	}
	p.raw("</h3>\n<ul>\n")
	for _, g := range all {
		p.put(`<li class="`, g.Level, `"><span>`)
		if g.Device != "" {
			showDeviceLink(p, g.Device)
			p.rawIf(g.Name != "", ` · `)
		}
		p.put(``, g.Name, `</span> `)
		p.number(`<svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect class="full" width="100" height="1"/><rect class="part" width="`, g.Part, `" height="1"/></svg> `)
		p.put(`<b>`, g.Value, `</b> `)
		p.put(`<small>`, g.Limit, ` `)
		p.put(``, g.Age, "</small></li>\n")
	}
	p.raw("</ul></div>\n")
}
