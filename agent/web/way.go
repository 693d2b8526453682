package web

import (
	"fmt"
	"strings"

	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

// wayView is the way of the data: from the inputs through the log to the targets, with the rates between them.
type wayView struct {
	Inputs, Log, Targets stop
	In, Out              flow
}

// stop is a place on the way of the data.
type stop struct {
	Level, Figure, Text string
	Bad, Warned, Well   int // how many inputs or targets; of the log: percent
	Unknown             int // targets whose delivery is not known: neither good nor bad
}

// flow is what goes from one stop to the next.
type flow struct{ Level, Rate string }

// newWay derives the picture from v, whose things are divided already.
func newWay(v *view, s status.Status) wayView {
	w := wayView{
		Inputs: stop{Level: status.LevelOK, Well: len(v.Probes) + len(v.Well) + len(v.Intakes), Figure: inputsText(s)},
		Log:    stop{Level: status.LevelOK, Well: v.Log.Fill, Figure: v.Log.Bytes + " of " + v.Log.Max},
		In:     flow{status.LevelOK, v.Log.In}, Out: flow{Level: status.LevelOK},
	}
	w.Targets = stop{Level: status.LevelOK, Figure: text.Counted(len(s.Targets), "target")}
	for _, r := range v.Rows {
		if r.Level == status.LevelOK {
			w.Targets.Well++
		} else {
			w.Targets.Unknown++
		}
	}
	for _, t := range v.Things {
		switch t.Kind {
		case "probe", "scrape", "receiver":
			w.Inputs.add(t)
		case "target":
			w.Targets.add(t)
		case "log":
			w.Log.Level = worse(w.Log.Level, t.Level)
		}
	}
	w.addTexts(v, s)
	return w
}

// add counts the things of a row with problems.
func (p *stop) add(t thing) {
	p.Level = worse(p.Level, t.Level)
	switch t.Level {
	case status.SeverityError:
		p.Bad += len(t.Names)
	case status.SeverityWarning:
		p.Warned += len(t.Names)
	default:
		p.Well += len(t.Names)
	}
}

// addTexts says what is stuck, and colours the way to it.
func (w *wayView) addTexts(v *view, s status.Status) {
	w.Inputs.Text = "all well"
	if n := w.Inputs.Bad + w.Inputs.Warned; n > 0 {
		w.Inputs.Text = fmt.Sprint(n) + " with problems"
	} else if s.WAL.Error != "" {
		w.Inputs.Text, w.Inputs.Level = status.Samples(s.WAL.Refused)+" refused by the log", status.SeverityError
		w.Inputs.Bad, w.Inputs.Well = w.Inputs.Well, 0
	}
	switch {
	case s.WAL.Error != "":
		w.Log.Text, w.In.Level = "cannot be written, "+v.Log.Free+" free on disk", status.SeverityError
	case v.Log.Lasts != "":
		w.Log.Text = "lasts " + v.Log.Lasts + " without targets"
	default:
		w.Log.Text = v.Log.Free + " free on disk"
	}
	sent, waiting, worst := 0.0, uint64(0), 0.0
	for _, t := range s.Targets {
		sent += t.SentPerSec
		worst = max(worst, t.LagSeconds)
	}
	for _, t := range v.Things {
		for _, r := range t.Targets {
			waiting = max(waiting, r.PendingSamples)
		}
	}
	w.Out.Rate = status.Rate(sent)
	w.Targets.Text = status.Span(status.Seconds(worst)) + " behind at most"
	if s.WAL.Error != "" {
		w.Targets.Text, w.Out.Level = "nothing new comes", status.SeverityWarning
	}
	if n := w.Targets.Bad + w.Targets.Warned; n > 0 {
		w.Targets.Text = fmt.Sprintf("%d with problems, %s waiting", n, status.Count(waiting))
		switch room := status.Room(s, s.Targets...); {
		case room != "": // how much waits is in the rows
			w.Targets.Text = fmt.Sprintf("%d with problems, %s", n, room)
		case n > 1: // all have the same samples, so that a sum would say nothing
			w.Targets.Text = fmt.Sprintf("%d with problems, up to %s waiting each", n, status.Count(waiting))
		}
		if w.Out.Level = status.SeverityWarning; w.Targets.Well == 0 {
			w.Out.Level = w.Targets.Level
		}
	}
}

// worse returns the worse of two levels, of which a note is as good as none.
func worse(a, b string) string {
	if status.Rank(b) < min(status.Rank(a), status.Rank(status.SeverityNote)) {
		return b
	}
	return a
}

// inputsText counts the inputs by kind.
func inputsText(s status.Status) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{len(s.Probes), "probe"}, {len(s.Scrape), "job"}, {len(s.Receivers), "receiver"}} {
		if p.n > 0 {
			parts = append(parts, text.Counted(p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func showWay(p *page, w wayView) {
	p.raw(`<section class="way" aria-label="The way of the data">
`)
	showStop(p, `Inputs`, w.Inputs, w.Inputs.Bad+w.Inputs.Warned+w.Inputs.Well)
	showFlow(p, w.In, ` in`)
	showStop(p, `Log`, w.Log, 100)
	showFlow(p, w.Out, ` sent`)
	showStop(p, `Targets`, w.Targets, w.Targets.Bad+w.Targets.Warned+w.Targets.Well+w.Targets.Unknown)
	p.raw("</section>\n")
}

// showStop writes a stop, and a bar that shows which part of it is in which state.
func showStop(p *page, name markup, s stop, all int) {
	p.put(`<div class="stop `, s.Level, `"><b>`)
	p.raw(name)
	p.put(`</b> <span>`, s.Figure, `</span>`)
	p.number(`<svg viewBox="0 0 `, max(all, 1), ` 1" preserveAspectRatio="none" aria-hidden="true"><rect class="full" width="100%" height="1"/>`)
	p.number(`<rect class="bad" width="`, s.Bad, `" height="1"/>`)
	p.number(`<rect class="warned" x="`, s.Bad, ``)
	p.number(`" width="`, s.Warned, `" height="1"/>`)
	p.number(`<rect class="part" x="`, s.Bad+s.Warned, ``)
	p.number(`" width="`, s.Well, `" height="1"/></svg>`)
	p.put(`<small>`, s.Text, "</small></div>\n")
}

func showFlow(p *page, f flow, what markup) {
	p.put(`<div class="flow `, f.Level, `"><span>`)
	p.put(``, f.Rate, what)
	p.raw("</span></div>\n")
}
