package web

// The functions below write cells: a state with its colour, a text, and a number with a label for narrow tables.
func showState(p *page, level, state string) {
	p.put(`<tr class="`, level, ``)
	p.put(`"><td class="state"><i class="dot"></i>`, state, ``)
}

func showProbes(p *page, v view) {
	p.raw(`<section>
<h2>Probes</h2>
`)
	if len(v.Probes) == 0 {
		p.raw(`<p class="none">No probes are configured.</p>`)
	} else {
		p.raw(`<table class="card">
<thead><tr><th>state</th><th>name</th><th>type</th><th>reads</th><th>last round</th><th class="n">took</th><th class="n">samples</th><th class="n">every</th></tr></thead>
<tbody>
`)
		for _, one := range v.Probes {
			showProbe(p, one)
		}
		p.raw(`</tbody>
</table>`)
	}
	p.raw(`
</section>

`)
}

func showProbe(p *page, v probeView) {
	showState(p, v.Level, v.State)
	if v.Failures > 1 {
		p.number(` ×`, v.Failures, ``)
	}
	p.put(`</td><td><b>`, v.Name, `</b></td>`)
	p.put(`<td>`, v.Type, `</td>`)
	p.put(`<td class="wrap">`, v.Target, `</td>`)
	p.put(`<td data-l="last round">`, v.Last, `</td>`)
	p.put(`<td class="n" data-l="took">`, v.TookText, `</td>`)
	p.put(`<td class="n" data-l="samples">`, v.Count, `</td>`)
	p.put(`<td class="n" data-l="every">`, v.Every, "</td></tr>\n")
	if v.Error != "" {
		showDetail(p, v.Level, `"8">`, v.Error)
	}
}

// showDetail writes a row below another one. columns is its width and the end of the cell's tag.
func showDetail(p *page, level string, columns markup, text string) {
	p.put(`<tr class="`, level, ` detail"><td colspan=`)
	p.put(columns, text, "</td></tr>\n")
}

func showReceivers(p *page, v view) {
	if len(v.Intakes) == 0 {
		return
	}
	p.raw(`<section>
<h2>Receivers</h2>
<table class="card">
<thead><tr><th>last request</th><th>name</th><th>listens on</th><th class="n">requests</th><th class="n">samples</th><th class="n">series</th><th>refused</th></tr></thead>
<tbody>
`)
	for _, one := range v.Intakes {
		showReceiver(p, one)
	}
	p.raw(`</tbody>
</table>
</section>

`)
}

func showReceiver(p *page, v receiverView) {
	showState(p, v.Level, v.Last)
	p.put(`</td><td><b>`, v.Name, `</b></td>`)
	p.put(`<td class="wrap">`, v.Listen, ``)
	p.rawIf(v.TLS, ` TLS`)
	p.put(`</td><td class="n" data-l="requests">`, v.Count, `</td>`)
	p.put(`<td class="n" data-l="samples">`, v.Taken, `</td>`)
	p.put(`<td class="n" data-l="series">`, v.Active, `</td><td class="wrap"`)
	p.rawIf(v.Refused != "", ` data-l="refused"`)
	p.put(`>`, v.Refused, "</td></tr>\n")
	if v.Left != "" {
		showDetail(p, v.Level, `"7">samples refused by themselves: `, v.Left)
	}
	if v.Error != "" {
		showDetail(p, v.Level, `"7">last refusal `, v.Error)
	}
}

func showJobs(p *page, v view) {
	if len(v.Jobs) == 0 {
		return
	}
	p.raw(`<section>
<h2>Scraping</h2>
<table class="card">
<thead><tr><th>targets up</th><th>job</th><th>last scrape</th><th class="n">slowest</th><th class="n">every</th></tr></thead>
<tbody>
`)
	for _, j := range v.Jobs {
		p.put(`<tr class="`, j.Level, `"><td class="state"><i class="dot"></i><a href="/targets#job-`)
		p.fragment(j.Job)
		p.put(`">`, j.Up, `</a>`)
		if j.Dropped > 0 {
			p.number(` <small>(`, j.Dropped, ` dropped)</small>`)
		}
		p.put(`</td><td class="wrap"><b>`, j.Job, `</b></td>`)
		p.put(`<td data-l="last scrape">`, j.Last, `</td>`)
		p.put(`<td class="n" data-l="slowest">`, j.Slowest, `</td>`)
		p.put(`<td class="n" data-l="every">`, j.Every, "</td></tr>\n")
	}
	p.raw(`</tbody>
</table>
</section>

`)
}

// scraped returns the page with every scraped target.
func scraped() screenful { return screenful{scrapedTitle, scrapedMain} }

func scrapedTitle(v view) string { return "Scraped targets of " + hostOr(v.Host) }

func scrapedMain(p *page, v view) {
	p.put(`<main id="main" data-title="`, scrapedTitle(v), `">
<p class="who"><a href="/"><b>hwsagent</b></a>`)
	showVerdict(p, v)
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
