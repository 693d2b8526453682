package library

import "slices"

// Identity is what a device says of itself.
type Identity struct {
	ObjectID string          // sysObjectID of SNMPv2-MIB, dotted
	Descr    string          // sysDescr
	Present  map[string]bool // those of [Library.Questions] at or below which it has an object, dotted
}

// Device is what the library knows of one device.
type Device struct {
	Vendor, Family string // "" if only standards apply
	definitions    []*Definition
}

// Questions are the subtrees whose presence tells devices apart, in order.
func (l *Library) Questions() (all []OID) {
	seen := map[string]bool{}
	for _, d := range l.definitions {
		for _, x := range d.detects {
			if x.present != nil && !seen[x.present.String()] {
				seen[x.present.String()] = true
				all = append(all, x.present)
			}
		}
	}
	return all
}

// Recognise finds the definitions that apply. Vendor and family are those of the entry that says most: a
// longer sysObjectID before a shorter one before a sysDescr alone before an object that is there: what an
// agent calls itself, it is, and many agents call themselves by the name of their software only.
func (l *Library) Recognise(id Identity) *Device {
	objectID, err := ParseOID(id.ObjectID)
	if err != nil {
		objectID = nil
	}
	dev := &Device{}
	best, replaced := -1, map[string]bool{}
	seen := map[string]bool{}
	for _, d := range l.definitions {
		applies := false
		for i := range d.detects {
			weight, ok := d.detects[i].meets(objectID, id)
			applies = applies || ok
			if ok && d.Vendor != "" && weight > best {
				best, dev.Vendor, dev.Family = weight, d.Vendor, d.detects[i].family
			}
		}
		if applies {
			l.include(dev, d, seen)
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

// include adds a definition and those that it includes, each once, the included ones first.
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

// meets reports whether the device is of this kind, and how much that says.
func (x *detect) meets(objectID OID, id Identity) (weight int, ok bool) {
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
	if x.descr != nil {
		if !x.descr.MatchString(id.Descr) {
			return 0, false
		}
		weight += 5
	}
	if x.present != nil {
		if !id.Present[x.present.String()] {
			return 0, false
		}
		weight += 1
	}
	return weight, true
}

// Table is what is read for one table.
type Table struct {
	Gets  []string // single objects, dotted
	Walks []OID    // columns; the first are those of values: without a row there the others are of no use
	First int      // how many of Walks those are
}

// Tables are what is read of the device, in order, each column once.
func (d *Device) Tables() (all []Table) {
	seen := map[string]bool{}
	for _, def := range d.definitions {
		for _, t := range def.tables {
			var x Table
			values := map[string]bool{}
			for _, v := range t.values {
				values[v.column.base(t).String()] = true
			}
			for _, first := range []bool{true, false} {
				for _, c := range t.columns {
					key := c.String()
					if values[key] != first || seen[key] {
						continue
					}
					seen[key] = true
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
