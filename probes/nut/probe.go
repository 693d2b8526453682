package nut

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/config"

	"hwsagent/internal/redact"
	"hwsagent/probes"
	"hwsagent/probes/devices"
	"hwsagent/probes/hw"
)

// Probe implements [probes.Probe]. It keeps nothing open between rounds.
type Probe struct {
	config   Config
	address  string
	families *families
	hide     *redact.Holder
	pace     *devices.Pace
	contact  devices.Contact
	greet    func(context.Context) (c session, names []string, done func(), err error)

	known map[string][]hw.Report // the reports of each device's last reading, by its name
}

// New returns the probe, which requests nothing before the first round. A nil pace means no limit of connections.
func New(c Config, pace *devices.Pace) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	p := &Probe{config: c, address: address, families: newFamilies(), hide: redact.Hold(&c), pace: pace, known: make(map[string][]hw.Report)}
	p.greet = p.connect
	return p, nil
}

// Collect reads each device. A device without data in upsd at present only loses its own readings: its components have
// the state unknown.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	err := p.collect(ctx, r)
	if err != nil {
		err = p.hide.Secrets().Error(err) // the error may repeat upsd's answer
	}
	return err
}

func (p *Probe) collect(ctx context.Context, r *probes.Round) error {
	defer p.contact.Report(r)
	start := time.Now()
	if err := p.contact.Wait(start); err != nil {
		return err
	}
	c, names, done, err := p.greet(ctx)
	defer done()
	p.contact.Greeted(start, reasonOf(err), p.hide.Secrets().Error(err))
	if err != nil {
		return p.why(ctx, err)
	}
	maps.DeleteFunc(p.known, func(name string, _ []hw.Report) bool { return !slices.Contains(names, name) })
	var errs []error
	read := 0
	for _, name := range names {
		vars, err := c.variables(name)
		switch {
		case err == nil:
			p.add(r, name, vars)
			read++
		case ofDevice(err):
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			p.unknown(r, name)
		default: // the connection is no longer usable
			return partial(read, append(errs, fmt.Errorf("%s: %w", name, p.why(ctx, err))))
		}
	}
	c.logout()
	return partial(read, errs)
}

// partial joins the errors of a round that read some devices; of none it is a failure of the whole round.
func partial(read int, errs []error) error {
	err := errors.Join(errs...)
	if err != nil && read > 0 {
		return fmt.Errorf("%w: %w", probes.ErrPartial, err)
	}
	return err
}

// session is a connection to an upsd, after the greeting.
type session interface {
	variables(device string) ([]variable, error)
	logout()
}

// connect connects and lists the devices. done closes the connection.
func (p *Probe) connect(ctx context.Context) (s session, names []string, done func(), err error) {
	if err := p.pace.Wait(ctx); err != nil {
		return nil, nil, func() {}, err
	}
	c, done, err := dial(ctx, p.address)
	if err == nil {
		err = p.begin(ctx, c)
	}
	if err == nil {
		names, err = p.names(c)
	}
	return c, names, done, err
}

// begin encrypts the connection and logs in, if configured.
func (p *Probe) begin(ctx context.Context, c *client) error {
	if p.config.StartTLS {
		settings := p.config.TLSConfig
		if settings == nil {
			settings = &config.TLSConfig{}
		}
		conf, err := config.NewTLSConfig(settings)
		if err != nil {
			return fmt.Errorf("tls_config: %w", err)
		}
		if conf.ServerName == "" {
			conf.ServerName, _, _ = net.SplitHostPort(p.address)
		}
		if err := c.startTLS(ctx, conf); err != nil {
			return err
		}
	}
	password := string(p.config.Password)
	if p.config.PasswordFile != "" {
		var err error
		if password, err = redact.ReadFile(p.config.PasswordFile); err != nil {
			return fmt.Errorf("%w: %w", errSecret, err)
		}
	}
	return c.login(p.config.Username, password)
}

// names returns the devices to read.
func (p *Probe) names(c *client) ([]string, error) {
	if len(p.config.UPS) > 0 {
		return p.config.UPS, nil
	}
	devices, err := c.devices()
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	var names []string
	for _, d := range devices {
		if !slices.Contains(names, d.name) {
			names = append(names, d.name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("upsd has no device: look at ups.conf")
	}
	return names, nil
}

// why explains an error that was caused by the end of the round's time.
func (p *Probe) why(ctx context.Context, err error) error {
	var timeout net.Error
	if ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("upsd does not answer in time: %w", err)
	}
	return err
}

func (p *Probe) add(r *probes.Round, name string, vars []variable) {
	if p.config.raw() {
		p.families.add(r, name, vars)
	}
	all := components(name, vars)
	p.known[name] = all
	for i := range all {
		valid(&all[i])
		all[i].AddTo(r)
	}
}

// unknown adds the unknown state for the components of a device without data.
func (p *Probe) unknown(r *probes.Round, name string) {
	all := p.known[name]
	if all == nil {
		all = []hw.Report{{Status: hw.Unknown, Component: hw.Component{Kind: hw.PowerSupply, ID: "ups:" + name, Name: name}}}
	}
	for _, c := range all {
		c.Readings = nil
		if c.Status != 0 {
			c.Status = hw.Unknown
		}
		c.AddTo(r)
	}
}

// valid turns the labels of a component into valid UTF-8.
func valid(p *hw.Report) {
	for i := range p.Facts {
		p.Facts[i] = strings.ToValidUTF8(p.Facts[i], "\uFFFD")
	}
}
