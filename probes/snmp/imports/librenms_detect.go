package imports

import (
	"regexp"
	"strings"
)

// detects converts the ways to recognise a device. A device matches an entry if it meets all its conditions.
func (c *librenms) detects(x node, family string) (all []detect) {
	for _, e := range x.list() {
		d, why := c.detect(e)
		if why != "" {
			c.file.leave("in part: one of the ways to recognise the device: "+why, family)
			continue
		}
		d.Family = family
		all = append(all, d)
	}
	return all
}

func (c *librenms) detect(x node) (d detect, why string) {
	var patterns []string
	for _, e := range x.entries() {
		key, except := strings.CutSuffix(e.key, "_except")
		into := &d
		if except {
			into = &detect{}
		}
		switch key {
		case "sysObjectID":
			for _, s := range e.value.texts() {
				oid := strings.Trim(s, ".")
				if strings.Count(oid, ".") < 3 {
					return d, "a sysObjectID that is too short: " + s
				}
				into.ObjectIDs = append(into.ObjectIDs, oid)
			}
		case "sysObjectID_regex":
			p, ok := expression("regex", e.value.texts())
			if !ok {
				return d, "an expression that is not understood"
			}
			// LibreNMS writes OIDs with a leading dot.
			into.Pattern = regexp.MustCompile(`\^\\?\.`).ReplaceAllString(p, "^")
		case "sysDescr", "sysDescr_regex":
			op := "contains"
			if key == "sysDescr_regex" {
				op = "regex"
			}
			p, ok := expression(op, e.value.texts())
			if !ok {
				return d, "an expression that is not understood"
			}
			if !except {
				patterns = append(patterns, p)
			}
			into.Descr = p
		case "snmpget":
			if why := c.asked(e.value, into, &d); why != "" {
				return d, why
			}
		default:
			return d, "it needs " + e.key
		}
		if except && (len(into.ObjectIDs) > 0 || into.Pattern != "" || into.Descr != "" || into.Present != "") {
			d.Unless = append(d.Unless, *into)
		}
	}
	if len(patterns) > 1 {
		return d, "two conditions on sysDescr"
	}
	if len(d.ObjectIDs) == 0 && d.Pattern == "" && d.Descr == "" && d.Present == "" {
		return d, "it has no condition that a device must meet"
	}
	return d, ""
}

// asked converts a condition on an object of the device. A negated condition is added to unless of whole.
func (c *librenms) asked(x node, into, whole *detect) (why string) {
	if len(x.list()) != 1 || !x.list()[0].isMapping() || into.Present != "" {
		return "several objects"
	}
	x = x.list()[0]
	name := x.get("oid").text()
	oid := strings.Trim(name, ".")
	if !regexp.MustCompile(`^[\d.]+$`).MatchString(oid) {
		ref, ok := c.ref(name, &rowOf{})
		if !ok {
			return "an object that cannot be found: " + name
		}
		oid = strings.TrimSuffix(ref, "[]")
	}
	// Package library searches below the OID, so it must not be that of the object itself.
	if i := strings.LastIndexByte(oid, '.'); strings.HasSuffix(oid, ".0") || strings.HasSuffix(name, oid[i:]) && strings.Contains(name, "::") {
		oid = oid[:i]
	}
	if strings.Count(oid, ".") < 3 {
		return "an object that is too short: " + name
	}
	op, value := x.get("op").text(), x.get("value")
	texts := value.texts()
	switch nothing := value.text() == "false" || len(texts) == 0; {
	case nothing && (op == "!=" || op == "!=="):
		into.Present = oid
	case nothing:
		whole.Unless = append(whole.Unless, detect{Present: oid})
	case op == "!=" || op == "!==" || strings.HasPrefix(op, "not_"):
		p, ok := expression(strings.TrimPrefix(strings.NewReplacer("!==", "=", "!=", "=").Replace(op), "not_"), texts)
		if !ok {
			return "an expression that is not understood"
		}
		whole.Unless = append(whole.Unless, detect{Present: oid, Value: p})
	default:
		if op == "" {
			op = "contains"
		} else if op == "==" {
			op = "="
		}
		p, ok := expression(op, texts)
		if !ok {
			return "an expression that is not understood"
		}
		into.Present, into.Value = oid, p
	}
	return ""
}
