package imports

import (
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"hwsagent/probes/snmp/library"
)

// Bounds of a folder of MIBs.
const (
	maxMIBFiles  = 50_000
	mibHeadBytes = 16 << 10 // of a file, searched for the names of modules
	maxMIBDepth  = 200      // of names that are defined by others
)

// mibs finds objects by their names in a folder of MIBs. A file is read when one of its names is looked up.
// It is not safe for concurrent use.
type mibs struct {
	dir     fs.FS
	byName  map[string][]string  // files by lower-case module name, taken from the file's name
	heads   map[string][]string  // the same, taken from the files' texts; nil until needed
	modules map[string]*module   // by folder and name; nil for missing ones
	parsed  map[string][]*module // by file
	prefer  []string             // folders whose files take precedence
}

// object describes an object by its MIB.
type object struct {
	name, module string
	oid          library.OID
	units        string
	decimals     int // of the digits
	enums        map[string]int64
	text         bool // its values are texts
	scalar       bool
	column       bool
}

// openMIBs lists the files below a directory; dir may be "".
func openMIBs(dir string) (*mibs, error) {
	m := &mibs{byName: map[string][]string{}, modules: map[string]*module{}, parsed: map[string][]*module{}}
	if dir == "" {
		return m, nil
	}
	m.dir = os.DirFS(dir)
	n := 0
	err := fs.WalkDir(m.dir, ".", func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Type().IsRegular() {
			if n++; n > maxMIBFiles {
				return fs.SkipAll
			}
			base := path.Base(file)
			for _, name := range []string{base, strings.TrimSuffix(base, path.Ext(base))} {
				key := strings.ToLower(name)
				if !slices.Contains(m.byName[key], file) {
					m.byName[key] = append(m.byName[key], file)
				}
			}
		}
		return nil
	})
	return m, err
}

// module returns the module of that name, nil if no file has it.
func (m *mibs) module(name string) *module {
	key := strings.Join(m.prefer, "|") + "::" + name
	if found, known := m.modules[key]; known {
		return found
	}
	m.modules[key] = nil // ends a cycle of imports
	m.modules[key] = m.find(m.byName, name)
	if m.modules[key] == nil && m.dir != nil {
		if m.heads == nil {
			m.readHeads()
		}
		m.modules[key] = m.find(m.heads, name)
	}
	return m.modules[key]
}

func (m *mibs) find(files map[string][]string, name string) *module {
	candidates := slices.Clone(files[strings.ToLower(name)])
	slices.SortStableFunc(candidates, func(a, b string) int { return m.rank(a) - m.rank(b) })
	for _, file := range candidates {
		if _, known := m.parsed[file]; !known {
			text, err := m.read(file, maxMIBBytes)
			if err != nil {
				continue // an unreadable file counts as missing: the name is reported as unknown
			}
			m.parsed[file] = parseMIB(text)
		}
		for _, found := range m.parsed[file] {
			if found.name == name {
				return found
			}
		}
	}
	return nil
}

// rank orders files of one module: those in preferred folders, those at the top, others.
func (m *mibs) rank(file string) int {
	dir := path.Dir(file)
	if i := slices.Index(m.prefer, dir); i >= 0 {
		return i
	}
	if dir == "." {
		return len(m.prefer)
	}
	return len(m.prefer) + 1
}

func (m *mibs) read(file string, most int64) (string, error) {
	f, err := m.dir.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, most))
	return string(text), err
}

// moduleNames returns the words before DEFINITIONS at the beginning of a file.
func moduleNames(text string) (all []string) {
	for {
		before, after, ok := strings.Cut(text, "DEFINITIONS")
		if !ok {
			return all
		}
		if words := strings.Fields(before[max(0, len(before)-maxMIBWord):]); len(words) > 0 {
			all = append(all, words[len(words)-1])
		}
		text = after
	}
}

// readHeads finds modules in files that are named differently.
func (m *mibs) readHeads() {
	m.heads = map[string][]string{}
	seen := map[string]bool{}
	for _, files := range m.byName {
		for _, file := range files {
			if seen[file] {
				continue
			}
			seen[file] = true
			text, err := m.read(file, mibHeadBytes)
			if err != nil {
				continue
			}
			for _, name := range moduleNames(text) {
				key := strings.ToLower(name)
				m.heads[key] = append(m.heads[key], file)
			}
		}
	}
	for _, files := range m.heads {
		slices.Sort(files)
	}
}

