package host

import (
	"context"
	"errors"
	"fmt"

	"hwsagent/probes"
)

// samples are collected in a goroutine that may be late, and added to a round afterwards.
type samples []probes.Sample

func (s *samples) add(f *probes.Family, v float64, labels ...string) {
	*s = append(*s, probes.Sample{Family: f, Value: v, Labels: labels})
}

// devices reads the devices of one class, each in its own goroutine under guard: reading a device may involve its
// firmware.
type devices struct {
	dir   string
	guard guard[samples]

	// wanted reports whether to read the device with that name in dir; nil: all.
	wanted func(name string) bool

	// query reads one device. It runs concurrently with itself and must not change anything that it did not create.
	query func(name string) samples
}

func (d *devices) read(ctx context.Context, r *probes.Round) error {
	names, err := list(d.dir)
	if err != nil {
		return err
	}
	if d.wanted != nil {
		keep := names[:0]
		for _, name := range names {
			if d.wanted(name) {
				keep = append(keep, name)
			}
		}
		names = keep
	}
	var errs []error
	found := false
	for i, o := range d.guard.all(ctx, names, d.query) {
		if o.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", names[i], o.err))
		}
		for _, s := range o.value {
			r.AddSample(s)
			found = true
		}
	}
	if !found && len(errs) == 0 {
		return errAbsent
	}
	return errors.Join(errs...)
}

// attr is a numeric attribute and the family of its samples. The value is divided by div unless div is 0.
type attr struct {
	file string
	*probes.Family
	div float64
}

// addAttrs adds those attributes in attrs that the device has.
func (s *samples) addAttrs(dir string, attrs []attr, labels ...string) {
	for _, a := range attrs {
		v, ok := number(dir + "/" + a.file)
		if !ok {
			continue
		}
		if a.div != 0 {
			v /= a.div
		}
		s.add(a.Family, v, labels...)
	}
}

// texts returns label pairs from text attributes: name, file, name, file, ….
func texts(dir string, pairs ...string) []string {
	labels := make([]string, 0, len(pairs))
	for i := 0; i < len(pairs); i += 2 {
		labels = append(labels, pairs[i], text(dir+"/"+pairs[i+1]))
	}
	return labels
}
