package web

import (
	"embed"
	"net/http"
	"net/url"
	"time"

	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

//go:embed assets/page.css assets/page.js
var assets embed.FS

// view is a Status in the form that the page shows: every number is already a text.
type view struct {
	status.Status
	Verdict   status.Verdict
	Up, At    string
	Instant   string // At, for the reader's own zone
	LoadedAt  moment
	Way       wayView
	Hardware  hardwareView
	Device    deviceView // of the page of a device
	Search    searchView // of the page of a search
	Log       logView
	Things    []thing   // those with problems, worst first; the lists below have the others
	Rows      []rowView // targets
	Probes    []probeView
	Well      []scrapeView // scrape jobs
	Intakes   []receiverView
	Jobs      []scrapeView // all
	LogBroken bool         // it has a row among the things
	Events    eventsView
	Left      leftOut
	Homepage  string
	All       bool // nothing is left out, and the page does not change by itself
}

type logView struct {
	Fill                         int // of the budget, in percent, at least 1 when not empty
	Bytes, Max, Free, In, Series string
	Appended, Refused            string
	Segments, Lasts, Dir, Sync   string
}

type probeView struct {
	status.ProbeStatus
	Level, Last, TookText, Count, Every, Error string
	Lost                                       string // samples that the log refused, if it refuses them now
}

func newView(s status.Status, events []status.Event) view {
	v := view{Status: s, Verdict: s.Conclusion(), At: s.Now.Format("2006-01-02 15:04:05 MST"), Instant: s.Now.Format(time.RFC3339), LoadedAt: newMoment(s.Now, s.Config.LoadedAt)}
	if !s.Started.IsZero() {
		v.Up = status.Span(s.Now.Sub(s.Started))
	}
	w := s.WAL
	v.Log = logView{
		Fill: status.Percent(w.Bytes, w.MaxBytes), Bytes: status.Size(w.Bytes), Max: status.Size(w.MaxBytes), Free: status.Size(w.FreeBytes), In: status.Rate(w.SamplesPerSec),
		Series: status.Count(uint64(max(0, w.Series))), Appended: status.Count(w.Appended), Segments: status.Count(uint64(max(0, w.Segments))),
	}
	v.Log.Dir, v.Log.Sync = w.Dir, "after every commit"
	if w.Sync != "always" {
		v.Log.Sync = "every " + w.Sync
	}
	if d, ok := status.Lasts(s); ok {
		v.Log.Lasts = status.Lasting(d)
	}
	if w.Refused > 0 {
		v.Log.Refused = status.Count(w.Refused)
	}
	v.Rows = newRows(s)
	for _, p := range s.Probes {
		v.Probes = append(v.Probes, newProbe(s, p))
	}
	for _, j := range s.Scrape {
		v.Jobs = append(v.Jobs, newScrape(s, j))
	}
	for _, r := range s.Receivers {
		v.Intakes = append(v.Intakes, newReceiver(s, r))
	}
	addThings(&v, s, events)
	v.Way = newWay(&v, s)
	v.Events = newEvents(s, events)
	return v
}

func newProbe(s status.Status, p status.ProbeStatus) probeView {
	v := probeView{ProbeStatus: p, Level: p.Level(), Last: status.Ago(s.Now, p.LastRun), TookText: "–", Count: status.Count(uint64(max(0, p.Samples))), Every: status.Span(p.Interval)}
	if p.Took > 0 {
		v.TookText = status.Span(p.Took)
	}
	if status.RefusedByLog(s, p) {
		v.State, v.Level = status.OutcomeRefused, status.SeverityError
		v.Lost = status.Count(p.Refused)
	}
	if p.LastError != "" {
		v.Error = text.FirstLine(p.LastError)
	}
	return v
}

// page serves the pages: GET /, /targets, /search?q=… and /device?name=…; with ?all one with every row.
func (h *handlers) page(w http.ResponseWriter, r *http.Request) {
	s, ok := h.screen(r.URL)
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	write(w, s.whole(h.look(r.URL)))
}

// screen returns the page at an address.
func (h *handlers) screen(at *url.URL) (screenful, bool) {
	switch at.Path {
	case "/":
		return overview(), true
	case "/targets":
		return scraped(), true
	case "/search":
		return searchScreen(), true
	case "/device":
		return deviceScreen(), h.o.Device != nil
	}
	return screenful{}, false
}

// look returns the present status for the page at an address, with all rows or the worst ones.
func (h *handlers) look(at *url.URL) view {
	query := at.Query()
	all := query.Has("all")
	var events []status.Event
	if h.o.Events != nil {
		events = h.o.Events()
	}
	v := newView(h.o.Status(), events)
	v.Homepage = h.o.Homepage
	var parts []status.Component
	if h.o.Hardware != nil && v.Running {
		parts = h.o.Hardware()
	}
	if at.Path == "/search" {
		v.filter(query.Get("q"), parts)
	}
	if v.All = all; !all {
		v.bound()
	}
	v.Hardware = newHardware(v.Status, parts, all)
	v.Verdict = v.Hardware.with(v.Verdict)
	if h.o.Device != nil && at.Path == "/device" {
		v.Device = newDevice(v.Now, h.o.Device(query.Get("name")), all)
	}
	if h.o.History != nil && v.Running {
		addPlots(v.Rows, v.Now)
		for _, t := range v.Things {
			addPlots(t.Targets, v.Now)
		}
	}
	return v
}

func addPlots(rows []rowView, now time.Time) {
	for i := range rows {
		if rows[i].State != status.StateOrphan {
			rows[i].Plots, rows[i].Curve = plotsOf(rows[i].Name, now), curveOf(rows[i].Name, now)
		}
	}
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
