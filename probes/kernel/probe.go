package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// maxRound bounds the records of one round: the rest is read in the next one. A buffer of 16 MiB has about 100,000.
const maxRound = 200_000

// errEnd means that there is no further record at present, errOverwritten that records were overwritten before they were read.
var (
	errEnd         = errors.New("no further record")
	errOverwritten = errors.New("records were overwritten")
)

// source is the kernel's log.
type source interface {
	// Next returns the next record; it is valid until the next call.
	Next() ([]byte, error)
	Close() error
}

// Probe implements [probes.Probe], [probes.Committer] and [probes.Closer].
type Probe struct {
	config  Config
	exclude *regexp.Regexp
	state   string // the file with the counts; "": they are kept in memory

	open    func() (source, error)
	boot    func() (string, error)
	places  places
	keep    func(record) // receives each record that counts; may be nil
	log     source       // nil: not open
	counts  *counts      // nil: not loaded
	saved   uint64       // the sequence number up to which the state file has the counts
	unsaved error        // why the state file could not be written after the last round
}

// New returns the probe, which opens nothing before the first round. state is the file that keeps the counts across
// restarts; "" for none.
func New(c Config, state string) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Probe{config: c, state: state, open: openLog, boot: bootID, places: newPlaces("/sys")}
	if c.Exclude != "" {
		p.exclude = regexp.MustCompile(c.Exclude)
	}
	return p, nil
}

// Close closes the log.
func (p *Probe) Close() error {
	if p.log == nil {
		return nil
	}
	defer func() { p.log = nil }()
	return p.log.Close()
}

// Collect reads the new records and adds all counts.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	var errs []error
	if p.counts == nil {
		p.counts = newCounts()
		if p.state != "" {
			var err error
			p.counts, err = load(p.state)
			errs = append(errs, err)
		}
	}
	if p.unsaved != nil {
		errs = append(errs, fmt.Errorf("a restart would count events twice: %w", p.unsaved))
	}
	before := p.counts.more
	if err := p.read(ctx); err != nil {
		if p.log == nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, err)
	}
	if n := p.counts.more - before; n > 0 {
		errs = append(errs, fmt.Errorf("%d events are not counted: there are %d series; leave events out by events or exclude", n, maxSeries))
	}
	p.add(r)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", probes.ErrPartial, err)
	}
	return nil
}

// add adds the counts.
func (p *Probe) add(r *probes.Round) {
	whole := hw.Report{Component: hw.Component{Kind: hw.Host}}
	whole.Add(hw.KernelLost, float64(p.counts.Lost))
	whole.AddTo(r)
	for _, k := range p.counts.keys() {
		kind, _ := hw.KindOf(k.Kind)
		of := hw.Report{Component: hw.Component{Kind: kind, ID: k.ID, Name: k.Device}, Elsewhere: true}
		of.Add(hw.KernelErrors, float64(p.counts.Seen[k]), hw.LabelKernelEvent, k.Event, hw.LabelKernelCode, k.Code)
		of.AddTo(r)
	}
}

// read opens the log if it is not open, and counts the records after those that were read before.
func (p *Probe) read(ctx context.Context) error {
	if p.log == nil {
		boot, err := p.boot()
		if err != nil {
			return err
		}
		if boot != p.counts.Boot {
			p.counts.Boot, p.counts.Next = boot, 0
		}
		if p.log, err = p.open(); err != nil {
			p.log = nil
			return err
		}
		p.places.look()
	}
	looked := false
	for range maxRound {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read the kernel's log: %w", context.Cause(ctx))
		}
		b, err := p.log.Next()
		switch {
		case errors.Is(err, errEnd):
			return nil
		case errors.Is(err, errOverwritten):
			continue // the gap in the sequence numbers gives their number
		case err != nil:
			return errors.Join(fmt.Errorf("read the kernel's log: %w", err), p.Close())
		}
		rec, ok := parseRecord(b)
		if !ok || rec.sequence < p.counts.Next {
			continue
		}
		if p.counts.Next > 0 { // 0: this is the first record read of a boot, and the number of records overwritten before is unknown
			p.counts.Lost += rec.sequence - p.counts.Next
		}
		p.counts.Next = rec.sequence + 1
		if rec.facility != 0 || p.exclude != nil && p.exclude.MatchString(rec.message) {
			continue
		}
		if e, ok := recognise(rec.message); ok && (len(p.config.Events) == 0 || slices.Contains(p.config.Events, e.event)) {
			if !looked { // a device may have come since the last look
				looked = true
				p.places.look()
			}
			if p.keep != nil {
				p.keep(rec)
			}
			p.counts.add(p.places.key(e))
		}
	}
	return fmt.Errorf("%d records were read; the next round continues", maxRound)
}

// Committed writes the counts to the state file once the log has them. The next round reports an error, and Committed tries again.
func (p *Probe) Committed(err error) {
	if err != nil && !errors.Is(err, probes.ErrPartial) || p.counts == nil || p.state == "" || p.counts.Next == p.saved {
		return
	}
	if p.unsaved = p.counts.save(p.state); p.unsaved == nil {
		p.saved = p.counts.Next
	}
}

// key returns the series of an event.
func (p *places) key(e event) key {
	k := key{Event: e.event, Code: e.code, Device: e.device}
	switch e.place {
	case pci:
		k.Kind, k.ID = hw.PCIDevice.String(), "pci:"+e.device
	case disk, ataPort:
		k.Kind, k.ID = hw.PhysicalDisk.String(), p.disks[whole(e.device)]
		if k.ID == "" && e.place == disk && !physical(e.device) {
			k.Kind = hw.LogicalDisk.String()
		}
		k.ID = cmp.Or(k.ID, "disk:"+e.device)
	default:
		k.Kind = hw.Host.String()
	}
	return k
}
