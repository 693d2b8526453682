package site

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"hwsagent/probes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCollect(t *testing.T) {
	carbon, cost, pue := 230.0, 0.12, 1.4
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Site: "boston", CarbonIntensity: &carbon, ElectricityCost: &cost, Currency: "USD", PUE: &pue},
			"hw_site_carbon_intensity [site boston] 230; hw_site_electricity_cost [site boston currency USD] 0.12; hw_site_pue [site boston] 1.4"},
		{Config{Site: "x", PUE: &pue}, "hw_site_pue [site x] 1.4"},
	} {
		p, err := New(c.config)
		if err != nil {
			t.Fatal(err)
		}
		r := probes.NewRound(0)
		if err := p.Collect(t.Context(), r); err != nil {
			t.Error(err)
		}
		var got []string
		for _, s := range r.Samples() {
			got = append(got, fmt.Sprint(s.Family.Name, " ", s.Labels, " ", s.Value))
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("it gives %s, want %s", text, c.want)
		}
	}
}

// TestMistakes has each figure at its bounds and beyond.
func TestMistakes(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		config Config
		wrong  string // keys
	}{
		{Config{}, "site site"}, {Config{Site: "a"}, "site"}, {Config{PUE: number(1)}, "site"}, {Config{Site: "a", PUE: number(1)}, ""}, {Config{Site: "a", PUE: number(10)}, ""},
		{Config{Site: "a", PUE: number(0.9)}, "pue"}, {Config{Site: "a", PUE: number(11)}, "pue"}, {Config{Site: "a", PUE: number(math.NaN())}, "pue"},
		{Config{Site: "a", CarbonIntensity: number(0)}, ""}, {Config{Site: "a", CarbonIntensity: number(-1)}, "carbon_intensity"}, {Config{Site: "a", CarbonIntensity: number(230_000)}, "carbon_intensity"},
		{Config{Site: "a", ElectricityCost: number(0)}, ""}, {Config{Site: "a", ElectricityCost: number(-1)}, "electricity_cost"}, {Config{Site: "a", PUE: number(1), Currency: "EUR"}, "currency"},
		{Config{Site: "a", PUE: number(0), CarbonIntensity: number(math.Inf(1)), ElectricityCost: number(math.NaN())}, "carbon_intensity electricity_cost pue"},
	} {
		var keys []string
		err := c.config.Validate()
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				key, _, _ := strings.Cut(line, ":")
				keys = append(keys, key)
			}
		}
		if got := strings.Join(keys, " "); got != c.wrong {
			t.Errorf("%+v is refused for %q, want %q: %v", c.config, got, c.wrong, err)
		}
		if _, err := New(c.config); (err != nil) != (c.wrong != "") {
			t.Errorf("New says %v", err)
		}
	}
}

// TestDocumentation: docs/probes/site.md names each metric.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/probes/site.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hw_site_carbon_intensity", "hw_site_electricity_cost", "hw_site_pue"} {
		if !strings.Contains(string(page), "`"+name) {
			t.Errorf("%s is not on the page", name)
		}
	}
}
