package raid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"time"

	"hwsagent/internal/panics"
	"hwsagent/probes"
	"hwsagent/probes/exec"
	"hwsagent/probes/hw"
	"hwsagent/probes/tape"
)

const (
	maxOutput = 16 << 20 // bytes: storcli prints about 6 KB for each disk
	// grace is how long a killed process may take to end before it counts as hung.
	grace = time.Second
	// maxReports bounds the components of one round: 8 controllers with 240 disks have about 4,000.
	maxReports = 20_000
)

// Probe implements [probes.Probe].
type Probe struct {
	config  Config
	guard   *panics.Guard
	find    func() []string // the programs to run
	program tape.Run        // its first argument is the program
	flights *exec.Flights[printed]
}

// printed is the outcome of one run.
type printed struct {
	out []byte
	err error
}

// New returns the probe, which runs nothing before the first round. The guard contains the panics of the goroutines
// that run programs; it may be nil.
func New(c Config, guard *panics.Guard) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Probe{config: c, guard: guard, flights: exec.NewFlights[printed](guard)}
	p.find = p.installed
	p.program = func(ctx context.Context, args ...string) ([]byte, error) {
		command := p.config.Command
		if len(command) == 0 {
			command = args[:1]
		}
		command = append(append([]string(nil), command...), args[1:]...)
		return exec.Run(ctx, &exec.Config{Command: command, MaxOutput: maxOutput}, p.guard)
	}
	return p, nil
}

// installed returns the configured program, or else those that are installed, each name once.
func (p *Probe) installed() (found []string) {
	if n := len(p.config.Command); n > 0 {
		return p.config.Command[n-1:]
	}
	seen := make(map[string]bool)
	for _, d := range dialects() {
		for _, path := range d.paths {
			name := strings.TrimSuffix(filepath.Base(path), "64")
			if info, err := os.Stat(path); err == nil && !info.IsDir() && !seen[name] {
				seen[name] = true
				found = append(found, path)
			}
		}
	}
	return found
}

// Collect runs each program and adds its controllers. A controller that two programs know counts once.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	programs := p.find()
	if len(programs) == 0 {
		return fmt.Errorf("no program of a RAID controller is installed (looked for %s): install the controller maker's, or name its path in command", strings.Join(programNames(), ", "))
	}
	var errs []error
	met, reports := make(map[string]bool), 0
	for _, program := range programs {
		all, err := dialectOf(program).read(ctx, func(ctx context.Context, args ...string) ([]byte, error) { return p.run(ctx, program, args) })
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", filepath.Base(program), err))
		}
		for _, c := range distinct(all, met) {
			for i := range c {
				if reports++; reports <= maxReports {
					c[i].AddTo(r)
				}
			}
		}
	}
	if reports > maxReports {
		errs = append(errs, fmt.Errorf("%d components are not sent: one probe sends at most %d", reports-maxReports, maxReports))
	}
	err := errors.Join(errs...)
	switch {
	case err == nil && reports == 0:
		return fmt.Errorf("%s finds no controller; without root it finds none: docs/probes/raid.md has the rule for sudo", strings.Join(programs, ", "))
	case err != nil && reports > 0:
		return fmt.Errorf("%w: %w", probes.ErrPartial, err)
	}
	return err
}

// distinct returns the controllers that no program before has reported, with IDs that differ; met has the IDs of those.
func distinct(all []controller, met map[string]bool) (kept []controller) {
	seen := make(map[string]int) // how often, by kind and ID
	for _, c := range all {
		if len(c) == 0 || met[c[0].ID] {
			continue
		}
		for i := range c {
			key := c[i].Kind.String() + " " + strings.ReplaceAll(c[i].ID, "#", "_")
			if seen[key]++; seen[key] > 1 {
				c[i].ID = fmt.Sprintf("%s#%d", c[i].ID, seen[key])
			}
		}
		kept = append(kept, c)
	}
	for _, c := range kept {
		met[c[0].ID] = true
	}
	return kept
}

// run runs a program. If one does not even end when it is killed, as with a hanging controller, it is not started again
// until it has ended.
func (p *Probe) run(ctx context.Context, program string, args []string) ([]byte, error) {
	limit := p.config.limit()
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	work := func() (done printed) {
		done.out, done.err = p.program(ctx, append([]string{program}, args...)...)
		return done
	}
	if !p.flights.Start(program, work, func(err error) printed { return printed{err: err} }) {
		return nil, errors.New("the program of an earlier round has not ended: the driver does not release it; look at the kernel's messages (journalctl -k)")
	}
	over := time.NewTimer(limit + grace)
	defer over.Stop()
	stop := context.AfterFunc(ctx, func() { _ = p.guard.Run(func() { over.Reset(grace) }) })
	defer stop()
	done, ok := p.flights.Wait(program, over.C)
	var status *osexec.ExitError
	switch {
	case !ok:
		return nil, fmt.Errorf("%s does not end, although it was killed", strings.Join(args, " "))
	case errors.Is(done.err, fs.ErrPermission):
		return nil, fmt.Errorf("%w; it needs root: docs/probes/raid.md has the rule for sudo", done.err)
	case errors.As(done.err, &status) && len(bytes.TrimSpace(done.out)) > 0:
		return done.out, nil
	case done.err != nil:
		return nil, fmt.Errorf("%s: %w", strings.Join(args, " "), done.err)
	}
	return done.out, nil
}

// refusal is what a program says instead of an answer, in one line, with the remedy.
func refusal(said string) error {
	text := strings.ToValidUTF8(strings.Join(strings.Fields(said), " "), "")
	text = strings.ToValidUTF8(text[:min(len(text), 300)], "")
	low := strings.ToLower(text)
	for _, word := range [...]string{"root", "permission", "privilege", "administrator", "not permitted"} {
		if strings.Contains(low, word) {
			return fmt.Errorf("it refuses: %s; docs/probes/raid.md has the rule for sudo", text)
		}
	}
	return fmt.Errorf("it answers: %s", text)
}

// part returns the report of a component.
func part(kind hw.Kind, id, name, parent string, facts ...string) hw.Report {
	return hw.Report{Component: hw.Component{Kind: kind, ID: id, Name: name, Parent: parent, Facts: facts}}
}
