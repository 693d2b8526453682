package imports

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"hwsagent/internal/files"
	"hwsagent/internal/text"
)

// LibreNMS reads the definitions of operating systems in a copy of LibreNMS, or in a directory that has its folders
// os_detection, os_discovery and mibs. Their places have changed over the years.
func LibreNMS(dir string) (*Result, error) {
	detection, err := firstDir(dir, "resources/definitions/os_detection", "includes/definitions", "os_detection")
	if err != nil {
		return nil, err
	}
	discovery, err := firstDir(dir, "resources/definitions/os_discovery", "includes/definitions/discovery", "os_discovery")
	if err != nil {
		return nil, err
	}
	found, err := sources(discovery)
	if err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	folder := filepath.Join(dir, "mibs")
	if _, err := os.Stat(folder); err != nil {
		folder = ""
	}
	m, err := openMIBs(folder)
	if err != nil {
		return nil, fmt.Errorf("read the folder of MIBs: %w", err)
	}
	r := &Result{}
	if folder == "" {
		f := File{File: "mibs"}
		f.leave("the folder is missing: names and conditions that refer to objects cannot be carried over", "")
		r.add(f, nil, "")
	}
	for _, s := range found {
		os, err := readSource(detection, path.Base(s.name))
		r.librenms(s, os, err, m)
	}
	return r, nil
}

// firstDir returns the first of the named directories that exists below dir.
func firstDir(dir string, names ...string) (string, error) {
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			return filepath.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("%s has none of the directories %s; name the directory of LibreNMS", dir, strings.Join(names, ", "))
}

func readSource(dir, name string) ([]byte, error) {
	return files.Read(filepath.Join(dir, name), maxFileBytes)
}

// librenms adds the definition in one file of os_discovery; detection is the file of the same name in os_detection.
func (r *Result) librenms(s source, detection []byte, err error, m *mibs) {
	f := File{File: s.name}
	root, broken := parseNode(s.text)
	how, unread := parseNode(detection)
	switch {
	case s.err != nil:
		f.leave("the file cannot be read: "+s.err.Error(), "")
	case broken != nil:
		f.leave("the file is not valid: "+text.OneLine(broken.Error()), "")
	case err != nil:
		f.leave("the file in os_detection cannot be read: "+text.OneLine(err.Error()), "")
	case unread != nil:
		f.leave("the file in os_detection is not valid: "+text.OneLine(unread.Error()), "")
	default:
		c := &librenms{mibs: m, file: &f, rank: len(r.Files) + later(how)}
		m.prefer = how.get("mib_dir").texts()
		r.add(f, c.definition(root, how), s.name)
		return
	}
	r.add(f, nil, s.name)
}

// later is added to the alphabetical rank of an operating system. LibreNMS takes the first match, but tries those that need
// further objects of the device after all others, and three general ones last.
func later(how node) int {
	if slices.Contains([]string{"airos", "freebsd", "linux"}, how.get("os").text()) {
		return 2 * maxFiles
	}
	for _, e := range how.get("discovery").list() {
		if e.get("snmpget").there() || e.get("snmpwalk").there() {
			return maxFiles
		}
	}
	return 1
}

// librenms builds the definition of one operating system.
type librenms struct {
	mibs *mibs
	file *File
	used int // entries read
	rank int
}

func (c *librenms) definition(root, how node) *definition {
	family := how.get("os").text()
	d := &definition{Name: "librenms-" + nameOf(family), Vendor: how.get("text").text(), Fills: true, OneOf: "librenms", Rank: c.rank}
	sensors := root.get("modules", "sensors")
	for _, class := range sensors.entries() {
		if class.key == "additional_oids" {
			continue // LibreNMS reads these objects for other entries, which refer to them
		}
		data := class.value.get("data").list()
		to, ok := classes[class.key]
		if !ok {
			for _, x := range data {
				c.file.leave("the vocabulary has no sensors of the class "+class.key, x.get("descr").text())
			}
			continue
		}
		for _, x := range data {
			if c.used++; c.used > maxEntries {
				c.file.leave(fmt.Sprintf("the file has more than %d entries", maxEntries), "")
				return d
			}
			t, why := c.table(class.key, to, x, class.value.get("options"))
			if why != "" {
				c.file.leave(why, strings.TrimSpace(x.get("oid").text()+" "+x.get("value").text()))
				continue
			}
			d.Tables = append(d.Tables, t)
			c.file.Values += len(t.Values)
		}
	}
	d.Detect = c.detects(how.get("discovery"), family)
	if len(d.Detect) == 0 {
		if len(d.Tables) > 0 {
			c.file.leave("no way to recognise the device can be carried over", family)
		}
		c.file.Values = 0
		return nil
	}
	return d
}

