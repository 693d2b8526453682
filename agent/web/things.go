package web

import (
	"slices"
	"strings"

	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

// Bounds of a row with problems. What it leaves out stands in what the row opens to.
const (
	causeWords = 8 // of the cause
	rowNames   = 6
	rowTries   = 2
	lastErrors = 3 // distinct errors of the last 24 hours
)

// thing is a row with problems: a target, a probe, a scrape job, a receiver, the log, or several with the same cause.
type thing struct {
	ID, Level, Word, Kind string
	Names                 []string
	Clock                 moment
	Cause, Since          string           // Cause has causeWords words at most
	Cost, Room            string           // what waits or is missing, and whether that is lost
	Lost                  bool             // Room tells of a loss
	Tries                 []status.Advice  // of the first finding
	Findings              []status.Finding // the first one is the row's cause
	Errors                []eventLine      // the newest distinct ones
	Targets               []rowView
	Probes                []probeView
	Jobs                  []scrapeView
	Intakes               []receiverView
	Log                   *logView
	Left                  int // of the things, left out below the row
}

// index finds the row of a thing by its kind and name.
type index map[string]int

// newThings returns the rows of all that has problems, worst first. Each thing is in one row: that of its worst finding.
func newThings(s status.Status) (things []thing, at index) {
	at = index{}
	for _, f := range status.Findings(s) {
		kind, names := f.Thing(), f.Names
		if f.Severity == status.SeverityNote && (kind == "target" || kind == "probe") {
			continue // the thing's own row has it
		}
		if len(names) == 0 {
			names = []string{""}
		}
		var own []string
		var others []int // rows that have one of the names already
		for _, name := range names {
			i, ok := at[kind+" "+name]
			switch {
			case !ok:
				own = append(own, name)
			case !slices.Contains(others, i):
				others = append(others, i)
			}
		}
		for _, i := range others {
			things[i].Findings = append(things[i].Findings, f)
		}
		if len(own) == 0 {
			continue
		}
		for _, name := range own {
			at[kind+" "+name] = len(things)
		}
		things = append(things, newThing(s, f, kind, own))
	}
	return things, at
}

func newThing(s status.Status, f status.Finding, kind string, names []string) thing {
	t := thing{
		ID: strings.TrimSuffix(kind[:1]+"-"+names[0], "-"), Level: f.Severity, Word: f.Severity, Kind: kind, Names: names,
		Cause: fewWords(f.Cause), Tries: f.Tries, Findings: []status.Finding{f},
	}
	if names[0] == "" {
		t.Names, t.ID = nil, "k-"+kind
	}
	if !f.Since.IsZero() {
		t.Clock, t.Since = newMoment(s.Now, f.Since), status.Span(max(0, s.Now.Sub(f.Since)))
	}
	return t
}

// fewWords returns causeWords words of a text at most, without an article before them: of its parts between colons whole ones, if these have half
// of the words, and without a part before or between them that is too long by itself.
func fewWords(text string) string {
	for _, article := range []string{"the ", "its ", "this "} {
		text = strings.TrimPrefix(text, article)
	}
	parts := strings.Split(strings.Join(strings.Fields(text), " "), ": ")
	for len(parts) > 1 && len(strings.Fields(parts[0])) > causeWords {
		parts = parts[1:]
	}
	n, words := 0, 0
	for n < len(parts) && words+len(strings.Fields(parts[n])) <= causeWords {
		words += len(strings.Fields(parts[n]))
		n++
	}
	switch {
	case n == len(parts):
		return strings.Join(parts, ": ")
	case words >= causeWords/2:
		return strings.Join(parts[:n], ": ")
	case n > 0 && n+1 < len(parts) && len(strings.Fields(parts[n])) > causeWords:
		return fewWords(strings.Join(slices.Delete(parts, n, n+1), ": "))
	}
	return strings.TrimRight(strings.Join(strings.Fields(strings.Join(parts, ": "))[:causeWords], " "), ".,;:") + " …"
}

// take moves the views of things with problems to their rows, and returns the others.
func take[T any](things []thing, at index, kind string, all []T, name func(T) string, add func(*thing, T)) (others []T) {
	for _, one := range all {
		if i, ok := at[kind+" "+name(one)]; ok {
			add(&things[i], one)
		} else {
			others = append(others, one)
		}
	}
	return others
}

// addThings divides the rows of v into those with problems and those without.
func addThings(v *view, s status.Status, events []status.Event) {
	things, at := newThings(s)
	v.Rows = take(things, at, "target", v.Rows, func(r rowView) string { return r.Name }, func(t *thing, r rowView) { t.Targets = append(t.Targets, r) })
	v.Probes = take(things, at, "probe", v.Probes, func(p probeView) string { return p.Name }, func(t *thing, p probeView) {
		if strings.Contains(t.Findings[0].Text, p.Error) {
			p.Error = "" // the row says it already
		}
		t.Probes = append(t.Probes, p)
	})
	v.Intakes = take(things, at, "receiver", v.Intakes, func(r receiverView) string { return r.Name }, func(t *thing, r receiverView) { t.Intakes = append(t.Intakes, r) })
	v.Well = take(things, at, "scrape", v.Jobs, func(j scrapeView) string { return j.Job }, func(t *thing, j scrapeView) { t.Jobs = append(t.Jobs, j) })
	if i, ok := at["log "]; ok {
		things[i].Log = &v.Log
		v.LogBroken = true
	}
	for i := range things {
		things[i].addState()
		things[i].addCost(s)
		things[i].addErrors(s, events)
	}
	v.Things = things
}

// addState names the state that all things of the row share.
func (t *thing) addState() {
	var words []string
	for _, r := range t.Targets {
		words = append(words, r.Word)
	}
	for _, p := range t.Probes {
		words = append(words, p.State)
	}
	for _, j := range t.Jobs {
		words = append(words, j.Up+" up")
	}
	for range t.Intakes {
		words = append(words, "refusing")
	}
	if words = slices.Compact(words); len(words) == 1 {
		t.Word = words[0]
	}
}

// addCost says what the problem costs.
func (t *thing) addCost(s status.Status) {
	var refused uint64
	for _, r := range t.Intakes {
		refused += status.Sum(r.RefusedRequests)
	}
	switch {
	case len(t.Targets) > 0:
		t.addWaiting(s)
	case t.Kind == "probe" && (t.Word == "failing" || t.Word == "hung"):
		t.Cost = "no samples"
	case len(t.Jobs) > 0:
		switch down := t.Jobs[0].Down(); down {
		case 0:
			t.Cost = "targets left out"
		case len(t.Jobs[0].Rows):
			t.Cost = "no samples"
		default:
			t.Cost = "no samples of " + text.Counted(down, "target")
		}
	case refused > 0:
		t.Cost = status.Count(refused) + " requests refused"
	case t.Kind == "log" && s.WAL.Error != "":
		t.Cost, t.Room, t.Lost = status.Samples(s.WAL.Refused)+" refused", "not stored; they will not arrive unless their sender repeats them", true
	case t.Kind == "log" && !s.WAL.LowSince.IsZero():
		t.Cost = "log does not grow"
	case t.overLimit(s) > 0:
		t.Cost = status.Samples(t.overLimit(s)) + " refused"
	case t.Kind == "config" && s.Config.ReloadError != "":
		t.Cost = "the old one is in force"
	}
}

// overLimit counts the samples beyond the limits of series that the things of the row have.
func (t *thing) overLimit(s status.Status) (n uint64) {
	for _, in := range s.Inputs {
		if in.Kind == t.Kind && slices.Contains(t.Names, in.Name) && !in.OverSince.IsZero() {
			n += in.Refused
		}
	}
	return n
}

// addWaiting says how much waits for the targets of the row and how long there is room for more, and what was lost.
func (t *thing) addWaiting(s status.Status) {
	var waiting uint64
	var gone status.Undelivered
	var targets []status.TargetStatus
	if r := t.Targets[0]; t.Level == status.SeverityWarning && (r.State == status.StateHeld || r.State == status.StateRetrying) {
		t.Since += ", may pass" // why the same word is an error in another row
	}
	for _, r := range t.Targets {
		waiting += r.PendingSamples
		gone = gone.Plus(status.Last24(s, r.Name))
		targets = append(targets, r.TargetStatus)
	}
	room := status.Room(s, targets...)
	if room != "" {
		room = ", " + room
	}
	t.Cost, t.Room = status.Samples(waiting)+" waiting", "none lost"+room
	if t.Lost = gone.Any(); t.Lost {
		t.Room = gone.Text() + room
	}
}

// addErrors collects the newest distinct errors of the row's targets from the events.
func (t *thing) addErrors(s status.Status, events []status.Event) {
	for _, e := range slices.Backward(events) {
		name, ok := strings.CutPrefix(e.Subject, "target ")
		if !ok || len(t.Errors) == lastErrors {
			continue
		}
		if level := eventLevel(e.Kind); level != status.SeverityError || t.Kind != "target" || !slices.Contains(t.Names, name) || s.Now.Sub(e.Time) > status.LossesFor {
			continue
		}
		l := eventLine{At: newMoment(s.Now, e.Time), Kind: strings.ReplaceAll(e.Kind, "_", " "), Level: status.SeverityError, Text: e.Text}
		if len(t.Names) > 1 {
			l.Subjects = []string{name}
		}
		if e.Text != "" && !slices.ContainsFunc(t.Errors, func(o eventLine) bool { return o.Text == e.Text }) {
			t.Errors = append(t.Errors, l)
		}
	}
}
