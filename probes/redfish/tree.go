package redfish

import (
	"strconv"
	"strings"

	"hwsagent/probes/hw"
)

const (
	maxPages = 64     // of one collection
	maxNodes = 20_000 // of one service
)

// tree holds the resources that one round has read, and those still to be read.
type tree struct {
	nodes    []*node          // in the order in which they were found
	byPath   map[string]*node // those
	seen     map[string]bool  // paths requested or found, including pages of collections
	deferred []want           // fallbacks
	endless  string           // a collection with too many pages
}

// node is a resource, or a part of one that is a component.
type node struct {
	path   string // for a part: path of the resource, property and the part's key
	role   *role
	name   string // name of the role
	object object
	parent *node // the node that links to this one; nil for the root
	inline bool
	at     int64 // when it was read, in milliseconds since 1970; 0 if in this round
}

// want is a resource to read.
type want struct {
	path   string
	role   string
	parent *node
	many   bool
	page   int
	when   fallback
	at     int64 // when it was read, as in node
}

func newTree() *tree {
	t := &tree{byPath: make(map[string]*node), seen: make(map[string]bool)}
	t.seen[rootPath] = true
	return t
}

// place stores the resource read for w, and returns the resources to read next because of it.
func (t *tree) place(w want, o object) []want {
	if strings.HasPrefix(o.text("@odata.type"), "#Sensor.") { // found through a link that should lead elsewhere
		w.role = "sensor"
	}
	r := roles[w.role]
	members, isCollection := o["Members"].([]any)
	if !isCollection || r.leaf && r.attached {
		return t.add(&node{path: w.path, role: r, name: w.role, object: o, parent: w.parent, at: w.at})
	}
	next := t.targets(members, want{role: w.role, parent: w.parent, at: w.at})
	more, ok := o["Members@odata.nextLink"].(string)
	if !ok {
		more, ok = o["@odata.nextLink"].(string)
	}
	if path, valid := resourcePath(more); ok && valid && !t.seen[path] {
		if w.page+1 == maxPages {
			t.endless = w.path
			return next
		}
		t.seen[path] = true
		next = append(next, want{path: path, role: w.role, parent: w.parent, page: w.page + 1})
	}
	return next
}

// targets returns the targets of links, or of objects in place of links. w has their common fields.
func (t *tree) targets(links []any, w want) []want {
	var next []want
	for _, v := range links {
		o, _ := v.(map[string]any)
		path, ok := object(o).link()
		if !ok || t.seen[path] {
			continue
		}
		t.seen[path] = true
		w.path = path
		if whole(o) {
			next = append(next, t.place(w, o)...)
		} else {
			next = append(next, w)
		}
	}
	return next
}

// whole reports whether an object in place of a link is the resource itself.
func whole(o object) bool {
	for _, key := range [...]string{"Id", "@odata.type", "Status", "Members"} {
		if _, ok := o[key]; ok {
			return true
		}
	}
	return false
}

// add stores a resource and its parts, and returns its links.
func (t *tree) add(n *node) []want {
	if len(t.nodes) >= maxNodes || t.byPath[n.path] != nil {
		return nil
	}
	t.nodes = append(t.nodes, n)
	t.byPath[n.path] = n
	if n.role.leaf || n.role.part && absent(n.object) {
		return nil
	}
	var next []want
	for i := range n.role.follow {
		f := &n.role.follow[i]
		if f.unless != "" && n.object.at(f.unless) != nil {
			continue
		}
		if f.inline {
			t.parts(n, f)
			continue
		}
		links, ok := n.object.at(f.property).([]any)
		if !ok {
			links = []any{n.object.at(f.property)}
		}
		w := want{role: f.role, parent: n, many: f.many, when: f.fallback, at: n.at}
		if f.fallback == always {
			next = append(next, t.targets(links, w)...)
			continue
		}
		for _, v := range links {
			o, _ := v.(map[string]any)
			if path, ok := object(o).link(); ok {
				w.path = path
				t.deferred = append(t.deferred, w)
			}
		}
	}
	return next
}