// class is the metric and the kind for a class of sensors; states have no metric.
type class struct {
	metric, kind string
	factor       float64 // to the metric's unit
}

// classes are the classes of LibreNMS that the vocabulary covers. LibreNMS' units are minutes, percents, kilowatt-hours, and
// otherwise those of the vocabulary.
var classes = map[string]class{
	"state": {"", "module", 1}, "temperature": {"temperature", "temperature", 1}, "voltage": {"voltage", "voltage", 1},
	"current": {"current", "current", 1}, "power": {"power", "power_meter", 1}, "power_consumed": {"energy", "power_meter", 3.6e6},
	"dbm": {"optical", "network", 1}, "frequency": {"frequency", "frequency", 1}, "fanspeed": {"fan_speed", "fan", 1},
	"humidity": {"humidity", "humidity", 0.01}, "charge": {"charge", "battery", 0.01}, "runtime": {"time_left", "battery", 60},
	"load": {"load", "power_supply", 0.01},
}

var numOID = regexp.MustCompile(`^\.?(\d+(?:\.\d+)+)(\.\{\{\s*\$index\s*\}\}|\{\{\s*\$noindex\s*\}\})?$`)

// placed is the place of an entry's object in the OID tree.
type placed struct {
	at     *rowOf
	object string
	row    string // the only relevant row, "" for all
	texts  bool   // its values may be texts
}

// place finds the column that an entry reads.
func (c *librenms) place(x node) (e placed, why string) {
	oid := x.get("oid").text()
	own := x.get("value").text()
	if own == "" {
		own = oid
	}
	moduleName, object, _ := strings.Cut(own, "::")
	if object == "" {
		moduleName, _, _ = strings.Cut(oid, "::")
		object = own
	}
	place := numOID.FindStringSubmatch(x.get("num_oid").text())
	known, isKnown := c.mibs.lookup(moduleName, object)
	switch {
	case place != nil:
	case isKnown && !x.get("num_oid").there():
		place = []string{"", known.oid.String(), ".{{ $index }}"}
	default:
		return e, "num_oid is not understood"
	}
	number := place[1]
	if isKnown && place[2] != "" && siblings(number, known.oid.String()) {
		// Such files contain copied lines with an unchanged number. LibreNMS itself reads value.
		c.file.leave("in part: num_oid is not the number of value; the MIB's number of value is read", object+" "+number+" is "+known.oid.String())
		number = known.oid.String()
	}
	e.object, e.texts = object, !isKnown || known.text
	e.at = &rowOf{module: moduleName, scalar: isKnown && known.scalar && known.oid.String() == number}
	if place[2] == "" && strings.HasSuffix(number, ".0") {
		number, place[2], e.at.scalar = strings.TrimSuffix(number, ".0"), ".", true
	}
	if strings.Count(number, ".") < 6 {
		return e, "num_oid is too short"
	}
	if !strings.HasPrefix(place[2], ".") {
		// A single object without an index is read as a row of its parent.
		i := strings.LastIndexByte(number, '.')
		e.row, number, e.at.fixed = number[i+1:], number[:i], true
	}
	i := strings.LastIndexByte(number, '.')
	e.at.entry, e.at.column = number[:i], number[i+1:]
	return e, ""
}

