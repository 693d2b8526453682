package ipmi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// part is a part of the machine with an inventory, from its FRU device locator record (section 43.8).
type part struct {
	record   uint16
	device   byte // the inventory's number
	entity   byte
	instance byte
	name     string
}

// locator is the type of FRU device locator records.
const locator = 0x11

// parsePart parses a FRU device locator. It returns false for an inventory of another controller, for one that the BMC does not
// read by number, and for the machine's own, which is number 0.
func parsePart(r []byte) (part, bool) {
	if len(r) < recordHeader || r[3] != locator || len(r) < recordHeader+int(r[4]) || len(r) < 16 {
		return part{}, false
	}
	p := part{record: binary.LittleEndian.Uint16(r), device: r[6], entity: r[12], instance: r[13], name: parseText(r[15], r[16:])}
	const logical = 1 << 7
	const unit = 3 << 3 // commands go to unit 0
	return p, r[5] == bmc && r[7]&(logical|unit) == logical && p.device != 0 && p.device != 0xff
}

// id returns the ID of the component; sensors of the part have it as their parent.
func (p *part) id() string { return (&sensor{entity: p.entity, instance: p.instance}).parent() }

// partKinds are the kinds of components by entity (table 43-13); the rest are modules.
var partKinds = map[byte]hw.Kind{
	3: hw.CPU, 4: hw.PhysicalDisk, 8: hw.Memory, 10: hw.PowerSupply, 20: hw.PowerSupply, 26: hw.PhysicalDisk, 29: hw.Fan, 30: hw.Fan, 32: hw.Memory, 40: hw.Battery,
}

func (p *part) kind() hw.Kind {
	if kind, ok := partKinds[p.entity]; ok {
		return kind
	}
	return hw.Module
}

// Inventories are read a few per round: each takes a dozen commands or more, and BMCs are slow.
const (
	partsPerRound = 4
	partsAgain    = time.Hour
)

// inventories caches the inventories of a machine's parts.
type inventories struct {
	known map[byte]inventory // by the inventory's number
}

type inventory struct {
	product *product  // nil if there is no readable one
	at      time.Time // when it was read
}

// read reads a few of the inventories that are unknown or were read long ago. A part without one costs only the request.
func (v *inventories) read(ctx context.Context, l link, parts []part, now time.Time) error {
	left := partsPerRound
	for i := range parts {
		n := parts[i].device
		if old, ok := v.known[n]; ok && now.Sub(old.at) < partsAgain {
			continue
		}
		if left--; left < 0 {
			return nil
		}
		one, err := readInventory(ctx, l, n)
		found := inventory{product: v.known[n].product, at: now} // an earlier inventory is kept
		switch {
		case err == nil:
			found.product = &one
		case isNone(err), errors.Is(err, errInventory), errors.Is(err, errShort):
			found.product, err = nil, nil
		case errors.As(err, new(completion)):
			err = nil // a temporary refusal
		}
		if v.known == nil {
			v.known = make(map[byte]inventory)
		}
		v.known[n] = found
		if err != nil { // the next attempt is in an hour, so the error affects only this round
			return fmt.Errorf("inventory of %q: %w", parts[i].name, err)
		}
	}
	return nil
}

// facts returns the labels of a part's component; nil if its inventory is empty.
func (v *inventories) facts(p *part) []string {
	one := v.known[p.device].product
	if one == nil || one.maker == "" && one.name == "" && one.part == "" && one.serial == "" {
		return nil
	}
	model := one.name
	if model == "" {
		model = one.part
	}
	return []string{hw.Vendor, clean(one.maker), hw.Model, clean(model), hw.Serial, clean(one.serial)}
}

func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// unclaimed holds the parts whose inventory is not yet on a component of the round, by the component's ID.
type unclaimed map[string]*part

func (v *inventories) unclaimed(parts []part) unclaimed {
	all := make(unclaimed)
	for i := range parts {
		if p := &parts[i]; all[p.id()] == nil && v.facts(p) != nil {
			all[p.id()] = p
		}
	}
	return all
}

// claim moves the inventory of a part to the sensor that reports the state of that part, so that the part is one component. A
// sensor that measures a value is a separate component.
func (v *inventories) claim(left unclaimed, c *hw.Report) {
	if p := left[c.Parent]; p != nil && p.kind() == c.Kind && len(c.Readings) == 0 {
		c.Facts = v.facts(p)
		delete(left, c.Parent)
	}
}

// add adds the unclaimed parts as separate components, in the order of their records.
func (v *inventories) add(r *probes.Round, parts []part, left unclaimed) {
	for i := range parts {
		p := &parts[i]
		if left[p.id()] != p {
			continue
		}
		c := hw.Report{Component: hw.Component{Kind: p.kind(), ID: p.id(), Name: clean(p.name), Parent: "enclosure", Facts: v.facts(p)}}
		c.AddTo(r)
	}
}