// roots are the names available to every MIB: RFC 2578 section 2 and RFC 1155.
var roots = map[string]library.OID{
	"ccitt": {0}, "iso": {1}, "joint-iso-ccitt": {2}, "org": {1, 3}, "dod": {1, 3, 6}, "internet": {1, 3, 6, 1}, "directory": {1, 3, 6, 1, 1},
	"mgmt": {1, 3, 6, 1, 2}, "mib-2": {1, 3, 6, 1, 2, 1}, "transmission": {1, 3, 6, 1, 2, 1, 10}, "experimental": {1, 3, 6, 1, 3},
	"private": {1, 3, 6, 1, 4}, "enterprises": {1, 3, 6, 1, 4, 1}, "security": {1, 3, 6, 1, 5}, "snmpV2": {1, 3, 6, 1, 6},
	"snmpDomains": {1, 3, 6, 1, 6, 1}, "snmpProxys": {1, 3, 6, 1, 6, 2}, "snmpModules": {1, 3, 6, 1, 6, 3}, "zeroDotZero": {0, 0},
}

// lookup finds NAME of MODULE.
func (m *mibs) lookup(moduleName, name string) (object, bool) {
	mod := m.module(moduleName)
	if mod == nil {
		return object{}, false
	}
	a, there := mod.objects[name]
	if !there {
		return object{}, false
	}
	o := object{name: name, module: moduleName, units: a.units, enums: a.syntax.enums}
	if o.oid = m.oid(mod, name, 0); len(o.oid) < 4 {
		return object{}, false
	}
	typeName := a.syntax.name
	for range 10 { // types that are defined by other types
		t, ok := m.typeOf(mod, typeName)
		if !ok || t.name == typeName {
			break
		}
		typeName = t.name
		if o.decimals == 0 {
			o.decimals = t.decimals
		}
		if o.enums == nil {
			o.enums = t.enums
		}
	}
	o.text = typeName == "OCTET" || typeName == "DisplayString" || typeName == "SnmpAdminString"
	if a.macro == "OBJECT-TYPE" && !a.isRow && a.syntax.name != "SEQUENCE" {
		parent, ok := m.parent(mod, a)
		o.column = ok && parent.isRow
		o.scalar = ok && !parent.isRow
	}
	return o, true
}

func (m *mibs) typeOf(mod *module, name string) (syntax, bool) {
	if t, ok := mod.types[name]; ok {
		return t, true
	}
	if from := mod.imports[name]; from != "" && from != mod.name {
		if other := m.module(from); other != nil {
			t, ok := other.types[name]
			return t, ok
		}
	}
	return syntax{}, false
}

// parent returns the assignment of a's parent, if a has a single arc below it.
func (m *mibs) parent(mod *module, a assignment) (assignment, bool) {
	if len(a.arcs) != 1 {
		return assignment{}, len(a.arcs) > 1
	}
	if p, ok := mod.objects[a.parent]; ok {
		return p, true
	}
	if other := m.module(mod.imports[a.parent]); other != nil {
		p, ok := other.objects[a.parent]
		return p, ok
	}
	_, ok := roots[a.parent]
	return assignment{}, ok
}

// oid follows the parents of a name; it returns nil if one is unknown or they form a cycle.
func (m *mibs) oid(mod *module, name string, depth int) library.OID {
	a, there := mod.objects[name]
	if !there || depth > maxMIBDepth {
		if !there && depth > 0 {
			if from := mod.imports[name]; from != "" && from != mod.name {
				if other := m.module(from); other != nil {
					if o := m.oid(other, name, depth+1); o != nil {
						return o
					}
				}
			}
			return slices.Clone(roots[name])
		}
		return nil
	}
	var base library.OID
	if a.parent != "" {
		if a.parent == name {
			return nil
		}
		if base = m.oid(mod, a.parent, depth+1); base == nil {
			return nil
		}
	}
	if len(base)+len(a.arcs) > maxSubids {
		return nil
	}
	return append(base, a.arcs...)
}
