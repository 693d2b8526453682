package web

import "hwsagent/agent/status"

// The functions below write cells: a state with its colour, a text, and a number with a label for narrow tables.
func showState(p *page, level, state string) {
	p.put(`<tr class="`, level, ``)
	p.put(`"><td class="state"><i></i>`, state, ``)
}

// showProbes shows the probes without problems.
func showProbes(p *page, v view) {
	startRows(p, `Probes`, `probe`, len(v.Probes)+v.Left.Probes, len(v.Status.Probes))
	for _, one := range v.Probes {
		showSummary(p, one.Level, one.State, one.Name)
		p.put(`<span>`, one.Type, `</span> `)
		p.put(`<span>`, one.Last, `</span> `)
		if one.Lost != "" {
			p.put(`<span>`, one.Lost, ` <small>refused</small></span></summary>
`)
		} else {
			p.put(`<span>`, one.Count, ` <small>samples</small></span></summary>
`)
		}
		p.put(`<div id="p-`, one.Name, `">
`)
		showProbe(p, one)
		p.put(`<p class="more">Run it once: <code>hwsagent probe `, one.Name, "</code></p>\n")
		p.raw("</div></details>\n")
	}
	endRows(p, len(v.Probes), v.Left.Probes)
}

// showSummary begins a row: its state and name.
func showSummary(p *page, level, state, name string) {
	p.put(`<details class="`, level, `">
<summary><span class="state"><i></i>`)
	p.put(``, state, `</span> `)
	p.put(`<b title="`, name, `">`)
	p.put(`<bdi>`, name, `</bdi></b> `)
}

// showProbe writes the details of a probe.
func showProbe(p *page, v probeView) {
	p.put(`<dl><div><dt>type</dt><dd>`, v.Type, `</dd></div>`)
	if v.Target != "" {
		p.put(`<div><dt>reads</dt><dd class="url">`, v.Target, `</dd></div>`)
	}
	p.put(`<div><dt>last round</dt><dd>`, v.Last, `</dd></div>`)
	p.put(`<div><dt>took</dt><dd>`, v.TookText, `</dd></div>`)
	p.put(`<div><dt>samples</dt><dd>`, v.Count, `</dd></div>`)
	p.put(`<div><dt>every</dt><dd>`, v.Every, "</dd></div>")
	if v.Failures > 0 {
		p.number(`<div><dt>failures in a row</dt><dd>`, v.Failures, `</dd></div>`)
	}
	p.raw("</dl>\n")
	if v.Error != "" {
		p.put(`<p><b>last error</b> `, v.Error, "</p>\n")
	}
}

// showDetail writes a row below another one. columns is its width and the end of the cell's tag.
func showDetail(p *page, level string, columns markup, text string) {
	p.put(`<tr class="`, level, ` detail"><td colspan=`)
	p.put(columns, text, "</td></tr>\n")
}

// showReceivers shows the receivers without problems.
func showReceivers(p *page, v view) {
	if len(v.Receivers) == 0 {
		return
	}
	startRows(p, `Receivers`, `receiver`, len(v.Intakes)+v.Left.Intakes, len(v.Receivers))
	for _, one := range v.Intakes {
		showSummary(p, one.Level, "listening", one.Name)
		p.put(`<span>`, one.Listen, `</span> `)
		p.put(`<span>`, one.Last, `</span> `)
		p.put(`<span>`, one.Taken, ` <small>samples</small></span></summary>
`)
		p.put(`<div id="r-`, one.Name, `">
`)
		showReceiver(p, one)
		p.raw("</div></details>\n")
	}
	endRows(p, len(v.Intakes), v.Left.Intakes)
}

// showReceiver writes the details of a receiver.
func showReceiver(p *page, v receiverView) {
	p.put(`<dl><div><dt>listens on</dt><dd class="url">`, v.Listen, ``)
	p.rawIf(v.TLS, ` TLS`)
	p.put(`</dd></div><div><dt>last request</dt><dd>`, v.Last, `</dd></div>`)
	p.put(`<div><dt>requests</dt><dd>`, v.Count, `</dd></div>`)
	p.put(`<div><dt>samples</dt><dd>`, v.Taken, `</dd></div>`)
	p.put(`<div><dt>series</dt><dd>`, v.Active, `</dd></div>`)
	if v.Refused != "" {
		p.put(`<div><dt>refused requests</dt><dd>`, v.Refused, `</dd></div>`)
	}
	if v.Left != "" {
		p.put(`<div><dt>samples refused by themselves</dt><dd>`, v.Left, `</dd></div>`)
	}
	p.raw("</dl>\n")
	if v.Error != "" {
		p.raw(`<p><b>last refusal</b> `)
		p.moment(v.ErrorAt)
		p.put(`, `, v.Error, "</p>\n")
	}
}

