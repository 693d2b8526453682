package web

import (
	"time"

	"hwsagent/agent/status"
)

// moment is a point in time: as the agent writes it, and for the script, which shows it in the reader's zone.
type moment struct{ Text, Instant string }

func newMoment(now, t time.Time) moment {
	m := moment{Text: status.Clock(now, t)}
	if !t.IsZero() {
		m.Instant = t.In(now.Location()).Format(time.RFC3339)
	}
	return m
}

// moment writes a point in time.
func (p *page) moment(m moment) {
	if m.Instant == "" {
		p.text(m.Text)
		return
	}
	p.put(`<time datetime="`, m.Instant, `">`)
	p.put(``, m.Text, `</time>`)
}
