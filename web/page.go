package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"
)

//go:embed assets/page.html assets/targets.html assets/page.css assets/page.js
var assets embed.FS

// pageTemplate is parsed once; a mistake in it fails every test of the package.
var pageTemplate = template.Must(template.ParseFS(assets, "assets/page.html"))

// targetsTemplate likewise.
var targetsTemplate = template.Must(template.ParseFS(assets, "assets/targets.html"))

// view is a Status as the page shows it: every number already a text.
type view struct {
	Status
	Verdict  Verdict
	Up, At   string
	LoadedAt string
	Log      logView
	Lanes    []laneView
	Probes   []probeView
	Jobs     []scrapeView
	Intakes  []receiverView
}

type logView struct {
	Fill                         int // of the budget, in percent, at least 1 when not empty
	Bytes, Max, Free, In, Series string
	Appended, Refused, Error     string
	Segments, Lasts              string
}

type laneView struct {
	TargetStatus
	Level                              string // the lane's colour: ok, warning, error, note
	Lag, Waiting, Size, Oldest, FullIn string
	Sent, Retry, Refused, LostText     string
	Delivered, Success, Error, Next    string
	Skew, Account, Ends, Missed        string
	Backlog                            int // of the log's budget, in percent
}

type probeView struct {
	ProbeStatus
	Level, Last, TookText, Count, Every, Error string
}

func newView(s Status) view {
	v := view{Status: s, Verdict: s.verdict(), At: s.Now.Format("2006-01-02 15:04:05 MST"), LoadedAt: clock(s.Now, s.Config.LoadedAt)}
	if !s.Started.IsZero() {
		v.Up = span(s.Now.Sub(s.Started))
	}
	w := s.WAL
	v.Log = logView{
		Fill: percent(w.Bytes, w.MaxBytes), Bytes: size(w.Bytes), Max: size(w.MaxBytes), Free: size(w.FreeBytes), In: rate(w.SamplesPerSec),
		Series: count(uint64(max(0, w.Series))), Appended: count(w.Appended), Segments: count(uint64(max(0, w.Segments))), Error: w.Error,
	}
	if d, ok := Lasts(s); ok {
		v.Log.Lasts = lasting(d)
	}
	if w.Refused > 0 {
		v.Log.Refused = count(w.Refused)
	}
	for _, t := range s.Targets {
		v.Lanes = append(v.Lanes, newLane(s, t))
	}
	for _, p := range s.Probes {
		v.Probes = append(v.Probes, newProbe(s, p))
	}
	for _, j := range s.Scrape {
		v.Jobs = append(v.Jobs, newScrape(s, j))
	}
	for _, r := range s.Receivers {
		v.Intakes = append(v.Intakes, newReceiver(s, r))
	}
	return v
}

func newLane(s Status, t TargetStatus) laneView {
	l := laneView{
		TargetStatus: t, Level: LevelOK, Lag: span(seconds(t.LagSeconds)), Waiting: count(t.PendingSamples), Size: size(t.PendingBytes),
		Oldest: clock(s.Now, t.OldestPending), Sent: rate(t.SentPerSec), Retry: count(t.Failed), Refused: count(t.Ledger.Dropped["rejected"]),
		Delivered: count(t.Ledger.Delivered), Success: ago(s.Now, t.LastSuccess), Backlog: percent(t.PendingBytes, s.WAL.MaxBytes),
	}
	for _, p := range s.Problems {
		if p.Subject == "target "+t.Name && severity(p.Severity) < severity(SeverityNote) && l.Level != SeverityError {
			l.Level = p.Severity
		}
	}
	if l.Level == LevelOK && deliveryOf(s, t) != Delivering {
		l.Level = SeverityNote
	}
	if d, ok := FullIn(s, t); ok {
		l.FullIn = "lasts " + lasting(d) + " at this rate"
	}
	if t.Ledger.Lost > 0 {
		l.LostText = count(t.Ledger.Lost) + " (" + reasons(t.Ledger.Dropped) + ")"
	}
	if t.LastError != "" {
		l.Error = fmt.Sprintf("%s, %s", clock(s.Now, t.LastErrorAt), ago(s.Now, t.LastErrorAt))
	}
	l.Why, l.LastError = brief(t, t.Why), brief(t, t.LastError)
	if t.NextTry.After(s.Now) {
		l.Next = until(s.Now, t.NextTry)
	}
	if t.ClockSkew.Abs() > time.Second {
		l.Skew = span(t.ClockSkew)
		if t.ClockSkew > 0 {
			l.Skew += " ahead of the receiver"
		} else {
			l.Skew += " behind the receiver"
		}
	}
	l.Ends = expiries(s, t)
	if t.MissedSamples > 0 && t.State == StateBehind {
		l.Missed, l.Why = missed(s, t), ""
	}
	a := t.Ledger
	l.Account = fmt.Sprintf("%s appended = %s delivered + %s filtered + %s dropped + %s waiting",
		count(a.Appended), count(a.Delivered), count(a.Filtered), count(sum(a.Dropped)), count(a.Pending))
	return l
}

func newProbe(s Status, p ProbeStatus) probeView {
	v := probeView{ProbeStatus: p, Level: LevelOK, Last: ago(s.Now, p.LastRun), TookText: "–", Count: count(uint64(max(0, p.Samples))), Every: span(p.Interval)}
	if p.Took > 0 {
		v.TookText = span(p.Took)
	}
	switch p.State {
	case "failing", "hung":
		v.Level, v.Error = SeverityWarning, p.LastError
	case "waiting":
		v.Level = SeverityNote
	case "ok":
		if p.LastError != "" { // a part that could not be read
			v.Level, v.Error = SeverityNote, p.LastError
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

// percent is part of whole, rounded up so that something is never nothing, at most 100.
func percent(part, whole int64) int {
	if part <= 0 || whole <= 0 {
		return 0
	}
	return min(100, int(100*float64(part)/float64(whole))+1)
}

func (h *handlers) page(w http.ResponseWriter, _ *http.Request) { h.render(w, pageTemplate) }

func (h *handlers) targets(w http.ResponseWriter, _ *http.Request) { h.render(w, targetsTemplate) }

// render answers with a template of the status.
func (h *handlers) render(w http.ResponseWriter, t *template.Template) {
	var b bytes.Buffer
	v := newView(h.o.Status())
	if err := t.Execute(&b, v); err != nil {
		text(w, http.StatusInternalServerError, fmt.Sprintf("render the page: %v\n", err))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	write(w, b.Bytes())
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

// Short is the state in the word that the page shows.
func (l laneView) Short() string { return strings.ReplaceAll(l.State, "_", " ") }
