package imports

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"hwsagent/internal/text"
)

// Profiles reads the profiles below a directory, in the dialect of Datadog, Netdata and Kentik. folder has MIBs, which supply
// units and names of values that a profile lacks; it may be "".
func Profiles(dir, folder string) (*Result, error) {
	found, err := sources(dir)
	if err != nil {
		return nil, fmt.Errorf("read profiles: %w", err)
	}
	m, err := openMIBs(folder)
	if err != nil {
		return nil, fmt.Errorf("read the folder of MIBs: %w", err)
	}
	names := profileNames(found)
	var all []*profile
	for _, s := range found {
		p := &profile{mibs: m, names: names, File: File{File: s.name}, name: names[s.name]}
		root, broken := parseNode(s.text)
		switch {
		case s.err != nil:
			p.leave("the file cannot be read: "+text.OneLine(s.err.Error()), "")
		case broken != nil:
			p.leave("the file is not valid: "+text.OneLine(broken.Error()), "")
		default:
			p.read(root)
			if _, err := p.definition.text(s.name); err != nil { // so that others do not include it
				p.leave(text.OneLine(err.Error()), "")
				p.Values, p.definition = 0, nil
			}
		}
		all = append(all, p)
	}
	r := &Result{}
	used := withValues(all)
	for _, p := range all {
		if !used[p.name] {
			p.definition = nil
		} else {
			p.definition.Includes = slices.DeleteFunc(p.definition.Includes, func(name string) bool { return !used[name] })
		}
		r.add(p.File, p.definition, p.File.File)
	}
	return r, nil
}

// profileNames names the definition of each file: by its base name, or by its whole path if two files share
// the base name.
func profileNames(found []source) map[string]string {
	base := func(file string) string { return strings.TrimSuffix(path.Base(file), path.Ext(file)) }
	count := map[string]int{}
	for _, s := range found {
		count[nameOf(base(s.name))]++
	}
	names, taken := map[string]string{}, map[string]bool{}
	for _, s := range found {
		name := nameOf(base(s.name))
		if count[name] > 1 {
			name = nameOf(strings.TrimSuffix(s.name, path.Ext(s.name)))
		}
		for taken[name] {
			name += "_"
		}
		taken[name] = true
		names[s.name] = "profile-" + name
	}
	return names
}

// withValues returns the names of the profiles with values, their own or those of profiles that they extend.
func withValues(all []*profile) map[string]bool {
	used := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if p.definition == nil || used[p.name] {
				continue
			}
			if len(p.definition.Tables) > 0 || slices.ContainsFunc(p.definition.Includes, func(name string) bool { return used[name] }) {
				used[p.name], grown = true, true
			}
		}
	}
	return used
}

// profile builds the definition of one file.
type profile struct {
	File
	name       string
	mibs       *mibs
	names      map[string]string
	definition *definition
	used       int // symbols read
}

func (p *profile) read(root node) {
	d := &definition{Name: p.name, Vendor: root.get("device", "vendor").text(), Fills: true}
	if d.Vendor == "" {
		d.Vendor = root.get("metadata", "device", "fields", "vendor", "value").text()
	}
	if folder := path.Base(path.Dir(p.File.File)); d.Vendor == "" && folder != "." && !strings.HasPrefix(folder, "_") {
		d.Vendor = folder // as in Kentik's folders
	}
	if !root.get("selector").there() {
		d.OneOf = "profiles" // only the most specific profile applies; of Netdata's all do
	}
	family := strings.TrimPrefix(p.name, "profile-")
	d.Detect = p.detects(root, family)
	for _, e := range root.get("extends").texts() {
		if name, ok := p.base(e); ok && name != p.name && !slices.Contains(d.Includes, name) && len(d.Includes) < 50 {
			d.Includes = append(d.Includes, name)
		} else if !ok {
			p.leave("a profile that it extends is missing", e)
		}
	}
	for _, m := range root.get("metrics").list() {
		if t, ok := p.table(m); ok {
			d.Tables = append(d.Tables, t)
			p.Values += len(t.Values)
		}
	}
	for _, part := range []string{"traps", "matches", "virtual_metrics", "topology", "bgp", "licensing"} {
		if root.get(part).there() {
			p.leave("in part: "+part+" has no place in a definition", "")
		}
	}
	p.definition = d
}

// base returns the definition of a profile that this one extends, preferably in the same folder.
func (p *profile) base(file string) (string, bool) {
	if name, ok := p.names[path.Join(path.Dir(p.File.File), file)]; ok {
		return name, true
	}
	var all []string
	for f := range p.names {
		if path.Base(f) == path.Base(file) {
			all = append(all, f)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return "", false
	}
	return p.names[all[0]], true
}

var objectIDPattern = regexp.MustCompile(`^\.?(\d+(?:\.\d+){3,})(\.?\*)?$`)

// detects reads sysobjectid, and Netdata's selector.
func (p *profile) detects(root node, family string) (all []detect) {
	if d, ok := p.objectIDs(root.get("sysobjectid").texts()); ok {
		d.Family = family
		all = append(all, d)
	}
	for _, s := range root.get("selector").list() {
		d, said := p.objectIDs(s.get("sysobjectid", "include").texts())
		if descr := s.get("sysdescr", "include").texts(); len(descr) > 0 {
			d.Descr, said = quoted(descr), true
		}
		if !said {
			continue
		}
		if x, ok := p.objectIDs(s.get("sysobjectid", "exclude").texts()); ok {
			d.Unless = append(d.Unless, x)
		}
		if descr := s.get("sysdescr", "exclude").texts(); len(descr) > 0 {
			d.Unless = append(d.Unless, detect{Descr: quoted(descr)})
		}
		d.Family = family
		all = append(all, d)
	}
	return all
}

func quoted(all []string) string {
	var b []string
	for _, s := range all {
		b = append(b, regexp.QuoteMeta(s))
	}
	return strings.Join(b, "|")
}

// objectIDs returns subtrees, and an expression for OIDs with a star inside.
func (p *profile) objectIDs(texts []string) (d detect, ok bool) {
	var patterns []string
	for _, s := range texts {
		if m := objectIDPattern.FindStringSubmatch(s); m != nil {
			d.ObjectIDs = append(d.ObjectIDs, m[1])
			continue
		}
		if strings.Trim(s, "0123456789.*") != "" || strings.Count(s, ".") < 4 {
			p.leave("in part: a sysobjectid that is not an OID", s)
			continue
		}
		patterns = append(patterns, "^"+strings.ReplaceAll(regexp.QuoteMeta(strings.TrimPrefix(s, ".")), `\*`, `[0-9.]+`)+"$")
	}
	if len(d.ObjectIDs) == 0 && len(patterns) > 0 {
		d.Pattern = strings.Join(patterns, "|")
	} else if len(patterns) > 0 {
		p.leave("in part: a sysobjectid with a star within, beside others", patterns[0])
	}
	return d, len(d.ObjectIDs) > 0 || d.Pattern != ""
}
