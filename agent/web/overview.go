package web

import "hwsagent/agent/status"

// The start of each page, its title, and its end.
const (
	pageStart markup = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>`
	pageBody markup = `</title>
<link rel="stylesheet" href="/assets/page.css">
`
	pageRefresh markup = `<noscript><meta http-equiv="refresh" content="30"></noscript>
`
	pageHead markup = `<script src="/assets/page.js" defer></script>
</head>
<body>
`
	pageEnd markup = `
</body>
</html>
`
)

// screenful is a page of the agent: a title, a level for its icon, and the main element, which is sent repeatedly.
type screenful struct {
	title, level func(view) string
	main         func(*page, view)
}

// whole returns the document.
func (s screenful) whole(v view) []byte {
	p := page{now: v.Now}
	p.put(pageStart, s.title(v), pageBody)
	showIcon(&p, s.level(v))
	p.rawIf(!v.All, pageRefresh)
	p.raw(pageHead)
	showField(&p, v.Search.Query)
	s.main(&p, v)
	p.raw(pageEnd)
	return p.b.Bytes()
}

// part returns its main element.
func (s screenful) part(v view) string {
	p := page{now: v.Now}
	s.main(&p, v)
	return p.b.String()
}

func overview() screenful { return screenful{overviewTitle, verdictLevel, overviewMain} }

func verdictLevel(v view) string { return v.Verdict.Level }

func overviewTitle(v view) string {
	return mark(v.Verdict.Level) + " " + hostOr(v.Host) + ": " + v.Verdict.Text
}

// mark returns a sign for a level, for people who cannot see colours.
func mark(level string) string {
	switch level {
	case status.LevelOK, status.SeverityNote:
		return "✓"
	case status.SeverityWarning:
		return "!"
	}
	return "✗"
}

func hostOr(host string) string {
	if host == "" {
		return "hwsagent"
	}
	return host
}

func overviewMain(p *page, v view) {
	startMain(p, v, overviewTitle(v))
	p.raw(`<p class="who"><b>hwsagent</b>`)
	showWho(p, v)
	showConclusion(p, v.Verdict.Level, v.Verdict.Text)
	showWay(p, v.Way)
	showThings(p, v)
	if len(v.Hardware.Worst) > 0 {
		showHardware(p, v.Hardware)
	}
	showTargets(p, v)
	showProbes(p, v)
	showJobs(p, v)
	showReceivers(p, v)
	if len(v.Hardware.Worst) == 0 { // below what a person looks for
		showHardware(p, v.Hardware)
	}
	showLog(p, v)
	showEvents(p, v)
	showConfig(p, v)
	p.put(`<footer>hwsagent `, v.Version, ``)
	if v.Up != "" {
		p.put(` · up `, v.Up, ``)
	}
	p.raw(` · <a href="/api/v1/status">status as JSON</a> · <a href="/metrics">metrics</a> · <a href="/api/v1/config">configuration in force</a> · `)
	p.rawIf(len(v.Jobs) > 0, `<a href="/targets">scraped targets</a> · `)
	if v.Homepage != "" {
		p.raw(`<a rel="noreferrer" href="`)
		p.abroad(v.Homepage)
		p.raw(`">documentation</a>, `)
	} else {
		p.raw(`documentation: `)
	}
	p.raw(`<code>man hwsagent</code>, or the folder docs of the source</footer>
</main>`)
}

// startMain begins the element that a page refreshes.
func startMain(p *page, v view, title string) {
	p.put(`<main id="main" data-title="`, title, `"`)
	p.rawIf(v.All, ` data-all`)
	p.raw(">\n")
}

// showWho ends the line with the agent's name, with the time by which all others on the page are to be read.
func showWho(p *page, v view) {
	if v.Host != "" {
		p.put(` on `, v.Host, ``)
	}
	p.put(`, <time datetime="`, v.Instant, `">`)
	p.put(``, v.At, `</time>`)
	p.rawIf(v.All, ` · this page does not refresh: <a href="/">the live page</a>`)
	p.raw("</p>\n")
}

// showConclusion writes the sentence at the top of a page.
func showConclusion(p *page, level, text string) {
	p.put(`<header class="verdict `, level, `">
`)
	p.put(`  <span class="mark" aria-hidden="true">`, mark(level), `</span>
`)
	p.put(`  <h1>`, text, `</h1>
`)
	p.raw("</header>\n")
}

// showLog shows the log as a row, unless it has one among the things with problems.
func showLog(p *page, v view) {
	if v.LogBroken {
		return
	}
	p.raw("<section>\n<h2>Log</h2>\n" + `<div class="rows well">` + "\n")
	showSummary(p, status.LevelOK, "ok", v.Log.Dir)
	p.put(`<span>`, v.Log.Series, ` <small>series</small></span> `)
	p.put(`<span>`, v.Log.In, ` <small>in</small></span> `)
	p.put(`<span>`, v.Log.Bytes, ` <small>on disk</small></span></summary>
<div id="k-wal">
`)
	showLogMore(p, v.Log)
	p.raw("</div></details>\n</div>\n</section>\n\n")
}

// showLogMore writes the details of the log.
func showLogMore(p *page, l logView) {
	p.put(`<dl><div><dt>on disk</dt><dd>`, l.Bytes, ``)
	p.put(`<small> of `, l.Max, "</small></dd></div>\n")
	p.put(`<div><dt>segments</dt><dd>`, l.Segments, "</dd></div>\n")
	p.put(`<div><dt>appended</dt><dd>`, l.Appended, "</dd></div>\n")
	if l.Refused != "" {
		p.put(`<div><dt>refused</dt><dd>`, l.Refused, "</dd></div>\n")
	}
	p.put(`<div><dt>disk free</dt><dd>`, l.Free, "</dd></div>\n")
	if l.Lasts != "" {
		p.put(`<div><dt>lasts without targets</dt><dd>`, l.Lasts, "</dd></div>\n")
	}
	p.put(`<div><dt>in</dt><dd class="url">`, l.Dir, "</dd></div>\n")
	p.put(`<div><dt>durable</dt><dd>`, l.Sync, "</dd></div></dl>\n")
}

// showBar shows a percentage. It does not end the element: a text may follow.
func showBar(p *page, percent int, label markup) {
	p.number(`<div class="bar"><svg viewBox="0 0 100 1" preserveAspectRatio="none" role="img" aria-label="`, percent, label)
	p.number(`"><rect class="full" width="100" height="1"/><rect class="part" width="`, percent, `" height="1"/></svg>`)
}

func showEvents(p *page, v view) {
	if len(v.Events.Lines) == 0 {
		return
	}
	p.raw(`<section>
<h2>Last 24 hours</h2>
<ul class="events card">
`)
	for _, e := range v.Events.Lines {
		showEvent(p, e)
	}
	if v.Events.More > 0 {
		p.number(`<li class="more">and `, v.Events.More, " older ones: <code>hwsagent events</code></li>\n")
	}
	p.raw(`</ul>
</section>

`)
}

func showConfig(p *page, v view) {
	p.put(`<section>
<h2>Configuration</h2>
<p>`, v.Config.File, ``)
	p.raw(`, loaded `)
	p.moment(v.LoadedAt)
	p.rawIf(v.Config.ReloadError != "", ` <b class="bad">(the last reload failed)</b>`)
	p.raw("</p>\n")
	if v.Config.ReloadError != "" {
		p.put(`<pre class="error">`, v.Config.ReloadError, "</pre>\n")
	}
	p.raw("</section>\n")
}
