// Package hardware runs single rounds of probes for the commands of a person, and returns the hardware as an inventory,
// a recording of a device, or the samples of the round.
package hardware

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hwsagent/agent/config"
	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/hardware/snmptool"
	"hwsagent/internal/panics"
	"hwsagent/probes"
	"hwsagent/probes/catalog"
	"hwsagent/probes/snmp"
)

// Options are the settings that the commands about hardware share.
type Options struct {
	ConfigFile string
	// Probe is the name of a probe in the configuration; or an entry of probes in YAML's flow style, as in {type: snmp,
	// target: HOST}, which needs no configuration; or a type that needs no settings, such as host, unless a probe has
	// that name.
	Probe string
	// Definitions are directories with hardware definitions for SNMP, in addition to those of the agent and of the
	// entry.
	Definitions []string
	Logger      *slog.Logger
}

// inventoryWithin bounds the reading of one probe for a person, who can wait longer than a scheduled round.
const inventoryWithin = 5 * time.Minute

// parallel bounds how many probes are read at the same time.
const parallel = 8

// TakeInventory reads the hardware of one probe, or of an entry's devices; without a name, of all enabled probes that
// read hardware. It reports a probe that cannot be read in its Problem; if none can be read, the error is [ErrProbe].
func TakeInventory(ctx context.Context, o Options) ([]inventory.Inventory, error) {
	chosen, err := o.chosen()
	if err != nil {
		return nil, err
	}
	all, errs := make([]inventory.Inventory, len(chosen)), make([]error, len(chosen))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range chosen {
		p := &chosen[i]
		all[i] = inventory.Inventory{Name: p.Name, Type: p.Type, Target: p.Target, Components: []*inventory.Component{}}
		guard := panics.New("probe "+p.Name, o.Logger)
		group.Go(func() error {
			errs[i] = guard.Do(func() error { return takeOne(ctx, p, o, guard, &all[i]) })
			return nil
		})
	}
	_ = group.Wait() // each probe has its own error
	for i, err := range errs {
		if err != nil {
			all[i].Problem = err.Error()
		}
	}
	for i := range all {
		if all[i].Problem == "" || len(all[i].Components) > 0 {
			return all, nil
		}
	}
	return all, fmt.Errorf("%w: no hardware could be read", ErrProbe)
}

func takeOne(ctx context.Context, p *config.Probe, o Options, guard *panics.Guard, inv *inventory.Inventory) error {
	probe, err := wholeProbe(p, o, guard)
	if err != nil {
		return err
	}
	return readInventory(ctx, probe, inv)
}

// readInventory reads a probe once, closes it, and stores its components in inv.
func readInventory(ctx context.Context, p probes.Probe, inv *inventory.Inventory) error {
	ctx, cancel := context.WithTimeout(ctx, inventoryWithin)
	defer cancel()
	r := probes.NewRound(config.MaxSamples)
	r.Source = inv.Type
	err := p.Collect(ctx, r)
	if errors.Is(err, snmp.ErrNothingKnown) {
		err = nil // the inventory says it in more words
	}
	inv.Add(r)
	return errors.Join(err, closeProbe(p))
}

func closeProbe(p probes.Probe) error {
	if c, ok := p.(probes.Closer); ok {
		return c.Close()
	}
	return nil
}

// wholeProbe returns the probe of an entry with all its hardware selected, whatever the entry selects.
func wholeProbe(p *config.Probe, o Options, guard *panics.Guard) (probes.Probe, error) {
	one := *p
	if t, _ := catalog.Find(p.Type); t.Whole != nil {
		one.Settings = t.Whole(p.Settings, o.Definitions)
	}
	return construct(&one, o.Logger, guard)
}