// table makes a table of one entry; if that is impossible, why is the reason.
func (c *librenms) table(name string, to class, x, options node) (t table, why string) {
	e, why := c.place(x)
	if why != "" {
		return t, why
	}
	at, object, oid := e.at, e.object, x.get("oid").text()
	if e.row != "" {
		t.Only = append(t.Only, map[string]any{"#": []string{e.row}})
	}
	t.Entry, t.Scalar, t.Kind = at.entry, at.scalar, kindOf(to, object+" "+oid+" "+x.get("descr").text())
	t.MIB, t.Table = at.module, object
	if module, table, ok := strings.Cut(oid, "::"); ok {
		t.MIB, t.Table = module, table
	}
	if t.MIB == "" || t.MIB == object {
		t.MIB = "LibreNMS"
	}
	v := value{Object: object, Column: at.column, Metric: to.metric}
	if v.Metric == "load" && t.Kind == "fan" {
		v.Metric = "fan_ratio"
	}
	factor, why := c.scale(&v, to, x, options)
	if why == "" {
		why = c.skips(&t, &v, at, x, options)
	}
	if why != "" {
		return t, why
	}
	t.Name = c.name(x, at, object)
	if to.metric == "" {
		v.Scale = 0
		v.States = states(x.get("states"), e.texts)
		if len(v.States) == 0 {
			return t, "it has no states"
		}
	}
	t.Values = append(t.Values, v)
	if to.metric != "" {
		t.Values = append(t.Values, c.limits(&t, v, at, x, factor)...)
	}
	return t, ""
}

// siblings reports whether two OIDs are different children of one parent.
func siblings(a, b string) bool {
	return a != b && path.Ext(a) != "" && strings.TrimSuffix(a, path.Ext(a)) == strings.TrimSuffix(b, path.Ext(b))
}

// scale reads divisor, multiplier and user_func.
func (c *librenms) scale(v *value, to class, x, options node) (factor float64, why string) {
	factor = 1
	for _, part := range []string{"divisor", "multiplier"} {
		said := x.get(part)
		if !said.there() {
			said = options.get(part)
		}
		if !said.there() {
			continue
		}
		n, ok := said.number()
		switch {
		case !ok:
			return 0, part + " is not a number"
		case n == 0:
			return 0, part + " is 0"
		case part == "divisor":
			factor /= n
		default:
			factor *= n
		}
	}
	switch f := x.get("user_func").text(); f {
	case "", "string_to_float", "round", `\LibreNMS\Util\Number::cast`:
	case "fahrenheit_to_celsius":
		v.From = "fahrenheit"
	case "mw_to_dbm":
		v.From = "milliwatts"
	case "uw_to_dbm":
		v.From, factor = "milliwatts", factor/1000
	default:
		return 0, "it needs a function of LibreNMS: " + f
	}
	if factor *= to.factor; factor != 1 {
		v.Scale = factor
	}
	return factor, ""
}

// limits returns the columns with limits. It omits limits that the file gives as numbers: they do not come from the device.
func (c *librenms) limits(t *table, v value, at *rowOf, x node, factor float64) (all []value) {
	if !limited[v.Metric] {
		return nil
	}
	for _, l := range [][2]string{{"low_limit", "low.critical"}, {"low_warn_limit", "low.degraded"}, {"warn_limit", "high.degraded"}, {"high_limit", "high.critical"}} {
		said := x.get(l[0]).text()
		if _, isNumber := x.get(l[0]).number(); said == "" || said == "null" || isNumber {
			if isNumber {
				c.file.leave("in part: a limit that the file sets, not the device", v.Object+" "+l[0])
			}
			continue
		}
		if m := braces.FindStringSubmatch(said); m != nil && m[0] == said {
			said = m[1]
		}
		moduleName, object, ok := strings.Cut(said, "::")
		if !ok {
			moduleName, object = at.module, said
		}
		found, ok := c.mibs.lookup(moduleName, object)
		if !ok || at.fixed || at.scalar != found.scalar {
			c.file.leave("in part: a limit that cannot be found in the row", said)
			continue
		}
		limit := value{Object: object, Column: at.short(found.oid.String()), Metric: v.Metric, Limit: l[1], Scale: factor, From: v.From}
		if x.get("skip_limits_calc").text() == "true" {
			limit.Scale = to1(classFactor(v.Metric))
		}
		if limit.Scale = to1(limit.Scale); limit.Column != v.Column {
			all = append(all, limit)
		}
	}
	if len(all) > 0 {
		t.Only = append(t.Only, map[string]any{v.Column: map[string]any{"exists": true}})
	}
	return all
}

// limited are the metrics that have limits.
var limited = map[string]bool{"temperature": true, "voltage": true, "current": true, "power": true, "fan_speed": true, "humidity": true, "optical": true, "charge": true}

// to1 maps a scale of 1 to 0, which is not written.
func to1(v float64) float64 {
	if v == 1 {
		return 0
	}
	return v
}

func classFactor(metric string) float64 {
	for _, c := range classes {
		if c.metric == metric {
			return c.factor
		}
	}
	return 1
}
