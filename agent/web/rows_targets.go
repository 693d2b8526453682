package web

import "hwsagent/agent/status"

// showTargets shows the targets without problems.
func showTargets(p *page, v view) {
	startRows(p, `Targets`, `target`, len(v.Rows)+v.Left.Targets, len(v.Targets))
	for _, r := range v.Rows {
		showSummary(p, r.Level, r.Word, r.Name)
		showCurve(p, r)
		p.put(`<span>`, r.Lag, ` <small>behind</small></span> `)
		p.put(`<span>`, r.Waiting, ` <small>waiting`)
		if r.Gone != "" {
			p.put(`, <b class="bad">`, r.Gone, `</b>`)
		}
		p.raw("</small></span>")
		p.put(`</summary>
<div id="t-`, r.Name, `">
`)
		showTarget(p, r)
		p.raw("</div></details>\n")
	}
	endRows(p, len(v.Rows), v.Left.Targets)
}

// startRows begins the list of things of one kind that have no problems, and says how many of all these are.
func startRows(p *page, title, kind markup, well, all int) {
	if well == 0 && all > 0 {
		return
	}
	p.raw("<section>\n<h2>" + title)
	if all == 0 {
		p.raw("</h2>\n" + `<p class="none">No ` + kind + "s are configured.</p>\n</section>\n")
		return
	}
	p.number(` <small>`, well, ``)
	if well < all {
		p.number(` of `, all, ``)
	}
	p.raw("</small></h2>\n" + `<div class="rows well">` + "\n")
}

// endRows ends what startRows began, after so many rows, of which more are left out.
func endRows(p *page, shown, more int) {
	if shown+more > 0 {
		showLeft(p, more, ` more are well`)
		p.raw("</div>\n</section>\n\n")
	}
}

// showTarget writes the details of a target.
func showTarget(p *page, r rowView) {
	p.raw(`<dl>`)
	if r.URL != "" {
		p.put(`<div><dt>to</dt><dd class="url">`, r.URL, `</dd></div>`)
	}
	p.raw(`<div><dt>oldest</dt><dd>`)
	p.moment(r.Oldest)
	p.raw(`</dd></div>`)
	p.put(`<div><dt>on disk</dt><dd>`, r.Size, `</dd></div>`)
	p.put(`<div><dt>sent</dt><dd>`, r.Sent, `</dd></div>`)
	if r.Failed > 0 {
		p.put(`<div><dt>failed requests</dt><dd>`, r.Retry, `</dd></div>`)
	}
	if r.Ledger.Dropped["rejected"] > 0 {
		p.put(`<div><dt>refused</dt><dd>`, r.Refused, `</dd></div>`)
	}
	if r.Protocol != "" {
		p.put(`<div><dt>sent as</dt><dd>`, r.Protocol, ``)
		p.put(`<small> `, r.Compression, `</small></dd></div>`)
	}
	p.number(`<div><dt>senders</dt><dd>`, r.Shards, ``)
	p.number(`<small> of `, r.MaxShards, "</small></dd></div></dl>\n")
	if r.Backlog > 1 {
		showBar(p, r.Backlog, " percent of the log")
		p.number(`<small>`, r.Backlog, ` % of the log`)
		if r.FullIn != "" {
			p.put(`; `, r.FullIn, ``)
		}
		p.raw("</small></div>\n")
	}
	showPlots(p, r.Plots)
	for _, note := range r.Notes {
		p.raw(`<p>`)
		p.sentence(note)
		p.raw("</p>\n")
	}
	showMore(p, r)
}

// showCurve writes the curve of a row; its place stays without one.
func showCurve(p *page, r rowView) {
	p.raw(`<span class="curve">`)
	if r.Curve != "" {
		p.raw(`<img src="`)
		p.local(r.Curve)
		p.raw(`" alt="24 h: delay (line), waiting (area), the bound of each" loading="lazy">`)
	}
	p.raw(`</span> `)
}

func showPlots(p *page, plots []plotView) {
	if len(plots) == 0 {
		return
	}
	p.raw(`<div class="plots">`)
	for _, plot := range plots {
		p.raw(`<img src="`)
		p.local(plot.URL)
		p.put(`" alt="`, plot.Label, `, 24 h" loading="lazy">`)
	}
	p.raw("</div>\n")
}

// showMore ends a row with the less important details.
func showMore(p *page, r rowView) {
	p.raw(`<p class="more">`)
	if r.Down != "" {
		p.raw(`<b class="bad">`)
		p.sentence(r.Down)
		p.raw(`</b> · `)
	}
	if r.Error != "" {
		p.raw(`<span`)
		p.rawIf(r.Level != status.LevelOK, ` class="bad"`)
		p.raw(`><b>last error</b> at `)
		p.moment(r.ErrorAt)
		p.put(`, `, r.Error, ``)
		if r.LastError != "" {
			p.put(`: `, r.LastError, ``)
		}
		p.raw(`</span> · `)
	}
	if !r.LastSuccess.IsZero() {
		p.put(`last write accepted `, r.Success, ` · `)
	} else if r.Ledger.Delivered == 0 {
		p.raw(`no write accepted yet · `)
	}
	if r.Skew != "" {
		p.put(`this host's clock is `, r.Skew, ` · `)
	}
	if r.Ends != "" {
		p.put(``, r.Ends, ` · `)
	}
	p.text(r.Account)
	p.rawIf(!r.Ledger.Balanced, ` <b>which does not add up</b>`)
	p.raw("</p>\n")
}
