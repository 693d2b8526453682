package snmp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gosnmp/gosnmp"
	"github.com/prometheus/common/model"

	"hwsagent/probes"
	"hwsagent/probes/snmp/library"
)

// hardwareModule is the module without a list of objects: the library of definitions lists the
// objects for the kind of device.
const hardwareModule = "hardware"

// patience is for how many rounds a table that the device lacks is not requested.
const patience = 20

// libraryReader reads the hardware of one device.
type libraryReader struct {
	library *library.Library
	id      library.Identity // of the last round
	device  *library.Device  // nil until recognised
	tables  []library.Table
	absent  []int // by table, the number of rounds to skip
	last    library.Result
}

// ErrNothingKnown is the error of a round in which the device answers every request and has none of the objects that the library knows. The
// rest of the round is good: it wraps probes.ErrPartial.
var ErrNothingKnown error = nothingKnown{}

type nothingKnown struct{}

func (nothingKnown) Error() string {
	return "answers, but none of its hardware is known: hwsagent snmp test shows its objects, and hwsagent snmp import adds definitions (docs/snmp-library.md)"
}

func (nothingKnown) Is(target error) bool { return target == probes.ErrPartial }

var deviceInfo = probes.Family{Name: "snmp_device_info", Help: "Definition by which the hardware library recognises the device; always 1.", Type: model.MetricTypeGauge}

// read adds the device's hardware to the round. A table that cannot be read is skipped and named in the
// error; the others are reported.
func (l *libraryReader) read(ctx context.Context, s *session, r *probes.Round) error {
	if err := l.recognise(ctx, s); err != nil {
		return err
	}
	h := newHarvest()
	read := map[string]int{}
	var errs []error
	for i := range l.tables {
		if l.absent[i] > 0 {
			l.absent[i]--
			continue
		}
		rows, err := l.table(ctx, s, &l.tables[i], h, read)
		if err != nil {
			if over(ctx) != nil || isTimeout(err) || errors.Is(err, errTooMuch) {
				return err // concerns the whole device: some of its components would look like all of them
			}
			errs = append(errs, err)
		} else if rows == 0 {
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

// recognise asks the device for its identity, and looks the definitions up again if the answer has changed.
func (l *libraryReader) recognise(ctx context.Context, s *session) error {
	h := newHarvest()
	if err := s.get(ctx, []string{SysDescr, SysObjectID}, h); err != nil {
		return err
	}
	text := func(o string) string {
		if v := h.lookup(mustOID(o)); v != nil {
			return v.text(typeDisplayString)
		}
		return ""
	}
	id := library.Identity{ObjectID: text(SysObjectID), Descr: text(SysDescr), Present: map[string]string{}}
	if l.device != nil && id.ObjectID == l.id.ObjectID && id.Descr == l.id.Descr {
		return nil
	}
	for questions := l.library.Questions(id); len(questions) > 0; {
		n, err := s.has(ctx, questions, id.Present)
		if err != nil {
			return err
		}
		questions = questions[n:]
	}
	l.id, l.device = id, l.library.Recognise(id)
	l.tables = l.device.Tables()
	l.absent = make([]int, len(l.tables))
	return nil
}

// has asks by GETNEXT whether the device has an object below the first roots; n is the number of roots asked about.
func (s *session) has(ctx context.Context, roots []library.OID, present map[string]string) (n int, err error) {
	n = min(len(roots), s.bulk, gosnmp.MaxOids)
	if s.auth.version() == 1 {
		n = 1 // the end of the tree below one root would fail the others
	}
	p, n, err := s.request(ctx, n, func(g *gosnmp.GoSNMP, size int) (*gosnmp.SnmpPacket, error) {
		names := make([]string, size)
		for i := range names {
			names[i] = roots[i].String()
		}
		return g.GetNext(names)
	})
	switch {
	case err != nil:
		return n, err
	case (p.Error == gosnmp.TooBig || p.Error == gosnmp.GenErr) && n > 1:
		s.shrink(n/2, p.Error.String())
		return 0, nil
	case p.Error != gosnmp.NoError: // the device has none, or cannot tell
		return n, nil
	}
	for i, v := range s.buffers.variables(p) {
		if v.has() && i < n && v.oid.hasPrefix(oid(roots[i])) {
			present[roots[i].String()] = v.text(typeDisplayString)
		}
	}
	return n, nil
}

// table reads one table, without the objects that are in read, which has the number of variables of each object that was read in this
// round. rows is that of the table's values; without any, names and conditions are skipped.
func (l *libraryReader) table(ctx context.Context, s *session, t *library.Table, h *harvest, read map[string]int) (rows int, err error) {
	var gets []string
	for _, o := range t.Gets {
		if _, done := read[o]; !done {
			gets = append(gets, o)
		}
	}
	before := len(h.vars)
	if err := s.get(ctx, gets, h); err != nil {
		return 0, err
	}
	for _, o := range gets {
		read[o] = 0
	}
	for i := before; i < len(h.vars); i++ {
		read[library.OID(h.vars[i].oid).String()] = 1
	}
	for _, o := range t.Gets {
		rows += read[o]
	}
	for i, o := range t.Walks {
		if i == t.First && i > 0 && rows == 0 {
			return 0, nil
		}
		key := o.String()
		n, done := read[key]
		if !done {
			before := len(h.vars)
			if err := s.walk(ctx, oid(o), increasing, h); err != nil {
				return rows, fmt.Errorf("table at %s: %w", key, err)
			}
			n = len(h.vars) - before
			read[key] = n
		}
		if i < t.First {
			rows += n
		}
	}
	return rows, nil
}

// variables converts a harvest for the library.
func variables(h *harvest) []library.Variable {
	all := make([]library.Variable, 0, len(h.vars))
	for i := range h.vars {
		v := &h.vars[i]
		x := library.Variable{OID: library.OID(v.oid)}
		if x.Number, x.Numeric = v.number(typeGauge); !x.Numeric {
			x.Text = strings.TrimSpace(v.text(typeDisplayString))
			x.Octets, _ = v.bytes()
		}
		all = append(all, x)
	}
	return all
}
