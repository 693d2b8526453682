package web

import (
	"cmp"
	"slices"
	"strings"

	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

// mostFound bounds the components that a search shows, and its devices.
const mostFound = 60

// searchView is the result of a search, beside the rows of the view, which it has filtered.
type searchView struct {
	Query   string
	Summary string
	Devices []kindView
	Parts   []componentView
	More    int // components left out
	Left    int // devices left out
}

// words are what a search looks for: a text is found if it has all of them.
type words []string

func wordsOf(query string) words { return strings.Fields(strings.ToLower(query)) }

// in reports whether all words are in the texts.
func (w words) in(texts ...string) bool {
	whole := strings.ToLower(strings.Join(texts, "\n"))
	return len(w) > 0 && !slices.ContainsFunc(w, func(word string) bool { return !strings.Contains(whole, word) })
}

// filter leaves in v only the things that a search finds, and adds the hardware.
func (v *view) filter(query string, all []status.Component) {
	query = status.Cut(query, 2*mostLetter)
	w := wordsOf(query)
	v.Things = kept(v.Things, func(t thing) bool { return w.inThing(t) })
	v.Rows = kept(v.Rows, func(r rowView) bool { return w.in("target", r.Name, r.URL, r.Tenant) })
	v.Probes = kept(v.Probes, func(p probeView) bool { return w.in("probe", p.Name, p.Type, p.ProbeStatus.Target) })
	v.Well = kept(v.Well, func(j scrapeView) bool { return w.inJob(j) })
	v.Intakes = kept(v.Intakes, func(r receiverView) bool { return w.in("receiver", r.Name, r.Listen) })
	v.Search = w.hardware(v.Status, all)
	v.Search.Query = query
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, text.Counted(n, what))
		}
	}
	add(len(v.Things), "problem")
	add(len(v.Rows), "target")
	add(len(v.Probes), "probe")
	add(len(v.Well), "scrape job")
	add(len(v.Intakes), "receiver")
	add(len(v.Search.Devices)+v.Search.Left, "device")
	add(len(v.Search.Parts)+v.Search.More, "component")
	v.Search.Summary = cmp.Or(strings.Join(parts, ", "), "nothing found")
}

// kept returns those that keep reports.
func kept[T any](all []T, keep func(T) bool) (some []T) {
	for _, one := range all {
		if keep(one) {
			some = append(some, one)
		}
	}
	return some
}

func (w words) inThing(t thing) bool {
	texts := append([]string{t.Kind, t.Cause}, t.Names...)
	for _, r := range t.Targets {
		texts = append(texts, r.URL, r.Tenant)
	}
	for _, p := range t.Probes {
		texts = append(texts, p.Type, p.ProbeStatus.Target)
	}
	for _, r := range t.Intakes {
		texts = append(texts, r.Listen)
	}
	return w.in(texts...) || slices.ContainsFunc(t.Jobs, w.inJob)
}

func (w words) inJob(j scrapeView) bool {
	return w.in("scrape job", j.Job) || slices.ContainsFunc(j.Rows, func(r scrapeRow) bool { return w.in(j.Job, r.URL, r.LabelText) })
}

// hardware finds devices by their names, and components also by what they are and who made them; the worst come first.
func (w words) hardware(s status.Status, all []status.Component) (v searchView) {
	names := map[[2]string]string{}
	var found, of []status.Component
	for _, c := range all {
		names[[2]string{c.Device, c.ID}] = cmp.Or(c.Name, c.ID)
		if w.in("device", c.Device) {
			of = append(of, c)
		}
		if c.ID != "" && w.in(c.Device, c.Name, c.ID, inWords(c.Type), inWords(c.State), c.Vendor, c.Model, c.Serial) {
			found = append(found, c)
		}
	}
	v.Devices, v.Left = cut(counts(of, func(c status.Component) string { return c.Device }), mostFound)
	worst := func(a, b status.Component) int {
		return cmp.Compare(status.Rank(status.ComponentLevel(a.State)), status.Rank(status.ComponentLevel(b.State)))
	}
	slices.SortStableFunc(found, worst)
	found, v.More = cut(found, mostFound)
	for _, c := range found {
		v.Parts = append(v.Parts, newComponent(s, c, status.ComponentLevel(c.State), names[[2]string{c.Device, c.Parent}]))
	}
	return v
}

func searchScreen() screenful { return screenful{searchTitle, verdictLevel, searchMain} }

func searchTitle(v view) string { return "Search for " + v.Search.Query + ": " + v.Search.Summary }

func searchMain(p *page, v view) {
	startMain(p, v, searchTitle(v))
	p.raw(`<p class="who"><a href="/"><b>hwsagent</b></a>`)
	showWho(p, v)
	showConclusion(p, v.Verdict.Level, v.Verdict.Text)
	p.put(`<h2>Search for `, v.Search.Query, ` `)
	p.put(`<small>`, v.Search.Summary, "</small></h2>\n")
	if v.Search.Summary == "nothing found" {
		p.raw(`<p class="none">A search finds targets, probes, scrape jobs, receivers, devices and components by parts of names, addresses, makers and serial numbers.</p>
`)
	}
	showThings(p, v)
	if len(v.Rows) > 0 {
		showTargets(p, v)
	}
	if len(v.Probes) > 0 {
		showProbes(p, v)
	}
	if len(v.Well) > 0 {
		showJobs(p, v)
	}
	if len(v.Intakes) > 0 {
		showReceivers(p, v)
	}
	if len(v.Search.Devices) > 0 {
		p.raw("<section>\n<h2>Devices</h2>\n")
		showCounts(p, v.Search.Devices, true)
		showMoreFound(p, v.Search.Left)
		p.raw("</section>\n")
	}
	if len(v.Search.Parts) > 0 {
		p.raw("<section>\n<h2>Components</h2>\n")
		showComponents(p, v.Search.Parts, 0)
		showMoreFound(p, v.Search.More)
		p.raw("</section>\n")
	}
	p.put(`<footer>hwsagent `, v.Version, ``)
	p.raw(` · <a href="/">overview</a></footer>
</main>`)
}

func showMoreFound(p *page, n int) {
	if n > 0 {
		p.number(`<p class="more">and `, n, " more: search for more words</p>\n")
	}
}

// showField writes the field of a search. It stands outside the main element, which changes while a person types.
func showField(p *page, query string) {
	p.put(`<form class="search" role="search" action="/search"><label for="q">Search</label> <input type="search" id="q" name="q" maxlength="200" placeholder="name, address, serial" value="`, query, `"></form>
`)
}
