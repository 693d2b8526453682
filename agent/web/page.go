package web

import (
	"embed"
	"net/http"
	"slices"
)

//go:embed assets/page.css assets/page.js
var assets embed.FS

// view is a Status in the form that the page shows: every number is already a text.
type view struct {
	Status
	Verdict  Verdict
	Up, At   string
	LoadedAt string
	Findings []Finding
	Log      logView
	Rows     []rowView
	Many     bool // rows
	Probes   []probeView
	Jobs     []scrapeView
	Intakes  []receiverView
	Events   eventsView
}

type logView struct {
	Fill                         int // of the budget, in percent, at least 1 when not empty
	Bytes, Max, Free, In, Series string
	Appended, Refused            string
	Segments, Lasts              string
}

type probeView struct {
	ProbeStatus
	Level, Last, TookText, Count, Every, Error string
}

func newView(s Status, events []Event) view {
	v := view{Status: s, Verdict: s.verdict(), At: s.Now.Format("2006-01-02 15:04:05 MST"), LoadedAt: clock(s.Now, s.Config.LoadedAt), Findings: slices.DeleteFunc(findings(s), Finding.inRow)}
	if !s.Started.IsZero() {
		v.Up = span(s.Now.Sub(s.Started))
	}
	w := s.WAL
	v.Log = logView{
		Fill: percent(w.Bytes, w.MaxBytes), Bytes: size(w.Bytes), Max: size(w.MaxBytes), Free: size(w.FreeBytes), In: rate(w.SamplesPerSec),
		Series: count(uint64(max(0, w.Series))), Appended: count(w.Appended), Segments: count(uint64(max(0, w.Segments))),
	}
	if d, ok := Lasts(s); ok {
		v.Log.Lasts = lasting(d)
	}
	if w.Refused > 0 {
		v.Log.Refused = count(w.Refused)
	}
	v.Rows = newRows(s, v.Findings)
	v.Many = len(v.Rows) > manyRows
	for _, p := range s.Probes {
		v.Probes = append(v.Probes, newProbe(s, p))
	}
	for _, j := range s.Scrape {
		v.Jobs = append(v.Jobs, newScrape(s, j))
	}
	for _, r := range s.Receivers {
		v.Intakes = append(v.Intakes, newReceiver(s, r))
	}
	v.Events = newEvents(s, events)
	return v
}

func newProbe(s Status, p ProbeStatus) probeView {
	v := probeView{ProbeStatus: p, Level: LevelOK, Last: ago(s.Now, p.LastRun), TookText: "–", Count: count(uint64(max(0, p.Samples))), Every: span(p.Interval)}
	if p.Took > 0 {
		v.TookText = span(p.Took)
	}
	switch p.State {
	case "failing":
		v.Level = SeverityWarning
	case "hung":
		v.Level, v.Error = SeverityWarning, p.LastError // it hangs now; this error is older
	case "waiting":
		v.Level = SeverityNote
	case "ok":
		if p.LastError != "" { // one part could not be read
			v.Level = SeverityNote
		}
	}
	return v
}

func sum(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}

// percent returns part of whole in percent, at most 100, rounded up so that a small part is never 0.
func percent(part, whole int64) int {
	if part <= 0 || whole <= 0 {
		return 0
	}
	return min(100, int(100*float64(part)/float64(whole))+1)
}

func (h *handlers) page(w http.ResponseWriter, _ *http.Request) { h.show(w, overview()) }

func (h *handlers) targets(w http.ResponseWriter, _ *http.Request) { h.show(w, scraped()) }

func (h *handlers) show(w http.ResponseWriter, s screenful) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	write(w, s.whole(h.look()))
}

// look returns the present status for the page.
func (h *handlers) look() view {
	var events []Event
	if h.o.Events != nil {
		events = h.o.Events()
	}
	v := newView(h.o.Status(), events)
	if h.o.History != nil && v.Running {
		for i := range v.Rows {
			if v.Rows[i].State != StateOrphan {
				v.Rows[i].Plots = plotsOf(v.Rows[i].Name, v.Now)
			}
		}
	}
	return v
}

func (h *handlers) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	types := map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}
	body, err := assets.ReadFile("assets/" + name)
	if err != nil || types[name] == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[name])
	w.Header().Set("Cache-Control", "no-cache")
	write(w, body)
}
