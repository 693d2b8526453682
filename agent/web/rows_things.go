package web

import (
	"strings"

	"hwsagent/agent/status"
)

// showThings shows a row for each thing with problems.
func showThings(p *page, v view) {
	if len(v.Things) == 0 {
		return
	}
	p.raw(`<section aria-label="Problems">
<div class="rows things">
`)
	for _, t := range v.Things {
		showThing(p, t)
	}
	showLeft(p, v.Left.Bad, ` more with problems`)
	p.raw(`</div>
</section>
`)
}

// showThing writes the visible part of a closed row, and its details.
func showThing(p *page, t thing) {
	p.put(`<details class="`, t.Level, `">
<summary><span class="state"><i></i>`)
	p.put(``, t.Word, `</span> <span class="name">`)
	showNames(p, t)
	p.put(`</span> <span class="cause"><strong>`, t.Cause, `</strong>`)
	for i, a := range t.Tries {
		if i < rowTries {
			showAdvice(p, a)
		}
	}
	p.raw(`</span> <span class="when">`)
	if t.Clock.Instant != "" {
		p.raw(`since `)
		p.moment(t.Clock)
		p.raw(` `)
		p.put(`<small>`, t.Since, `</small>`)
	}
	p.put(`</span> <span class="cost">`, t.Cost, ` `)
	if t.Room != "" {
		p.raw(`<small`)
		p.rawIf(t.Lost, ` class="bad"`)
		p.put(`>`, t.Room, `</small>`)
	}
	p.put(`</span></summary>
<div id="`, t.ID, `">
`)
	showFindings(p, t)
	for _, r := range t.Targets {
		showHeading(p, t, r.Name)
		showTarget(p, r)
	}
	for _, one := range t.Probes {
		showHeading(p, t, one.Name)
		showProbe(p, one)
	}
	for _, j := range t.Jobs {
		showJobMore(p, j)
	}
	for _, r := range t.Intakes {
		showHeading(p, t, r.Name)
		showReceiver(p, r)
	}
	if t.Log != nil {
		showLogMore(p, *t.Log)
	}
	showLeft(p, t.Left, ` more`)
	p.raw("</div></details>\n")
}

// showNames writes which things the row is about.
func showNames(p *page, t thing) {
	if len(t.Names) == 0 {
		p.put(`<b>`, ownName(t.Kind), `</b>`)
		return
	}
	p.raw(`<b>`)
	for i, name := range t.Names {
		if i == rowNames {
			p.number(` and `, len(t.Names)-i, ` more`)
			break
		}
		p.rawIf(i > 0, `, `)
		p.put(`<bdi>`, name, `</bdi>`)
	}
	p.raw(`</b> <small>`)
	if len(t.Names) > 1 {
		p.number(``, len(t.Names), ` `)
	}
	p.text(t.Kind)
	p.rawIf(len(t.Names) > 1, `s`)
	if n := len(t.Findings) - 1; n > 0 {
		p.number(`, `, n, ` more problem`)
		p.rawIf(n > 1, `s`)
	}
	p.raw(`</small>`)
	if len(t.Targets) == 1 {
		showCurve(p, t.Targets[0])
	}
}

// ownName returns the name of a part of the agent that has no name of its own.
func ownName(kind string) string {
	switch kind {
	case "log":
		return "Log"
	case "config":
		return "Configuration"
	case "clock":
		return "Clock"
	case "pull":
		return "Pull endpoint"
	}
	return kind
}

// showHeading names one of several things of a row.
func showHeading(p *page, t thing, name string) {
	if len(t.Names) > 1 {
		p.put(`<h3>`, name, "</h3>\n")
	}
}

// showFindings writes the whole texts, the remedies that the row leaves out, and the last errors.
func showFindings(p *page, t thing) {
	for i, f := range t.Findings {
		words := "" // of another program
		if f.Text != f.Cause && strings.HasPrefix(f.Text, f.Cause) {
			words = f.Cause
		}
		p.put(`<p class="what">`, words, ``)
		p.sentence(f.Text[len(words):])
		for j, a := range f.Tries {
			if i > 0 || j >= rowTries {
				showAdvice(p, a)
			}
		}
		p.raw("</p>\n")
	}
	if len(t.Errors) > 0 {
		p.raw(`<ul class="events">`)
		for _, e := range t.Errors {
			showEvent(p, e)
		}
		p.raw("</ul>\n")
	}
	if t.Kind == "target" && len(t.Names) > 0 {
		p.put(`<p class="more">Step by step: <code>hwsagent targets test `, t.Names[0], `</code> · what happened: <code>hwsagent events</code></p>
`)
	}
}

// showAdvice writes a remedy, with its commands as such.
func showAdvice(p *page, a status.Advice) {
	p.raw(` <span class="try">Try`)
	if a.For != "" {
		p.put(` (`, a.For, `)`)
	}
	p.raw(`: `)
	for _, piece := range a.Pieces() {
		if piece.Command {
			p.put(`<code>`, piece.Text, `</code>`)
		} else {
			p.text(piece.Text)
		}
	}
	p.raw(`</span>`)
}

// showEvent writes one event.
func showEvent(p *page, e eventLine) {
	p.put(`<li class="`, e.Level, ``)
	p.raw(`">`)
	p.moment(e.At)
	p.put(` <span class="state">`, e.Kind, `</span>`)
	if len(e.Subjects) > 0 {
		p.put(` <b>`, strings.Join(e.Subjects, ", "), `</b>`)
	}
	if e.Text != "" {
		p.raw(`: `)
	}
	switch e.Kind {
	case status.OutcomeLost, status.OutcomeRefused, status.OutcomeUnconfirmed:
		p.sentence(e.Text)
	default:
		p.text(e.Text)
	}
	p.raw("</li>\n")
}
