package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// optics reads the transceivers of network devices. It only runs if configured by name: each reading uses the
// transceiver's slow bus, while the kernel holds a lock that all changes of network devices need.
type optics struct {
	machine *machine
	places  places
	dir     string
	wanted  func(name string) bool
	guard   guard[transceiverOutcome]
	// open opens the memory of the transceiver in a network device, and returns a function that closes it.
	open func(device string) (memory, func(), error)
}

type transceiverOutcome struct {
	reports []hw.Report
	err     error
}

func newHardwareOptics(e *environment) reader {
	exclude := e.pattern(&e.NetclassExclude)
	return &optics{
		machine: e.machine, places: newPlaces(e.SysPath), dir: e.sys("class/net"), wanted: func(name string) bool { return !exclude.MatchString(name) },
		guard: guard[transceiverOutcome]{limit: e.limit, panics: e.panics},
		open: func(device string) (memory, func(), error) {
			tool, err := openEthtool(e.limit)
			if err != nil {
				return nil, nil, err
			}
			return func(address, page byte, offset, length int) ([]byte, error) {
				return tool.read(device, address, page, offset, length)
			}, tool.close, nil
		},
	}
}

func (o *optics) read(ctx context.Context, r *probes.Round) error {
	all, err := list(o.dir)
	if err != nil {
		return err
	}
	var names []string
	for _, name := range all {
		if _, err := os.Stat(filepath.Join(o.dir, name, "device")); err == nil && o.wanted(name) { // others are virtual
			names = append(names, name)
		}
	}
	var errs []error
	found := false
	for i, out := range o.guard.all(ctx, names, o.query) {
		if err := errors.Join(out.err, out.value.err); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", names[i], explainOptics(err)))
		}
		for j := range out.value.reports {
			o.machine.add(r, &out.value.reports[j])
			found = true
		}
	}
	if !found && len(errs) == 0 {
		return errAbsent
	}
	return errors.Join(errs...)
}

// query reads the transceiver of one device. A device without one, or whose driver does not expose it, has no reports.
func (o *optics) query(name string) (out transceiverOutcome) {
	read, done, err := o.open(name)
	if err != nil {
		return transceiverOutcome{err: err}
	}
	defer done()
	t, err := parseTransceiver(read)
	if t == nil {
		// EOPNOTSUPP: the driver has none, for example for a copper port. The others: nothing is plugged in (drivers
		// differ).
		for _, none := range []error{unix.EOPNOTSUPP, unix.ENODEV, unix.ENXIO, unix.EIO, unix.EREMOTEIO, unix.EINVAL} {
			if errors.Is(err, none) {
				return transceiverOutcome{}
			}
		}
		return transceiverOutcome{err: err}
	}
	dir := filepath.Join(o.dir, name)
	port := o.places.netID(dir)
	if port == "" {
		port = "mac:" + text(dir+"/address")
	}
	return transceiverOutcome{reports: []hw.Report{t.report(port, name, text(dir+"/operstate") == "up")}, err: err}
}

// explainOptics adds the meaning of an error and the remedy.
func explainOptics(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w: reading transceivers needs the capability CAP_NET_ADMIN; docs/probes/host.md has the drop-in that gives it", err)
	}
	return err
}
