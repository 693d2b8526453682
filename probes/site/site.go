// Package site is a probe that sends configured figures of a site, a place with machines: the carbon intensity and the
// price of its electricity, and the power usage effectiveness of the building.
package site

import (
	"context"
	"errors"
	"fmt"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// Config is the probe's own part of an entry of probes. At least one of the figures must be given.
type Config struct {
	// Site is the label site, which the series of the machines there have, too; required.
	Site string `yaml:"site"`
	// CarbonIntensity is grams of carbon dioxide per kilowatt-hour, 0 to 3000.
	CarbonIntensity *float64 `yaml:"carbon_intensity,omitempty"`
	// ElectricityCost is the price of a kilowatt-hour.
	ElectricityCost *float64 `yaml:"electricity_cost,omitempty"`
	// Currency is the label currency of the price, such as EUR; it may be empty.
	Currency string `yaml:"currency,omitempty"`
	// PUE is the power of the building divided by that of its machines, 1 to 10.
	PUE *float64 `yaml:"pue,omitempty"`
}

// FieldError is a mistake in one key of a [Config].
type FieldError struct {
	Key     string
	Message string // the mistake, and what to do
}

// Error returns key and message.
func (e *FieldError) Error() string { return e.Key + ": " + e.Message }

// Bounds of plausible figures. Electricity from lignite causes about 1,100 g/kWh; buildings from before 2000 have a PUE
// of 3.
const (
	maxCarbon = 3000
	maxPUE    = 10
)

// Validate reports every mistake at once, joined, each a [*FieldError].
func (c *Config) Validate() error {
	var errs []error
	add := func(key, format string, args ...any) {
		errs = append(errs, &FieldError{Key: key, Message: fmt.Sprintf(format, args...)})
	}
	if c.Site == "" {
		add("site", "is missing; it is the value of the label site, which the probes of the machines there need, too")
	}
	if c.CarbonIntensity == nil && c.ElectricityCost == nil && c.PUE == nil {
		add("site", "has no figure; give carbon_intensity, electricity_cost or pue")
	}
	if v := c.CarbonIntensity; v != nil && !(*v >= 0 && *v <= maxCarbon) {
		add("carbon_intensity", "%v is not between 0 and %d; its unit is grams for each kilowatt-hour", *v, maxCarbon)
	}
	if v := c.ElectricityCost; v != nil && !(*v >= 0 && *v < 1e6) {
		add("electricity_cost", "%v is not a price of a kilowatt-hour", *v)
	}
	if c.Currency != "" && c.ElectricityCost == nil {
		add("currency", "has no price beside it; give electricity_cost")
	}
	if v := c.PUE; v != nil && !(*v >= 1 && *v <= maxPUE) {
		add("pue", "%v is not between 1, where all power goes to the machines, and %d", *v, maxPUE)
	}
	return errors.Join(errs...)
}

// Probe implements [probes.Probe].
type Probe struct{ report hw.Report }

// New returns the probe.
func New(c Config) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Probe{report: hw.Report{Component: hw.Component{Kind: hw.Site}}}
	for _, f := range []struct {
		metric hw.Metric
		v      *float64
		labels []string
	}{
		{hw.SiteCarbon, c.CarbonIntensity, []string{"site", c.Site}},
		{hw.SiteCost, c.ElectricityCost, []string{"site", c.Site, "currency", c.Currency}},
		{hw.SitePUE, c.PUE, []string{"site", c.Site}},
	} {
		if f.v != nil {
			p.report.Add(f.metric, *f.v, f.labels...)
		}
	}
	return p, nil
}

// Collect adds the figures.
func (p *Probe) Collect(_ context.Context, r *probes.Round) error {
	p.report.AddTo(r)
	return nil
}
