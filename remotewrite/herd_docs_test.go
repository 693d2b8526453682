package remotewrite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// herds are the simulations that docs/herd.md shows.
type herds struct {
	fleet
	ours, prom, together curve
}

// The marks in docs/herd.md between which the figures stand.
const (
	figuresBegin = "<!-- figures: TestHerd -->\n"
	figuresEnd   = "<!-- end of figures -->"
)

// write replaces the figures in dir/herd.md and the picture dir/herd.svg.
func (h *herds) write(t *testing.T, dir string) {
	page := filepath.Join(dir, "herd.md")
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(old), figuresBegin)
	_, after, ok2 := strings.Cut(rest, figuresEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the figures", page)
	}
	text := before + figuresBegin + h.table() + figuresEnd + after
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "herd.svg"), []byte(h.picture()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (h *herds) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | Prometheus' rule | hwsagent | hwsagent, started together |\n|---|---|---|---|\n")
	row := func(what string, f func(c *curve) string) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", what, f(&h.prom), f(&h.ours), f(&h.together))
	}
	row("peak at the receiver, requests/s", func(c *curve) string { return fmt.Sprint(c.peak()) })
	row("refused with 503: wasted requests", func(c *curve) string { return fmt.Sprint(c.refused()) })
	row("everything delivered after", func(c *curve) string { return fmt.Sprintf("%.0f s", c.drained.Seconds()) })
	row("the last agent's first batch after", func(c *curve) string { return fmt.Sprintf("%.0f s", c.first.Seconds()) })
	return b.String()
}

// picture is the load over time: requests that reach the receiver, and samples that wait.
func (h *herds) picture() string {
	const (
		wide, high    = 760, 500
		left, right   = 70, 740
		top1, bottom1 = 60, 260
		top2, bottom2 = 320, 450
	)
	from, span := -10, 110 // seconds around the return
	most := 0.0
	for _, c := range []*curve{&h.ours, &h.prom} {
		most = max(most, float64(c.peak()))
	}
	most *= 1.05
	waits := 0.0
	for _, s := range h.prom.seconds {
		waits = max(waits, float64(s.waiting))
	}
	x := func(second int) float64 { return left + float64(second-from)*(right-left)/float64(span) }
	y1 := func(v float64) float64 { return bottom1 - v/most*(bottom1-top1) }
	y2 := func(v float64) float64 { return bottom2 - v/waits*(bottom2-top2) }

	var b strings.Builder
	p := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#333">`, wide, high)
	p(`<rect width="%d" height="%d" fill="#fff"/>`, wide, high)
	p(`<text x="%d" y="20" font-size="14" font-weight="bold">%d agents come back to a receiver of %.0f requests/s, after %.0f minutes</text>`, left, h.agents, h.capacity, h.outage.Minutes())
	p(`<text x="%d" y="%d">requests/s that reach it</text>`, left, top1-12)
	p(`<text x="%d" y="%d">samples that wait, millions</text>`, left, top2-12)
	for s := from + 10 - (from+10)%10; s <= from+span; s += 10 {
		p(`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#eee"/>`, x(s), x(s), top1, bottom1)
		p(`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#eee"/>`, x(s), x(s), top2, bottom2)
		p(`<text x="%.1f" y="%d" text-anchor="middle">%d</text>`, x(s), bottom2+18, s)
	}
	p(`<text x="%d" y="%d" text-anchor="end">seconds since the receiver is back</text>`, right, bottom2+38)
	for v := 0.0; v < most; v += h.capacity {
		p(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.0f</text>`, left, right, y1(v), y1(v), left-6, y1(v)+4, v)
	}
	for _, v := range []float64{0, waits / 2, waits} {
		p(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.0f</text>`, left, right, y2(v), y2(v), left-6, y2(v)+4, v/1e6)
	}
	p(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#333" stroke-dasharray="4 4"/><text x="%d" y="%.1f" text-anchor="end">what it can serve</text>`, left, right, y1(h.capacity), y1(h.capacity), right, y1(h.capacity)-5)
	line := func(c *curve, y func(float64) float64, value func(second) int, colour string) {
		var pts []string
		back := int(c.back / time.Second)
		for s := from; s < from+span; s++ {
			if i := back + s; i >= 0 && i < len(c.seconds) {
				pts = append(pts, fmt.Sprintf("%.1f,%.1f", x(s), y(float64(value(c.seconds[i])))))
			}
		}
		p(`<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`, colour, strings.Join(pts, " "))
	}
	came, waiting := func(s second) int { return s.came }, func(s second) int { return s.waiting }
	const promColour, ourColour = "#d95f02", "#1b6ca8"
	line(&h.prom, y1, came, promColour)
	line(&h.ours, y1, came, ourColour)
	line(&h.prom, y2, waiting, promColour)
	line(&h.ours, y2, waiting, ourColour)
	for i, l := range []struct{ name, colour string }{{"Prometheus' rule", promColour}, {"hwsagent", ourColour}} {
		at := right - 260 + i*150
		p(`<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="%s" stroke-width="2"/><text x="%d" y="%d">%s</text>`, at, at+16, top1-16, top1-16, l.colour, at+20, top1-12, strings.ReplaceAll(l.name, "'", "&#39;"))
	}
	p(`</svg>`)
	return b.String()
}
