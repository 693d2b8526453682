package web

import (
	"cmp"
	"regexp"
	"slices"
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

// timesIn finds the points in time in a sentence of the agent: those of [status.Clock], with or without a date.
var timesIn = regexp.MustCompile(`\b(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|[A-Z][a-z]{2} \d{1,2} (?:\d{4} )?\d\d:\d\d|\d\d:\d\d:\d\d)\b`)

// sentence writes a text of the agent's own, with its points in time as such. The text of another program is not for it: the zone of its
// times is unknown.
func (p *page) sentence(text string) {
	from := 0
	for _, at := range timesIn.FindAllStringIndex(text, -1) {
		t, ok := timeOf(p.now, text[at[0]:at[1]])
		if !ok {
			continue
		}
		p.text(text[from:at[0]])
		p.moment(moment{text[at[0]:at[1]], t.Format(time.RFC3339)})
		from = at[1]
	}
	p.text(text[from:])
}

// timeOf reads a point in time as a sentence has it, in the zone of now and close to it.
func timeOf(now time.Time, text string) (time.Time, bool) {
	for layout, apart := range map[string]func(t time.Time, n int) time.Time{
		time.DateTime:      func(t time.Time, _ int) time.Time { return t },
		"Jan 2 2006 15:04": func(t time.Time, _ int) time.Time { return t },
		"Jan 2 15:04":      func(t time.Time, n int) time.Time { return t.AddDate(now.Year()+n, 0, 0) },
		time.TimeOnly: func(t time.Time, n int) time.Time {
			return time.Date(now.Year(), now.Month(), now.Day()+n, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		},
	} {
		t, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		all := []time.Time{apart(t, -1), apart(t, 0), apart(t, 1)}
		return slices.MinFunc(all, func(a, b time.Time) int { return cmp.Compare(now.Sub(a).Abs(), now.Sub(b).Abs()) }), true
	}
	return time.Time{}, false
}
