package library

import (
	"cmp"
	"slices"
	"strings"
)

// Identity is a device's description of itself.
type Identity struct {
	ObjectID string // sysObjectID of SNMPv2-MIB, dotted
	Descr    string // sysDescr
	// Present holds the OIDs of [Library.Questions], dotted, at or below which the device has an object, with the first value there.
	Present map[string]string
}

// Device is the result of recognising one device.
type Device struct {
	Vendor, Family string // "" if only standards apply
	definitions    []*Definition
}

// Questions returns the subtrees to ask a device for, in order: after sysObjectID and sysDescr, their presence identifies the device.
func (l *Library) Questions(id Identity) (all []OID) {
	objectID := id.parsed()
	seen := map[string]bool{}
	for _, d := range l.definitions {
		for i := range d.detects {
			for _, o := range d.detects[i].asks(objectID, id) {
				if !seen[o.String()] {
					seen[o.String()] = true
					all = append(all, o)
				}
			}
		}
	}
	return all
}

// parsed returns the sysObjectID, nil if it is invalid.
func (id Identity) parsed() OID {
	objectID, err := ParseOID(id.ObjectID)
	if err != nil {
		return nil
	}
	return objectID
}

// asks returns the objects that the entry needs to decide about the device.
func (x *detect) asks(objectID OID, id Identity) (all []OID) {
	if _, fits := x.fits(objectID, id); !fits {
		return nil
	}
	if x.present != nil {
		all = append(all, x.present)
	}
	for i := range x.unless {
		all = append(all, x.unless[i].asks(objectID, id)...)
	}
	return all
}

// Recognise finds the definitions that apply. Vendor and family come from the most specific entry: a longer
// sysObjectID before a shorter one, before a sysDescr alone, before the presence of an object. The agent's own
// sysObjectID is reliable if specific, but many agents name only their software there.
func (l *Library) Recognise(id Identity) *Device {
	objectID := id.parsed()
	dev := &Device{}
	best, replaced := -1, map[string]bool{}
	seen := map[string]bool{}
	var fills []filling
	for _, d := range l.definitions {
		heaviest, entry := d.meets(objectID, id)
		switch {
		case entry == nil:
		case d.fills:
			fills = append(fills, filling{d, entry, heaviest})
		default:
			if l.include(dev, d, seen); d.Vendor != "" && heaviest > best {
				best, dev.Vendor, dev.Family = heaviest, d.Vendor, entry.family
			}
		}
	}
	slices.SortStableFunc(fills, func(a, b filling) int {
		return cmp.Or(a.definition.rank-b.definition.rank, b.weight-a.weight)
	})
	chosen := map[string]bool{}
	for _, f := range fills {
		if group := f.definition.oneOf; group != "" {
			if chosen[group] {
				continue
			}
			chosen[group] = true
		}
		l.include(dev, f.definition, seen)
		if dev.Vendor == "" {
			dev.Vendor = f.definition.Vendor
		}
		if dev.Family == "" {
			dev.Family = f.entry.family
		}
	}
	for _, d := range dev.definitions {
		for _, name := range d.replaces {
			replaced[name] = true
		}
	}
	dev.definitions = slices.DeleteFunc(dev.definitions, func(d *Definition) bool { return replaced[d.Name] })
	return dev
}

// include adds a definition and the ones that it includes, each once, the included ones first.
func (l *Library) include(dev *Device, d *Definition, seen map[string]bool) {
	if seen[d.Name] {
		return
	}
	seen[d.Name] = true
	for _, name := range d.includes {
		l.include(dev, l.byName[name], seen)
	}
	dev.definitions = append(dev.definitions, d)
}

// filling is a definition that skips objects read by others, with the entry that the device meets.
type filling struct {
	definition *Definition
	entry      *detect
	weight     int
}

// meets finds the most specific entry that the device meets, nil if there is none. Of equally specific ones the last counts: special
// cases follow the general one.
func (d *Definition) meets(objectID OID, id Identity) (heaviest int, entry *detect) {
	for i := range d.detects {
		if weight, ok := d.detects[i].meets(objectID, id); ok && (entry == nil || weight >= heaviest) {
			heaviest, entry = weight, &d.detects[i]
		}
	}
	return heaviest, entry
}

// meets reports whether the device matches the entry, and how specific the match is.
func (x *detect) meets(objectID OID, id Identity) (weight int, ok bool) {
	if weight, ok = x.fits(objectID, id); !ok {
		return 0, false
	}
	if x.present != nil {
		value, there := id.Present[x.present.String()]
		if !there || x.value != nil && !x.value.MatchString(value) {
			return 0, false
		}
		weight++
	}
	for i := range x.unless {
		if _, met := x.unless[i].meets(objectID, id); met {
			return 0, false
		}
	}
	return weight, true
}

// fits reports whether sysObjectID and sysDescr match the entry, and how specific the match is.
func (x *detect) fits(objectID OID, id Identity) (weight int, ok bool) {
	if len(x.objectIDs) > 0 {
		longest := 0
		for _, o := range x.objectIDs {
			if objectID.within(o) {
				longest = max(longest, len(o))
			}
		}
		if longest == 0 {
			return 0, false
		}
		weight += 10 * longest
	}
	if x.pattern != nil {
		if !x.pattern.MatchString(strings.TrimPrefix(id.ObjectID, ".")) {
			return 0, false
		}
		weight += 10 * max(1, len(objectID))
	}
	if x.descr != nil {
		if !x.descr.MatchString(id.Descr) {
			return 0, false
		}
		weight += 5
	}
	return weight, true
}

// Table lists the objects to read for one table.
type Table struct {
	Gets  []string // single objects, dotted
	Walks []OID    // columns; values come first: without a row there the others are useless
	First int      // the number of columns of values
}

// Tables returns the tables to read from the device, in order. A column that several tables need is in each of them, because the others
// may be empty.
func (d *Device) Tables() (all []Table) {
	for _, def := range d.definitions {
		for _, t := range def.tables {
			var x Table
			values := map[string]bool{}
			for _, o := range t.objects {
				x.Gets = append(x.Gets, o.String())
			}
			for _, v := range t.values {
				values[v.column.base(t).String()] = true
			}
			for _, first := range []bool{true, false} {
				for _, c := range t.columns {
					key := c.String()
					if values[key] != first {
						continue
					}
					if t.scalar {
						x.Gets = append(x.Gets, key+".0")
						continue
					}
					x.Walks = append(x.Walks, c)
				}
				if first {
					x.First = len(x.Walks)
				}
			}
			all = append(all, x)
		}
	}
	return all
}
