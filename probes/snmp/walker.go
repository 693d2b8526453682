package snmp

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes/devices"
)

// Variable is one variable that a device returned.
type Variable struct {
	OID  string // dotted, without a leading dot
	Type gosnmp.Asn1BER
	// Value is as gosnmp decodes it: int, uint, uint32, uint64, float32, float64, string (an OID or an
	// address) or []byte.
	Value any
}

// Text formats the value for a person: as text if printable, else as hexadecimal digits or a number.
func (v *Variable) Text() string {
	x := valueOf(v.Type, v.Value)
	if b, ok := x.bytes(); ok && printable(b) {
		return x.text(typeDisplayString)
	}
	return x.text(typeOctetString)
}

// printable reports whether all octets are ASCII text or white space.
func printable(b []byte) bool {
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return true
}

// Walker reads a device on behalf of a command. Its calls must not overlap.
type Walker struct{ session *session }

// maxWalked and maxWalkedBytes bound a walk of a whole device.
const (
	maxWalked      = 1_000_000
	maxWalkedBytes = 256 << 20
)

// NewWalker makes a walker of the device of c, ignoring its modules and files. It sends nothing. A
// nil pace means no rate limit.
func NewWalker(c Config, pace *devices.Pace, logger *slog.Logger) (*Walker, error) {
	var v mistakes
	if c.Auth.Name != "" {
		v.add("auth", "is the name of a login; write the login itself")
	} else {
		c.Auth.validate(&v)
	}
	if err := errors.Join(v...); err != nil {
		return nil, err
	}
	s, err := newSession(&c, logger)
	if err != nil {
		return nil, err
	}
	s.pace, s.buffers = pace, newBuffers()
	return &Walker{s}, nil
}

// Close closes the connection.
func (w *Walker) Close() { w.session.close() }

// Identify asks once for sysDescr, sysObjectID and sysName, and returns the values by OID. It tries the
// login only once, so that a device that locks users after failures does not lock this one.
func (w *Walker) Identify(ctx context.Context) (map[string]Variable, error) {
	if err := w.session.begin(ctx); err != nil {
		return nil, err
	}
	w.session.renewed = true // no second attempt after a refusal
	h := newHarvest()
	if err := w.session.get(ctx, []string{SysDescr, SysObjectID, SysName}, h); err != nil {
		return nil, err
	}
	found := map[string]Variable{}
	for _, v := range h.variables() {
		found[v.OID] = v
	}
	return found, nil
}

// Objects of the group system (RFC 3418).
const (
	SysDescr    = "1.3.6.1.2.1.1.1.0"
	SysObjectID = "1.3.6.1.2.1.1.2.0"
	SysName     = "1.3.6.1.2.1.1.5.0"
)

// Walk reads the subtree below root, and root itself if it is an object. With an error it returns the part
// read so far.
func (w *Walker) Walk(ctx context.Context, root string) ([]Variable, error) {
	at, err := parseOID(root)
	if err != nil {
		return nil, err
	}
	if err := w.session.begin(ctx); err != nil {
		return nil, err
	}
	h := newHarvest()
	h.maxVars, h.maxBytes = maxWalked, maxWalkedBytes
	err = w.session.walk(ctx, at, increasing, h)
	if err == nil && len(h.vars) == 0 {
		err = w.session.get(ctx, []string{at.String()}, h)
	}
	return h.variables(), err
}

func (h *harvest) variables() []Variable {
	all := make([]Variable, 0, len(h.vars))
	for i := range h.vars {
		all = append(all, Variable{OID: h.vars[i].oid.String(), Type: h.vars[i].typ, Value: h.vars[i].any()})
	}
	return all
}

// Reason returns why a device was not reached, for an error of a [Walker].
func Reason(err error) devices.Reason { return reasonOf(err) }

// Names maps objects to their names in the built-in modules. It is for one goroutine.
type Names struct{ columns columns }

// NewNames returns the names of the built-in modules.
func NewNames() *Names {
	var all []*compiledMetric
	for _, name := range Modules() {
		m, ok := builtin[name]
		if !ok {
			continue
		}
		c := compile(name, m)
		for i := range c.metrics {
			all = append(all, &c.metrics[i])
			for k, l := range c.metrics[i].table.lookups {
				if o := c.metrics[i].table.lookupOIDs[k]; o != nil {
					all = append(all, &compiledMetric{name: l.labelname, at: o})
				}
			}
		}
	}
	return &Names{newColumns(all)}
}

// Name returns the name of an object and its index, as ifDescr.7, or the OID if no module knows it.
func (n *Names) Name(name string) string {
	o, err := parseOID(name)
	if err != nil {
		return name
	}
	m := n.columns.find(o)
	if m == nil {
		return name
	}
	return strings.TrimSuffix(m.name+"."+o[len(m.at):].String(), ".")
}
