package smart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	osexec "os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"hwsagent/inputs/panics"
	"hwsagent/probes"
	"hwsagent/probes/exec"
	"hwsagent/probes/hw"
)

const (
	atOnce     = 2       // disks that are asked at a time: their controllers have other work
	maxDevices = 1024    // that a scan may name
	maxOutput  = 4 << 20 // bytes of JSON for one disk
	// grace is how long a process that was killed may take to end, before its disk counts as one that hangs.
	grace = time.Second
)

// Probe implements [probes.Probe].
type Probe struct {
	config   Config
	exclude  *regexp.Regexp
	guard    *panics.Guard
	families families

	known   map[string]hw.Report  // what disks were when they were awake, by key
	flights *exec.Flights[answer] // of smartctl, by key
}

// answer is what became of one run of smartctl.
type answer struct {
	capture *capture
	err     error
}

// New makes the probe; nothing is run before the first round. The guard contains the panics of the
// goroutines that run smartctl; it may be nil.
func New(c Config, guard *panics.Guard) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Probe{config: c, guard: guard, families: newFamilies(), known: make(map[string]hw.Report), flights: exec.NewFlights[answer](guard)}
	if c.Exclude != "" {
		p.exclude = regexp.MustCompile(c.Exclude)
	}
	return p, nil
}

// Collect finds the disks and reads each. A disk that cannot be read costs its own series.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	devices, err := p.devices(ctx)
	if err != nil {
		return err
	}
	r.Add(p.families["devices"], float64(len(devices)))
	var errs []error
	answers := p.ask(ctx, devices)
	maps.DeleteFunc(p.known, func(key string, _ hw.Report) bool {
		return !slices.ContainsFunc(devices, func(d Device) bool { return d.key() == key })
	})
	met := make(map[string]bool) // IDs: one disk may be seen behind two paths
	for i, d := range devices {
		if answers[i].err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", strings.TrimSpace(d.key()), answers[i].err))
			continue
		}
		p.add(r, d, answers[i].capture, met)
	}
	if len(errs) > 0 && len(errs) < len(devices) {
		return fmt.Errorf("%w: %w", probes.ErrPartial, errors.Join(errs...))
	}
	return errors.Join(errs...)
}

// devices are the disks to read: those that are configured, and those of a scan.
func (p *Probe) devices(ctx context.Context) ([]Device, error) {
	found := append([]Device(nil), p.config.Devices...)
	if len(found) == 0 || p.config.Scan {
		out, err := p.run(ctx, "--scan", "--json=c")
		if err != nil && len(out) == 0 {
			return nil, fmt.Errorf("scan for disks: %w", err)
		}
		scanned, err := parseScan(out)
		if err != nil {
			return nil, err
		}
		found = append(found, scanned...)
	}
	seen := make(map[string]bool)
	keep := found[:0]
	for _, d := range found {
		if !seen[d.key()] && (p.exclude == nil || !p.exclude.MatchString(d.Device)) && len(keep) < maxDevices {
			seen[d.key()] = true
			keep = append(keep, d)
		}
	}
	return keep, nil
}

// run runs smartctl. The output is there also when the exit status is not 0.
func (p *Probe) run(ctx context.Context, args ...string) ([]byte, error) {
	command := append(append([]string(nil), p.config.command()...), args...)
	return exec.Run(ctx, &exec.Config{Command: command, MaxOutput: maxOutput}, p.guard)
}

// ask reads the devices, atOnce at a time, and returns the answers in their order. A disk whose smartctl
// does not even end when it is killed is left alone until it does.
func (p *Probe) ask(ctx context.Context, devices []Device) []answer {
	out := make([]answer, len(devices))
	slots := make(chan struct{}, atOnce)
	failed := func(err error) answer { return answer{err: err} }
	for i, d := range devices {
		if !p.flights.Start(d.key(), func() answer { return p.read(ctx, d, slots) }, failed) {
			out[i].err = errors.New("smartctl of an earlier round has not ended: the kernel does not let go of it")
		}
	}
	// Each takes its turn, and each may take its time: then all are over, or hang.
	patience := time.NewTimer(time.Duration(len(devices)/atOnce+1)*p.config.limit() + grace)
	defer patience.Stop()
	over := context.AfterFunc(ctx, func() { _ = p.guard.Run(func() { patience.Reset(grace) }) })
	defer over()
	for i, d := range devices {
		if out[i].err != nil {
			continue
		}
		landed, ok := p.flights.Wait(d.key(), patience.C)
		if !ok {
			patience.Reset(0) // for those that follow, too
			landed.err = errors.New("smartctl does not end, although it was killed")
		}
		out[i] = landed
	}
	return out
}

// read asks one disk, in its turn.
func (p *Probe) read(ctx context.Context, d Device, slots chan struct{}) answer {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return answer{err: fmt.Errorf("not read: %w", context.Cause(ctx))}
	}
	ctx, cancel := context.WithTimeout(ctx, p.config.limit())
	defer cancel()
	context.AfterFunc(ctx, func() { _ = p.guard.Run(func() { <-slots }) }) // the turn ends with the time, whether or not the process does
	args := []string{"--json=c", "--nocheck=standby", "--info", "--health", "--attributes", "--log=error", "--log=selftest", "--tolerance=verypermissive"}
	if d.Type != "" {
		args = append(args, "--device="+d.Type)
	}
	out, err := p.run(ctx, append(args, d.Device)...)
	var status *osexec.ExitError
	if err != nil && !errors.As(err, &status) {
		return answer{err: err}
	}
	c, bad := parseCapture(out)
	switch {
	case bad != nil:
		return answer{err: errors.Join(bad, err)}
	case c.Smartctl.ExitStatus&bitCommandLine != 0 || c.Smartctl.ExitStatus&bitOpen != 0 && !c.asleep():
		return answer{err: refusal(c)}
	}
	return answer{capture: c}
}

// refusal says why smartctl could not ask the disk, and what to do.
func refusal(c *capture) error {
	said := c.said()
	if said == "" {
		said = fmt.Sprintf("exit status %d", c.Smartctl.ExitStatus)
	}
	hint := ""
	if low := strings.ToLower(said); strings.Contains(low, "permission denied") || strings.Contains(low, "operation not permitted") {
		hint = "; smartctl needs root: give it to this user by sudo, as docs/probes/smart.md shows"
	}
	return fmt.Errorf("smartctl refuses: %s%s", said, hint)
}

// add adds the samples of one disk. Of one that sleeps, those that do not move.
func (p *Probe) add(r *probes.Round, d Device, c *capture, met map[string]bool) {
	w := writer{families: p.families, round: r, device: strings.ToValidUTF8(c.label(d), "\uFFFD")}
	if c.asleep() {
		w.set("device_smartctl_exit_status", float64(c.Smartctl.ExitStatus))
		if last, ok := p.known[d.key()]; ok && !met[last.ID] {
			met[last.ID] = true
			last = still(last)
			last.AddTo(r)
		}
		return
	}
	w.native(c)
	disk := c.component(w.device)
	p.known[d.key()] = disk
	if !met[disk.ID] {
		met[disk.ID] = true
		disk.AddTo(r)
	}
}