// chosen returns the probes that o selects.
func (o *Options) chosen() ([]config.Probe, error) {
	if strings.HasPrefix(strings.TrimSpace(o.Probe), "{") {
		return entryOf(o.Probe)
	}
	cfg, _, err := config.Load(o.ConfigFile, os.LookupEnv)
	named, _ := catalog.Find(o.Probe)
	bare := named.Bare
	switch {
	case errors.Is(err, fs.ErrNotExist) && bare != "":
		return entryOf(bare)
	case errors.Is(err, fs.ErrNotExist) && o.Probe != "":
		return nil, fmt.Errorf("%w: %q is neither an entry nor a type without settings, and the configuration cannot be read: %w", config.ErrNoSuchProbe, o.Probe, err)
	case err != nil:
		return nil, err
	}
	var all []config.Probe
	for _, p := range cfg.Probes {
		if o.Probe == "" && p.Enabled && isHardware(p.Type) || o.Probe != "" && (p.Name == o.Probe || p.Job == o.Probe) {
			all = append(all, p)
		}
	}
	switch {
	case len(all) == 0 && o.Probe == "":
		return nil, fmt.Errorf("%w that reads hardware is in %s: its types are %s", config.ErrNoSuchProbe, cfg.File, strings.Join(catalog.HardwareNames(), ", "))
	case len(all) == 0 && bare != "":
		return entryOf(bare)
	case len(all) == 0:
		_, err := cfg.Probe(o.Probe)
		return nil, fmt.Errorf("%w; an entry as under probes works as well: '{type: snmp, target: HOST}'", err)
	case !isHardware(all[0].Type):
		return nil, fmt.Errorf("%w: %q is of type %s, which reads no hardware; the types that do are %s", config.ErrUsage, o.Probe, all[0].Type, strings.Join(catalog.HardwareNames(), ", "))
	}
	return all, nil
}

func isHardware(probeType string) bool { return slices.Contains(catalog.HardwareNames(), probeType) }

// entryOf returns the probe of an entry given on the command line. Relative paths in it are relative to the current
// directory.
func entryOf(text string) ([]config.Probe, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("get the current directory: %w", err)
	}
	cfg, _, err := config.LoadBytes(filepath.Join(dir, "entry"), []byte("probes:\n- "+text+"\n"), os.LookupEnv)
	if wrong, ok := errors.AsType[*config.Errors](err); ok {
		for i := range wrong.Errors {
			e := &wrong.Errors[i]
			e.File, e.Line = "the entry on the command line", 0 // it is in no file, and the line is the only one
		}
	}
	if err != nil {
		return nil, err
	}
	var all []config.Probe
	for _, p := range cfg.Probes {
		if isHardware(p.Type) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the type of the entry does not read hardware; types that do: %s", config.ErrUsage, strings.Join(catalog.HardwareNames(), ", "))
	}
	return all, nil
}

// InventoryOf returns the inventory that the agent reads from a recording of any type, without the hardware.
func InventoryOf(ctx context.Context, file string, o Options) (inv inventory.Inventory, err error) {
	inv = inventory.Inventory{Name: file, Components: []*inventory.Component{}}
	t, err := readTape(file)
	if errors.Is(err, errOtherFormat) {
		inv.Type = "snmp"
		device, err := snmptool.Play(file, o.Definitions, o.Logger)
		if err != nil {
			return inv, err
		}
		return withProblem(inv, readInventory(ctx, device, &inv))
	}
	if err != nil {
		return inv, err
	}
	inv.Type = t.Type
	dir, err := os.MkdirTemp("", "hwsagent-recording-")
	if err != nil {
		return inv, fmt.Errorf("make a directory for the recording: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := replayOf(t, dir, o.Logger)
	if err != nil {
		return inv, fmt.Errorf("%s: %w", file, err)
	}
	err = readInventory(ctx, p, &inv)
	return withProblem(inv, err)
}

// withProblem returns inv with the error of its reading. The error is the command's only if inv has nothing else.
func withProblem(inv inventory.Inventory, err error) (inventory.Inventory, error) {
	if err == nil {
		return inv, nil
	}
	inv.Problem = err.Error()
	if len(inv.Components) == 0 {
		return inv, fmt.Errorf("%w: %w", ErrProbe, err)
	}
	return inv, nil
}