// showJobs shows the scrape jobs without problems.
func showJobs(p *page, v view) {
	if len(v.Jobs) == 0 {
		return
	}
	startRows(p, `Scraping`, `job`, len(v.Well)+v.Left.Jobs, len(v.Jobs))
	for _, j := range v.Well {
		showSummary(p, j.Level, j.Up+" up", j.Job)
		p.put(`<span>`, j.Slowest, ` <small>slowest</small></span> `)
		p.put(`<span>`, j.Last, `</span> `)
		p.put(`<span>`, j.Every, ` <small>apart</small></span></summary>
`)
		p.put(`<div id="s-`, j.Job, `">
`)
		showJobMore(p, j)
		p.raw("</div></details>\n")
	}
	endRows(p, len(v.Well), v.Left.Jobs)
}

// maxDown bounds how many targets of a job that are down its row names.
const maxDown = 5

// showJobMore writes the details of a job: its targets that are down, and where all of them are.
func showJobMore(p *page, j scrapeView) {
	down := 0
	for _, r := range j.Rows {
		if r.Health != status.HealthDown {
			continue
		}
		if down++; down <= maxDown {
			p.put(`<p><b>`, r.URL, `</b> `)
			p.put(`<span class="bad">`, r.LastError, "</span></p>\n")
		}
	}
	p.put(`<p class="more">last scrape `, j.Last, ``)
	if j.Dropped > 0 {
		p.number(` · `, j.Dropped, ` dropped by relabelling`)
	}
	p.raw(` · <a href="/targets#job-`)
	p.encoded(j.Job)
	p.raw("\">all its targets</a></p>\n")
}

// scraped returns the page with every scraped target.
func scraped() screenful { return screenful{scrapedTitle, verdictLevel, scrapedMain} }

func scrapedTitle(v view) string { return "Scraped targets of " + hostOr(v.Host) }

func scrapedMain(p *page, v view) {
	startMain(p, v, scrapedTitle(v))
	p.raw(`<p class="who"><a href="/"><b>hwsagent</b></a>`)
	showWho(p, v)
	showConclusion(p, v.Verdict.Level, v.Verdict.Text)
	for _, j := range v.Jobs {
		showJob(p, j)
	}
	p.rawIf(len(v.Jobs) == 0, `<section><p class="none">No scrape jobs are configured.</p></section>
`)
	p.put(`<footer>hwsagent `, v.Version, ``)
	p.raw(` · <a href="/">overview</a> · <a href="/api/v1/targets">targets as JSON</a></footer>
</main>`)
}

func showJob(p *page, j scrapeView) {
	p.put(`<section id="job-`, j.Job, `">
`)
	p.put(`<h2><b>`, j.Job, `</b>: `)
	p.put(``, j.Up, ` up`)
	if j.Dropped > 0 {
		p.number(`, `, j.Dropped, ` dropped by relabelling`)
	}
	p.raw("</h2>\n")
	if j.Error != "" {
		p.put(`<p class="error">`, j.Error, "</p>\n")
	}
	if len(j.Rows) == 0 {
		p.raw(`<p class="none">No targets were found.</p>`)
	} else {
		p.raw(`<table class="card">
<thead><tr><th>state</th><th>endpoint</th><th>labels</th><th>last scrape</th><th class="n">took</th><th class="n">every</th></tr></thead>
<tbody>
`)
		for _, r := range j.Rows {
			showState(p, r.Level, r.Health)
			p.put(`</td><td class="wrap">`, r.URL, `</td>`)
			p.put(`<td class="labels">`, r.LabelText, `</td>`)
			p.put(`<td data-l="last scrape">`, r.Last, `</td>`)
			p.put(`<td class="n" data-l="took">`, r.TookText, `</td>`)
			p.put(`<td class="n" data-l="every">`, r.Interval, "</td></tr>\n")
			if r.LastError != "" {
				showDetail(p, r.Level, `"6">`, r.LastError)
			}
		}
		p.raw(`</tbody>
</table>`)
	}
	p.raw(`
</section>
`)
}
