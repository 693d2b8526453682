package web

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hwsagent/agent/status"
)

// Figures describe one minute of a target.
type Figures struct {
	Time    time.Time
	In, Out float64 // samples a second
	Lag     float64 // seconds
	Backlog float64 // bytes
}

// plotKind is one of the plots of a target.
type plotKind struct {
	Name, Label string
	of          func(Figures) float64
	text        func(float64) string
	highest     bool // draw the highest of several minutes, not the mean
}

// plotKinds returns the plots of a target, in order.
func plotKinds() []plotKind {
	return []plotKind{
		{"in", "in", func(f Figures) float64 { return f.In }, status.Rate, false},
		{"out", "sent", func(f Figures) float64 { return f.Out }, status.Rate, false},
		{"lag", "behind", func(f Figures) float64 { return f.Lag }, func(v float64) string { return status.Span(status.Seconds(v)) }, true},
		{"backlog", "waiting", func(f Figures) float64 { return f.Backlog }, func(v float64) string { return status.Size(int64(v)) }, true},
	}
}

// plotView is a plot for the page.
type plotView struct{ Label, URL string }

// plotsOf returns the plots of a target. Their addresses change each minute, because the plots do.
func plotsOf(target string, now time.Time) (views []plotView) {
	for _, k := range plotKinds() {
		q := url.Values{"of": {k.Name}, "target": {target}, "at": {strconv.FormatInt(now.Unix()/60, 10)}}
		views = append(views, plotView{k.Label, "/plot?" + q.Encode()})
	}
	return views
}

// The curve of a row: the delay as a line and what waits as an area, each below a bound that stands beside it.
const (
	curveName                       = "curve"
	curveWidth, curveHeight         = 80, 20
	curveText                       = 56       // width of the bounds
	leastLag                        = 5        // seconds: the least bound, so that a delay of a moment is low
	leastBacklog            float64 = 16 << 10 // bytes
)

// curveOf returns the address of the curve of a target, which changes each minute as the curve does.
func curveOf(target string, now time.Time) string {
	return "/plot?" + url.Values{"of": {curveName}, "target": {target}, "at": {strconv.FormatInt(now.Unix()/60, 10)}}.Encode()
}

// The size of a plot, in its own units, and the least time span that it shows.
const (
	plotWidth, plotHeight = 160, 34
	plotTop               = 12 // room for the text
	plotColumns           = 80
	leastPlot             = 10 * time.Minute
)

// plot serves GET /plot.
func (h *handlers) plot(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	kinds := plotKinds()
	i := slices.IndexFunc(kinds, func(k plotKind) bool { return k.Name == q.Get("of") })
	if i < 0 && q.Get("of") != curveName {
		http.NotFound(w, r)
		return
	}
	now := time.Now()
	figures := h.o.History(q.Get("target"))
	s := h.o.Status()
	for _, t := range s.Targets { // the present minute
		if t.Name == q.Get("target") && s.Running {
			figures = append(slices.Clip(figures), Figures{now, s.WAL.SamplesPerSec, t.SentPerSec, t.LagSeconds, float64(t.PendingBytes)})
		}
	}
	svg := ""
	if i < 0 {
		svg = curveSVG(figures, now)
	} else {
		svg = plotSVG(kinds[i], figures, now)
	}
	head := w.Header()
	head.Set("Content-Type", "image/svg+xml")
	head.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'") // allow only the picture's own style
	head.Set("Cache-Control", "private, max-age=120")
	write(w, []byte(svg))
}

// The style of plots, by day and by night.
const plotStyle = `<style>text{font:9px system-ui,sans-serif;fill:#59626d}` +
	`.l{fill:none;stroke:#2f6fb0;stroke-width:1.2}.a{fill:#2f6fb0;fill-opacity:.25;stroke:none}.b{stroke:#dfe3e8}.k{fill:#2f6fb0}` +
	`@media(prefers-color-scheme:dark){text{fill:#9aa4af}.l{stroke:#7fb2e5}.a{fill:#7fb2e5}.b{stroke:#30363d}.k{fill:#7fb2e5}}</style>`

// plotFrom returns when a plot begins: with the first figure, or leastPlot ago.
func plotFrom(figures []Figures, now time.Time) time.Time {
	if len(figures) == 0 || now.Sub(figures[0].Time) < leastPlot {
		return now.Add(-leastPlot)
	}
	return figures[0].Time
}

