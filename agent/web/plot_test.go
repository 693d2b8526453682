package web

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/status"
)

// day are figures of each minute of the last so many.
func day(now time.Time, minutes int, value func(i int) float64) (all []Figures) {
	for i := range minutes {
		v := value(i)
		all = append(all, Figures{Time: now.Add(time.Duration(i-minutes) * time.Minute), In: v, Out: v, Lag: v, Backlog: v})
	}
	return all
}

// TestPlots: each plot is well formed, says its highest value and how long it is, and has a gap where nothing is known.
func TestPlots(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	gap := day(now, 1440, func(int) float64 { return 5 })
	gap = append(gap[:600:600], gap[800:]...)
	for name, c := range map[string]struct {
		figures []Figures
		want    []string
		lines   int
	}{
		"none":          {nil, []string{"no figures yet"}, 0},
		"one":           {day(now, 1, func(int) float64 { return 7 }), []string{"10 min"}, 1},
		"an hour":       {day(now, 60, func(i int) float64 { return float64(i) }), []string{"60 min"}, 1},
		"a day of zero": {day(now, 1440, func(int) float64 { return 0 }), []string{"24 h"}, 1},
		"with a gap":    {gap, []string{"24 h"}, 2},
		"of the future": {day(now.Add(time.Hour), 50, func(int) float64 { return 1 }), nil, 0},
		"huge":          {day(now, 10, func(int) float64 { return math.MaxFloat32 }), nil, 1},
	} {
		for _, k := range plotKinds() {
			svg := plotSVG(k, c.figures, now)
			wellFormed(t, svg)
			for _, w := range c.want {
				if !strings.Contains(svg, w) {
					t.Errorf("%s, %s: %q is not in %s", name, k.Name, w, svg)
				}
			}
			if n := strings.Count(svg, `class="l"`); n != c.lines {
				t.Errorf("%s, %s: %d lines, want %d: %s", name, k.Name, n, c.lines, svg)
			}
			if len(svg) > 8<<10 || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Errorf("%s, %s: %d bytes: %.900s", name, k.Name, len(svg), svg)
			}
		}
	}
	kinds := plotKinds()
	for i, want := range []string{"in, at most 59/s", "sent, at most 59/s", "behind, at most 59 s", "waiting, at most 59 B"} {
		if svg := plotSVG(kinds[i], day(now, 60, func(i int) float64 { return float64(i) }), now); !strings.Contains(svg, want) {
			t.Errorf("%q is not in %s", want, svg)
		}
	}
}

// TestPlotsReachThePresent: a plot shows the present, also where the last full minute was another.
func TestPlotsReachThePresent(t *testing.T) {
	s := fleet(1)
	s.Targets[0].LagSeconds, s.Targets[0].PendingBytes = 83, 28<<10
	h := pageOf(Options{Status: func() status.Status { return s }, History: func(string) []Figures {
		return day(time.Now(), 90, func(int) float64 { return 36 })
	}})
	for of, want := range map[string]string{"lag": "behind, at most 83 s", "backlog": "waiting, at most 28 KiB"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/plot?target=receiver-00&of="+of, nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q is not in %s", want, w.Body)
		}
	}
}

// TestCurve: the curve of a row has the delay as a line and what waits as an area, with a bound for each; that of a target whose data
// waits for a moment only is low.
func TestCurve(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		figures []Figures
		parts   int
		low     bool
		texts   []string
	}{
		"none":    {nil, 0, true, nil},
		"healthy": {day(now, 1440, func(int) float64 { return 1.2 }), 1, true, nil},
		"delayed": {day(now, 1440, func(i int) float64 { return float64(i % 15) }), 1, false, []string{">≤ 14 s<"}},
		"stuck":   {day(now, 1440, func(i int) float64 { return float64(i) * 60 }), 1, false, []string{">≤ 24 h<", ">≤ 84 KiB<"}},
	} {
		svg := curveSVG(c.figures, now)
		wellFormed(t, svg)
		if n, m := strings.Count(svg, `class="l"`), strings.Count(svg, `class="a"`); n != c.parts || m != c.parts {
			t.Errorf("%s: %d lines and %d areas: %s", name, n, m, svg)
		}
		if low := !strings.Contains(svg, " 1.0"); low != c.low {
			t.Errorf("%s: low is %v: %s", name, low, svg)
		}
		if n := strings.Count(svg, "</text>"); n != len(c.texts) {
			t.Errorf("%s: %d bounds: %s", name, n, svg)
		}
		for _, one := range c.texts {
			if !strings.Contains(svg, one) {
				t.Errorf("%s: %q is not in %s", name, one, svg)
			}
		}
	}
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v: %s", err, svg)
		}
	}
}

// TestPlotIsServed: the page refers to plots of each target, and each is there, without script.
func TestPlotIsServed(t *testing.T) {
	s := fleet(2)
	s.Targets[0].Name = `a"&<b`
	s = status.Judge(s)
	asked := ""
	h := pageOf(Options{Status: func() status.Status { return s }, History: func(target string) []Figures {
		asked = target
		return day(time.Now(), 5, func(int) float64 { return 1 })
	}})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if n := strings.Count(w.Body.String(), `<img src="/plot?`); n != 2*(4+1) {
		t.Errorf("%d plots and curves on the page", n)
	}
	for _, v := range append(plotsOf(s.Targets[0].Name, s.Now), plotView{URL: curveOf(s.Targets[0].Name, s.Now)}) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, v.URL, nil))
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'none'") || asked != s.Targets[0].Name {
			t.Errorf("%s: %d %v, asked for %q", v.URL, w.Code, w.Header(), asked)
		}
		wellFormed(t, w.Body.String())
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/plot?of=nothing", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("an unknown plot: %d", w.Code)
	}
}