// parts stores the objects of an array that are separate components. Each gets a key that does not depend on its
// position in the array, if possible: removing one part must not change the others.
func (t *tree) parts(n *node, f *follow) {
	all := n.object.list(f.property)
	for i, o := range all {
		key := f.property + "/" + partKey(o, i, all)
		t.add(&node{path: n.path + "/" + key, role: roles[f.role], name: f.role, object: o, parent: n, inline: true, at: n.at})
	}
}

// partKey returns a sensor number, or a MemberId that is more than an index, or a unique name, or else the part's
// position.
func partKey(o object, place int, all []object) string {
	number, _ := o.number("SensorNumber")
	id, name := o.text("MemberId"), o.first("Name", "FanName", "DeviceName", "GroupName")
	same := func(of func(object) string) bool {
		mine, n := of(o), 0
		for _, other := range all {
			if of(other) == mine {
				n++
			}
		}
		return n > 1
	}
	switch {
	case number > 0 && !same(func(p object) string { return p.text("SensorNumber") }):
		return "sensor " + strconv.FormatFloat(number, 'f', -1, 64)
	case id != "" && strings.Trim(id, "0123456789") != "" && !same(func(p object) string { return p.text("MemberId") }):
		return id
	case name != "" && !same(func(p object) string { return p.first("Name", "FanName", "DeviceName", "GroupName") }):
		return name
	}
	return strconv.Itoa(place)
}

// fallbacks returns the fallbacks that are needed, once everything else has been read.
func (t *tree) fallbacks() []want {
	var next []want
	has, mute := make(map[*node]map[quantity]bool), make(map[*node]map[quantity]bool)
	adapters, drives := false, false
	for _, n := range t.nodes {
		adapters = adapters || n.name == "port"
		drives = drives || n.name == "drive"
		if c := n.chassis(); c != nil {
			if has[c] == nil {
				has[c] = make(map[quantity]bool)
			}
			tells(n, has[c])
			if q, _, ok := quantityOf(n); ok && n.name == "sensor" && !disabled(n.object) && !absent(n.object) && !reads(n.object, "Reading") {
				if mute[c] == nil {
					mute[c] = make(map[quantity]bool)
				}
				mute[c][q] = true // the older schemas may have its reading
			}
		}
	}
	for _, w := range t.deferred {
		known := has[w.parent]
		due := false
		switch w.when {
		case noThermal:
			due = !known[temperature] || !known[fanSpeed] || mute[w.parent][temperature] || mute[w.parent][fanSpeed]
		case noPower:
			due = !known[power] || !known[voltage] || !known[supply] || mute[w.parent][voltage]
		case noAdapters:
			due = !adapters
		case noNewDrives:
			due = !drives
		}
		if due && !t.seen[w.path] {
			t.seen[w.path] = true
			next = append(next, w)
		}
	}
	t.deferred = nil
	return next
}

// chassis returns the chassis that contains n; nil if there is none.
func (n *node) chassis() *node {
	for ; n != nil; n = n.parent {
		if n.name == "chassis" {
			return n
		}
	}
	return nil
}

// owner returns the nearest component above n, or n itself; nil if there is none.
func (n *node) owner() *node {
	for ; n != nil; n = n.parent {
		if n.role.part {
			return n
		}
	}
	return nil
}

// gone reports whether n, or a resource that contains it, is absent.
func (n *node) gone() bool {
	for ; n != nil; n = n.parent {
		if n.role.part && absent(n.object) {
			return true
		}
	}
	return false
}

// id returns the hw_id of n, from its path.
func (n *node) id() string { return pathID(n.path) }

func pathID(path string) string {
	return label(strings.TrimPrefix(strings.TrimPrefix(path, rootPath), "/"))
}

// health returns what systems, chassis and storage report about the health of their parts: a line for each, and whether
// any has a problem.
func (t *tree) health() (lines []string, ill bool) {
	for _, n := range t.nodes {
		if n.name != "system" && n.name != "chassis" && n.name != "storage" {
			continue
		}
		own, all := n.object.text("Status.Health"), n.object.first("Status.HealthRollup", "Status.HealthRollUp")
		lines = append(lines, n.path+" "+own+" "+all)
		for _, word := range [...]string{own, all} {
			if h := healthOf(word); h != 0 && h != hw.OK {
				ill = true
			}
		}
	}
	return lines, ill
}
