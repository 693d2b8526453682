package smart

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	osexec "os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"hwsagent/internal/panics"
	"hwsagent/probes"
	"hwsagent/probes/exec"
	"hwsagent/probes/hw"
	"hwsagent/probes/tape"
)

const (
	atOnce = 2 // disks read at a time: their controllers have other work
	// turnTime is how long a disk keeps the next one waiting. The probe goes on waiting for a slower disk, in parallel
	// with the others: at most atOnce*read_timeout/turnTime disks are read at a time.
	turnTime   = time.Second
	maxDevices = 1024    // in a scan
	maxOutput  = 4 << 20 // bytes of JSON for one disk
	// grace is how long a killed process may take to end before its disk counts as hanging.
	grace = time.Second
)

// Probe implements [probes.Probe].
type Probe struct {
	config   Config
	exclude  *regexp.Regexp
	guard    *panics.Guard
	families families
	smartctl tape.Run

	askNVMe nvmeAsker // to NVMe controllers, for nvme: ioctl
	class   string    // the kernel's directory of them

	known   map[string]hw.Report  // the last report of each disk while awake, by key
	flights *exec.Flights[answer] // of smartctl or commands, by key
}

// answer is the result of reading a disk.
type answer struct {
	capture *capture
	own     bool // read by the probe itself, not by smartctl
	err     error
}

// New makes the probe; it runs nothing before the first round. The guard contains the panics of the
// goroutines that run smartctl; it may be nil.
func New(c Config, guard *panics.Guard) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Probe{config: c, guard: guard, families: newFamilies(), askNVMe: askNVMe, class: "/sys/class/nvme", known: make(map[string]hw.Report), flights: exec.NewFlights[answer](guard)}
	p.smartctl = p.run
	if c.Exclude != "" {
		p.exclude = regexp.MustCompile(c.Exclude)
	}
	return p, nil
}

// Collect finds the disks and reads each. A disk that cannot be read loses only its own series.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	own, others, err := p.devices(ctx)
	if err != nil {
		return err
	}
	devices := append(own, others...)
	var errs []error
	answers := p.ask(ctx, devices, len(own))
	devices, answers = p.withoutVolumes(devices, answers)
	r.Add(p.families["devices"], float64(len(devices)))
	maps.DeleteFunc(p.known, func(key string, _ hw.Report) bool {
		return !slices.ContainsFunc(devices, func(d Device) bool { return d.key() == key })
	})
	met := make(map[string]bool) // IDs; one disk may have two paths
	for i, d := range devices {
		if answers[i].err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", strings.TrimSpace(d.key()), answers[i].err))
			continue
		}
		p.add(r, d, answers[i], met)
	}
	if len(errs) > 0 && len(errs) < len(devices) {
		return fmt.Errorf("%w: %w", probes.ErrPartial, errors.Join(errs...))
	}
	return errors.Join(errs...)
}

// withoutVolumes removes the scanned disks that are volumes of RAID controllers whose members are read: a volume has no health of its own.
func (p *Probe) withoutVolumes(devices []Device, answers []answer) ([]Device, []answer) {
	var disks []Device
	var kept []answer
	for i, d := range devices {
		var v *volumeError
		if errors.As(answers[i].err, &v) && !slices.Contains(p.config.Devices, d) && slices.ContainsFunc(devices, func(o Device) bool { return o.of(v.controller) }) {
			continue
		}
		disks, kept = append(disks, d), append(kept, answers[i])
	}
	return disks, kept
}

// devices returns the disks to read, configured or scanned: those for the probe itself, and those for smartctl.
func (p *Probe) devices(ctx context.Context) (own, others []Device, err error) {
	found := slices.Clone(p.config.Devices)
	if len(found) == 0 || p.config.Scan {
		scanned, err := p.scan(ctx)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, scanned...)
	}
	own, others, err = p.own(found)
	seen, more := make(map[string]bool), 0
	unwanted := func(d Device) bool {
		switch {
		case seen[d.key()] || p.exclude != nil && p.exclude.MatchString(d.Device):
			return true
		case len(seen) == maxDevices:
			more++
			return true
		}
		seen[d.key()] = true
		return false
	}
	own, others = slices.DeleteFunc(own, unwanted), slices.DeleteFunc(others, unwanted)
	if more > 0 {
		err = errors.Join(err, fmt.Errorf("%d disks are not read: one probe reads at most %d; name the others in devices of a second probe", more, maxDevices))
	}
	return own, others, err
}

// scan returns the devices that smartctl finds. It returns none if smartctl is not installed and NVMe disks are read without it.
func (p *Probe) scan(ctx context.Context) ([]Device, error) {
	out, err := p.smartctl(ctx, "--scan", "--json=c")
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.config.NVMe == nvmeIoctl && len(p.config.Command) == 0:
		return nil, nil
	case err != nil && len(out) == 0:
		return nil, fmt.Errorf("scan for disks: %w", err)
	}
	return parseScan(out)
}

