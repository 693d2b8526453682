package web

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var colour = regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{3,6});`)

// palettes returns the colours of the style, light and dark.
func palettes(t *testing.T) map[string]map[string]string {
	t.Helper()
	css, err := assets.ReadFile("assets/page.css")
	if err != nil {
		t.Fatal(err)
	}
	light, rest, ok := strings.Cut(string(css), "@media (prefers-color-scheme: dark)")
	dark, _, ok2 := strings.Cut(rest, "* { box-sizing")
	if !ok || !ok2 {
		t.Fatal("the style has no dark colours")
	}
	all := map[string]map[string]string{}
	for name, text := range map[string]string{"light": light, "dark": dark} {
		all[name] = map[string]string{}
		for _, m := range colour.FindAllStringSubmatch(text, -1) {
			all[name][m[1]] = m[2]
		}
	}
	return all
}

// luminance returns the relative luminance of a colour, by WCAG 2.1.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatalf("colour %q: %v", hex, err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// Every text can be read on what it stands on, by day and by night: 4.5 to 1, as WCAG 2.1 (AA) asks of small text.
func TestContrast(t *testing.T) {
	on := map[string][]string{
		"ink": {"bg", "card"}, "dim": {"bg", "card"}, "note": {"bg", "card"},
		"ok": {"bg", "card", "ok-bg"}, "warn": {"bg", "card", "warn-bg"}, "bad": {"bg", "card", "bad-bg"},
	}
	for mode, colours := range palettes(t) {
		for text, grounds := range on {
			for _, ground := range grounds {
				if colours[text] == "" || colours[ground] == "" {
					t.Fatalf("%s: no colour %s or %s", mode, text, ground)
				}
				a, b := luminance(t, colours[text]), luminance(t, colours[ground])
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", mode, text, ground, ratio)
				}
			}
		}
	}
}
