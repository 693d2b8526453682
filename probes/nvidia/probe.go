package nvidia

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"time"

	"hwsagent/internal/panics"
	"hwsagent/probes"
	"hwsagent/probes/exec"
	"hwsagent/probes/hw"
	"hwsagent/probes/tape"
)

const (
	maxOutput = 32 << 20 // bytes of XML: 16 GPUs with a hundred processes each have about 2 MB
	// grace is how long a killed process may take to end before it counts as hung.
	grace = time.Second
)

// Probe implements [probes.Probe].
type Probe struct {
	config   Config
	guard    *panics.Guard
	families families
	program  tape.Run
	flights  *exec.Flights[printed]
	dcgm     []dcgmFamily // nil without names: dcgm
	hostname string       // the label Hostname of dcgm-exporter
	meters   map[string]*meter
	now      func() time.Time
}

// meter adds up the energy of a GPU.
type meter struct {
	hw.Meter
	before time.Time
}

// printed is the outcome of one run of nvidia-smi.
type printed struct {
	out []byte
	err error
}

// New returns the probe, which runs nothing before the first round. The guard contains the panics of the goroutines
// that run nvidia-smi; it may be nil.
func New(c Config, guard *panics.Guard) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Probe{config: c, guard: guard, families: newFamilies(), flights: exec.NewFlights[printed](guard), now: time.Now}
	if c.Names == namesDCGM {
		var err error
		if p.hostname, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("get the host name for the label Hostname: %w", err)
		}
		p.dcgm = dcgmFamilies()
	}
	p.program = func(ctx context.Context, args ...string) ([]byte, error) {
		command := append(append([]string(nil), p.config.command()...), args...)
		return exec.Run(ctx, &exec.Config{Command: command, MaxOutput: maxOutput}, p.guard)
	}
	return p, nil
}

// Collect runs nvidia-smi once, and twice more with nvlink.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	out, err := p.run(ctx, "-q", "-x")
	if err != nil {
		return err
	}
	log, err := parse(out)
	if err != nil {
		return err
	}
	p.add(r, log)
	if !p.config.NVLink {
		return nil
	}
	var errs []error
	met := make(map[[3]string]bool)
	for _, option := range [...]string{"--status", "--errorcounters"} {
		out, err := p.run(ctx, "nvlink", option)
		if err != nil {
			errs = append(errs, fmt.Errorf("nvlink %s: %w", option, err))
			continue
		}
		p.addLinks(r, parseLinks(string(out)), met)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", probes.ErrPartial, err)
	}
	return nil
}

// run runs nvidia-smi. If one does not even end when it is killed, as with a hanging driver, no other is started until
// it has ended.
func (p *Probe) run(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.limit())
	defer cancel()
	work := func() (done printed) {
		done.out, done.err = p.program(ctx, args...)
		return done
	}
	if !p.flights.Start("", work, func(err error) printed { return printed{err: err} }) {
		return nil, errors.New("nvidia-smi of an earlier round has not ended: the driver does not release it; look at the kernel's messages (journalctl -k -g NVRM)")
	}
	over := time.NewTimer(p.config.limit() + grace)
	defer over.Stop()
	stop := context.AfterFunc(ctx, func() { _ = p.guard.Run(func() { over.Reset(grace) }) })
	defer stop()
	done, ok := p.flights.Wait("", over.C)
	var status *osexec.ExitError
	switch {
	case !ok:
		return nil, errors.New("nvidia-smi does not end, although it was killed")
	case errors.As(done.err, &status) && strings.Contains(string(done.out), "<gpu "):
		return done.out, nil // it complains about one GPU, and prints the others
	case errors.As(done.err, &status):
		return nil, fmt.Errorf("nvidia-smi refuses (%w): %s", done.err, refusal(string(done.out)))
	}
	return done.out, done.err
}

// refusal returns nvidia-smi's error in one line, with the remedy.
func refusal(said string) string {
	text := valid(strings.Join(strings.Fields(said), " "))
	text = valid(text[:min(len(text), 300)])
	switch {
	case strings.Contains(said, "couldn't communicate with the NVIDIA driver"):
		return text + "; the driver is not loaded: see modprobe nvidia, and journalctl -k -g NVRM"
	case strings.Contains(said, "Insufficient Permissions"):
		return text + "; this user may not open /dev/nvidia*: docs/probes/nvidia.md has what the service needs"
	}
	return text
}

func (p *Probe) add(r *probes.Round, log *node) {
	driver := log.say("driver_version")
	own := p.dcgm == nil
	if own {
		r.Add(p.families["driver_info"], 1, "driver_version", driver, "cuda_version", log.say("cuda_version"))
	}
	met := make(map[string]bool)
	meters := make(map[string]*meter) // of the GPUs that are there
	for _, g := range log.all("gpu") {
		id := identity(g)
		if met[id] {
			continue
		}
		met[id] = true
		w := writer{families: p.families, round: r, uuid: id}
		joules, metered := p.energy(g, id, meters)
		if own {
			w.native(g)
		} else {
			p.addDCGM(r, g, driver, joules, metered)
		}
		if p.config.Processes {
			w.processes(g)
		}
		seen := make(map[string]bool)
		for i, c := range components(g, driver) {
			if i == 0 && metered {
				c.Add(hw.Energy, joules)
			}
			if !seen[c.ID] {
				seen[c.ID] = true
				c.AddTo(r)
			}
		}
	}
	p.meters = meters
	if own {
		r.Add(p.families["gpus"], float64(len(met)))
	}
}

// energy adds the energy since the last round to the GPU's meter, and returns the sum; false if the GPU reports no power.
func (p *Probe) energy(g *node, id string, meters map[string]*meter) (float64, bool) {
	watts, ok := g.number(powerDraw...)
	if !ok {
		return 0, false
	}
	m, now := p.meters[id], p.now()
	if m == nil {
		m = &meter{before: now}
	}
	meters[id] = m
	gap := now.Sub(m.before)
	m.before = now
	return m.Add(gap, watts), true
}

// addLinks adds links that were not added yet.
func (p *Probe) addLinks(r *probes.Round, links []link, met map[[3]string]bool) {
	for _, l := range links {
		if key := [3]string{l.uuid, l.number, l.errors}; !met[key] {
			met[key] = true
			w := writer{families: p.families, round: r, uuid: l.uuid}
			if l.errors == "" {
				w.set("gpu_nvlink_speed_bytes_per_second", l.value, "link", l.number)
			} else {
				w.set("gpu_nvlink_errors_total", l.value, "link", l.number, "error", l.errors)
			}
		}
	}
}