// run runs smartctl. It returns the output even if the exit status is not 0.
func (p *Probe) run(ctx context.Context, args ...string) ([]byte, error) {
	command := append(append([]string(nil), p.config.command()...), args...)
	return exec.Run(ctx, &exec.Config{Command: command, MaxOutput: maxOutput}, p.guard)
}

// ask reads the devices, atOnce in each turnTime, the first own of them by the probe itself, and returns the answers in the order of
// devices. A disk whose smartctl survives its kill, or whose command does not return, is given up when its own time is over, and
// skipped in later rounds until the call has returned.
func (p *Probe) ask(ctx context.Context, devices []Device, own int) []answer {
	out := make([]answer, len(devices))
	given := make([]chan time.Time, len(devices)) // closed when a disk is given up
	slots := make(chan struct{}, atOnce)
	failed := func(err error) answer { return answer{err: err} }
	for i, d := range devices {
		read, what := p.read, "smartctl"
		if i < own {
			read, what = p.readOwn, "a command"
		}
		given[i] = make(chan time.Time)
		giveUp := func() { close(given[i]) }
		work := func() answer {
			return p.turn(ctx, slots, giveUp, func(ctx context.Context) answer { return read(ctx, d) })
		}
		if !p.flights.Start(d.key(), work, failed) {
			out[i].err = fmt.Errorf("%s of an earlier round has not ended: the kernel does not let go of it", what)
		}
	}
	for i, d := range devices {
		if out[i].err != nil {
			continue
		}
		landed, ok := p.flights.Wait(d.key(), given[i])
		if !ok {
			landed.err = errors.New("smartctl does not end, although it was killed")
			if i < own {
				landed.err = errors.New("the controller does not answer, and the kernel does not give the command up")
			}
		}
		out[i] = landed
	}
	return out
}

// turn reads a disk when a slot is free, or gives up with ctx. The slot becomes free when the disk has answered or
// turnTime is over, so that a hanging disk delays the others by at most turnTime. turn calls giveUp if the read has not
// returned when its time and grace are over.
func (p *Probe) turn(ctx context.Context, slots chan struct{}, giveUp func(), read func(context.Context) answer) answer {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return answer{err: fmt.Errorf("not read: %w", context.Cause(ctx))}
	}
	ctx, cancel := context.WithTimeout(ctx, p.patience(ctx))
	defer cancel()
	turn, over := context.WithTimeout(ctx, turnTime)
	defer over()
	context.AfterFunc(turn, func() { _ = p.guard.Run(func() { <-slots }) })
	inTime := context.AfterFunc(ctx, func() {
		_ = p.guard.Run(func() { time.AfterFunc(grace, func() { _ = p.guard.Run(giveUp) }) })
	})
	defer inTime()
	return read(ctx)
}

// patience is how long one disk may take: read_timeout, but at most half of the rest of the round, so that a hanging
// disk is given up before the round ends.
func (p *Probe) patience(ctx context.Context) time.Duration {
	limit := p.config.limit()
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2)
	}
	return limit
}

// read reads one disk by smartctl.
func (p *Probe) read(ctx context.Context, d Device) answer {
	args := []string{"--json=c", "--nocheck=standby", "--info", "--health", "--attributes", "--log=error", "--log=selftest", "--tolerance=verypermissive"}
	if d.Type != "" {
		args = append(args, "--device="+d.Type)
	}
	out, err := p.smartctl(ctx, append(args, d.Device)...)
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

// readOwn reads an NVMe disk without smartctl. The kernel bounds the time of each command.
func (p *Probe) readOwn(_ context.Context, d Device) answer {
	c, err := p.readNVMe(d)
	return answer{capture: c, err: err, own: true}
}

// volumeError means that smartctl refuses a disk because it is a volume of a RAID controller.
type volumeError struct {
	controller string // the type of its members, such as megaraid
	said       string
}

func (e *volumeError) Error() string {
	return fmt.Sprintf("smartctl refuses: %s; list the members in devices, as in type: %q, or leave the volume out by exclude", e.said, e.controller+",0")
}

// refusal explains why smartctl could not read the disk, with the remedy.
func refusal(c *capture) error {
	if controller := c.controller(); controller != "" {
		return &volumeError{controller: controller, said: c.said()}
	}
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

// add adds the samples of one disk, and for a sleeping disk its last constant ones.
func (p *Probe) add(r *probes.Round, d Device, a answer, met map[string]bool) {
	c := a.capture
	w := writer{families: p.families, round: r, device: strings.ToValidUTF8(d.label(), "\uFFFD")}
	if !a.own {
		w.set("device_smartctl_exit_status", float64(c.Smartctl.ExitStatus))
	}
	if c.asleep() {
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