// plotSVG draws the figures, which must be sorted by time. It is pure.
func plotSVG(k plotKind, figures []Figures, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">%s<path class="b" d="M0 %d.5H%d"/>`, plotWidth, plotHeight, plotStyle, plotHeight-1, plotWidth)
	if len(figures) == 0 {
		fmt.Fprintf(&b, `<text x="0" y="9">%s: no figures yet</text></svg>`, k.Label)
		return b.String()
	}
	from := plotFrom(figures, now)
	columns, most := plotBuckets(k, figures, from, now)
	fmt.Fprintf(&b, `<text x="0" y="9">%s</text><text x="%d" y="9" text-anchor="end">%s</text>`, k.Label+", at most "+k.text(most), plotWidth, status.Span(now.Sub(from)))
	for _, l := range plotLines(columns, max(most, math.SmallestNonzeroFloat32), plotWidth, plotHeight-1, plotTop) {
		fmt.Fprintf(&b, `<path class="a" d="%s"/><path class="l" d="%s"/>`, l.area, l.line)
	}
	b.WriteString("</svg>")
	return b.String()
}

// curveSVG draws the curve of a row from the figures, which must be sorted by time. A bound has its number only where it is more than the
// least one. It is pure.
func curveSVG(figures []Figures, now time.Time) string {
	var b strings.Builder
	const bottom = curveHeight - 2
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">%s<path class="b" d="M0 %d.5H%d"/>`, curveWidth+curveText, curveHeight, plotStyle, bottom, curveWidth)
	from := plotFrom(figures, now)
	for _, k := range plotKinds() {
		least := map[string]float64{"lag": leastLag, "backlog": leastBacklog}[k.Name]
		if least == 0 {
			continue
		}
		class, y := ` class="k"`, 9
		if k.Name == "backlog" {
			class, y = "", bottom
		}
		columns, most := plotBuckets(k, figures, from, now)
		for _, l := range plotLines(columns, max(most, least), curveWidth, bottom, 1) {
			if k.Name == "lag" {
				fmt.Fprintf(&b, `<path class="l" d="%s"/>`, l.line)
			} else {
				fmt.Fprintf(&b, `<path class="a" d="%s"/>`, l.area)
			}
		}
		if most > least {
			fmt.Fprintf(&b, `<text%s x="%d" y="%d">≤ %s</text>`, class, curveWidth+4, y, k.text(most))
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

// plotLine is a part of a plot without gaps: the path below its values, and that of the values.
type plotLine struct{ area, line string }

// plotLines draws columns into a picture of a width, from bottom up to top, where a value as large as scale is.
func plotLines(columns [plotColumns]*float64, scale float64, width, bottom, top int) (all []plotLine) {
	for i := 0; i < len(columns); i++ {
		if columns[i] == nil {
			continue
		}
		first := i
		var line strings.Builder
		for ; i < len(columns) && columns[i] != nil; i++ {
			y := float64(bottom) - *columns[i]/scale*float64(bottom-top)
			fmt.Fprintf(&line, "L%d %.1f", (i+1)*width/plotColumns, y)
		}
		points := strings.TrimPrefix(line.String(), "L")
		if i == first+1 { // a single value becomes a dash
			points = fmt.Sprintf("%sH%d", points, first*width/plotColumns)
		}
		all = append(all, plotLine{fmt.Sprintf("M%d %dL%sL%d %dZ", (first+1)*width/plotColumns, bottom, points, i*width/plotColumns, bottom), "M" + points})
	}
	return all
}

// plotBuckets returns the values of the columns of a plot, nil where unknown, and the highest of them.
func plotBuckets(k plotKind, figures []Figures, from, now time.Time) (columns [plotColumns]*float64, most float64) {
	var count [plotColumns]float64
	width := max(now.Sub(from), time.Nanosecond)
	each := width / plotColumns
	for _, f := range figures {
		i := int(f.Time.Sub(from) / max(each, 1))
		if i < 0 || f.Time.After(now) {
			continue
		}
		i = min(i, plotColumns-1)
		v := k.of(f)
		switch {
		case columns[i] == nil:
			columns[i] = &v
		case k.highest:
			*columns[i] = max(*columns[i], v)
		default:
			*columns[i] = (*columns[i]*count[i] + v) / (count[i] + 1)
		}
		count[i]++
	}
	fillGaps(&columns, each)
	for _, c := range columns {
		if c != nil {
			most = max(most, *c)
		}
	}
	return columns, most
}

// fillGaps repeats values in columns that are shorter than the minute that a value covers.
func fillGaps(columns *[plotColumns]*float64, each time.Duration) {
	reach := int(90*time.Second/max(each, time.Second)) + 1
	last := -1
	for i := range columns {
		switch {
		case columns[i] != nil:
			for j := last + 1; last >= 0 && i-last <= reach && j < i; j++ {
				columns[j] = columns[last]
			}
			last = i
		}
	}
}
