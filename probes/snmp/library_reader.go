package snmp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
	"hwsagent/probes/snmp/library"
)

// hardwareModule is the module that has no list of objects: the device says what it is, and the library
// of definitions says what such a device has.
const hardwareModule = "hardware"

// Objects of the group system (RFC 3418) by which a device is recognised.
const (
	sysDescr    = "1.3.6.1.2.1.1.1.0"
	sysObjectID = "1.3.6.1.2.1.1.2.0"
)

// patience is for how many rounds a table that the device does not have is not asked for.
const patience = 20

// libraryReader reads the hardware of one device.
type libraryReader struct {
	library *library.Library
	id      library.Identity // of the last round
	device  *library.Device  // nil until it was recognised
	tables  []library.Table
	absent  []int // by table, how many rounds it is left out
	last    library.Result
}

var deviceInfo = probes.Family{Name: "snmp_device_info", Help: "What the library of hardware recognises the device as; always 1.", Type: model.MetricTypeGauge}

// read adds the device's hardware to the round. A table that cannot be read is left out and named in the
// error; the others are told.
func (l *libraryReader) read(ctx context.Context, s *session, r *probes.Round) error {
	if err := l.recognise(ctx, s); err != nil {
		return err
	}
	h := newHarvest()
	var errs []error
	for i := range l.tables {
		if l.absent[i] > 0 {
			l.absent[i]--
			continue
		}
		before := len(h.vars)
		if err := l.table(ctx, s, &l.tables[i], h); err != nil {
			if over(ctx) != nil || isTimeout(err) || errors.Is(err, errTooMuch) {
				return err // the device as a whole: a part of its components would look like all of them
			}
			errs = append(errs, err)
		} else if len(h.vars) == before {
			l.absent[i] = patience
		}
	}
	l.last = l.device.Evaluate(library.NewTree(variables(h)))
	for i := range l.last.Reports {
		l.last.Reports[i].AddTo(r)
	}
	r.Add(&deviceInfo, 1, "vendor", l.device.Vendor, "family", l.device.Family)
	return errors.Join(errs...)
}

// recognise asks the device what it is; the definitions are looked up again when the answer changes.
func (l *libraryReader) recognise(ctx context.Context, s *session) error {
	h := newHarvest()
	if err := s.get(ctx, []string{sysDescr, sysObjectID}, h); err != nil {
		return err
	}
	text := func(o string) string {
		if v := h.lookup(mustOID(o)); v != nil {
			return v.text(typeDisplayString)
		}
		return ""
	}
	id := library.Identity{ObjectID: text(sysObjectID), Descr: text(sysDescr), Present: map[string]bool{}}
	if l.device != nil && id.ObjectID == l.id.ObjectID && id.Descr == l.id.Descr {
		return nil
	}
	questions := newHarvest()
	if err := s.get(ctx, l.library.Questions(), questions); err != nil {
		return err
	}
	for i := range questions.vars {
		id.Present[questions.vars[i].oid.String()] = true
	}
	l.id, l.device = id, l.library.Recognise(id)
	l.tables = l.device.Tables()
	l.absent = make([]int, len(l.tables))
	return nil
}

// table reads one table. Without a value in it, names and conditions are of no use.
func (l *libraryReader) table(ctx context.Context, s *session, t *library.Table, h *harvest) error {
	if err := s.get(ctx, t.Gets, h); err != nil {
		return err
	}
	before := len(h.vars)
	for i, o := range t.Walks {
		if i == t.First && i > 0 && len(h.vars) == before {
			return nil
		}
		if err := s.walk(ctx, oid(o), increasing, h); err != nil {
			return fmt.Errorf("table at %s: %w", o, err)
		}
	}
	return nil
}

// variables are what was read, for the library.
func variables(h *harvest) []library.Variable {
	all := make([]library.Variable, 0, len(h.vars))
	for i := range h.vars {
		v := &h.vars[i]
		x := library.Variable{OID: library.OID(v.oid)}
		if x.Number, x.Numeric = v.number(typeGauge); !x.Numeric {
			x.Text = strings.TrimSpace(v.text(typeDisplayString))
		}
		all = append(all, x)
	}
	return all
}
