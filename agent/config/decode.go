package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"hwsagent/internal/redact"
	remoteconfig "hwsagent/remotewrite/config"
)

// decode fills cfg from the tree, strictly. It adds everything that does not fit to the mistakes of d.
func (d *document) decode(cfg *Config) {
	// Decode lists entry by entry: an entry that does not fit keeps its place, so that messages about later ones have
	// the right number.
	lists := struct {
		Global      *Global     `yaml:"global"`
		WAL         *WAL        `yaml:"wal"`
		Web         *Web        `yaml:"web"`
		Config      *Files      `yaml:"config"`
		Receivers   *Receivers  `yaml:"receivers"`
		Pull        **Pull      `yaml:"pull"`
		Probes      []yaml.Node `yaml:"probes"`
		RemoteWrite []yaml.Node `yaml:"remote_write"`

		ScrapeConfigs     yaml.Node `yaml:"scrape_configs"` // decodeScrape's
		ScrapeConfigFiles *[]string `yaml:"scrape_config_files"`
	}{ScrapeConfigFiles: &cfg.ScrapeConfigFiles, Global: &cfg.Global, WAL: &cfg.WAL, Web: &cfg.Web, Config: &cfg.Config, Receivers: &cfg.Receivers, Pull: &cfg.Pull}
	// A section without a value ("wal:") would set the pointer to nil and have no other effect.
	d.addLoadErrors(d.root.Load(&lists, yaml.WithKnownFields()))

	cfg.Probes = make([]Probe, len(lists.Probes))
	for i := range lists.Probes {
		err := lists.Probes[i].Load(&cfg.Probes[i], yaml.WithKnownFields())
		d.entry(fmt.Sprintf("probes[%d]", i), err)
	}
	cfg.RemoteWrite = make([]*remoteconfig.Config, len(lists.RemoteWrite))
	for i := range lists.RemoteWrite {
		err := lists.RemoteWrite[i].Load(&cfg.RemoteWrite[i], yaml.WithKnownFields())
		d.entry(fmt.Sprintf("remote_write[%d]", i), err)
	}
}

// loadFailures collects the mistakes of parts that are decoded by themselves.
type loadFailures struct{ all yaml.LoadErrors }

func (f *loadFailures) add(err error) {
	var many *yaml.LoadErrors
	var one *yaml.LoadError
	switch {
	case errors.As(err, &many):
		f.all.Errors = append(f.all.Errors, many.Errors...)
	case errors.As(err, &one):
		f.all.Errors = append(f.all.Errors, one)
	}
}

func (f *loadFailures) err() error {
	if len(f.all.Errors) == 0 {
		return nil
	}
	return &f.all
}

// entry records the outcome of decoding one list entry.
func (d *document) entry(path string, err error) {
	if err != nil {
		d.broken[path] = true
		d.addLoadErrors(err)
	}
}

// within runs check on the list entry at path. If the entry was decoded only in part, check sees defaults in the broken
// places; then only those of its mistakes count that are at keys without a known mistake.
func (d *document) within(path string, check func()) {
	before := len(d.errs)
	check()
	if !d.broken[path] {
		return
	}
	known := map[place]bool{}
	for _, e := range d.errs[:before] {
		known[place{e.Line, e.Column}] = true
	}
	whole := d.values[path]
	known[place{whole.Line, whole.Column}] = true
	found := d.errs[before:]
	d.errs = append(d.errs[:before], slices.DeleteFunc(found, func(e Error) bool { return known[place{e.Line, e.Column}] })...)
}

func (d *document) addLoadErrors(err error) {
	if err == nil {
		return
	}
	var many *yaml.LoadErrors
	var one *yaml.LoadError
	switch {
	case errors.As(err, &many):
		for _, e := range many.Errors {
			d.addLoadError(e)
		}
	case errors.As(err, &one):
		d.addLoadError(one)
	default:
		d.errorAt("", err.Error(), "")
	}
}

var (
	unknownField = regexp.MustCompile(`^field (.+) not found in type \S+`)
	doubleKey    = regexp.MustCompile(`^mapping key (".*") already defined at line (\d+)$`)
	wrongKind    = regexp.MustCompile("(?s)^cannot construct (!!\\w+)(?: `(.*)`)? into (.+)$")
)

// addLoadError reports the YAML package's errors in words that need no knowledge of Go.
func (d *document) addLoadError(e *yaml.LoadError) {
	at := place{e.Mark.Line, e.Mark.Column}
	key, isKey := d.keysAt[at]
	value, isValue := d.valuesAt[at]
	switch {
	case isKey && unknownField.MatchString(e.Message):
		name := d.keys[key].Value
		in := holder(key, name)
		hint := d.hintForKey(in, name)
		d.unknownSection = d.unknownSection || in == ""
		d.add(at.line, at.column, in, fmt.Sprintf("unknown key %q", name), hint)
	case isKey && doubleKey.MatchString(e.Message):
		m := doubleKey.FindStringSubmatch(e.Message)
		name := d.keys[key].Value
		first, _ := strconv.Atoi(m[2]) // digits, by the pattern
		_, first = d.fileOf(first)
		d.add(at.line, at.column, holder(key, name), fmt.Sprintf("key %s appears twice; the first is on line %d", m[1], first), "keep one of them")
	case isValue:
		d.addValueError(at, value, e.Message)
	default:
		d.add(at.line, at.column, key, e.Message, "")
	}
}

// holder returns the path of the mapping that contains the key name.
func holder(path, name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, name), ".")
}

func (d *document) addValueError(at place, path, message string) {
	n := d.values[path]
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if m := wrongKind.FindStringSubmatch(message); m != nil {
		want := d.wanted(path, m[3])
		hint := ""
		if want == "a list" && n.Kind == yaml.MappingNode {
			hint = `begin each entry with "- "`
		}
		if want == "a list" && n.Kind == yaml.ScalarNode && d.masked(path, n.Value) == n.Value {
			hint = "write [" + d.asWritten(n) + "]"
		}
		if example := d.example(path); example != "" {
			hint = "as in " + example
		}
		d.add(at.line, at.column, path, "want "+want+", got "+d.got(path, n), hint)
		return
	}
	hint := ""
	switch kind, known := d.kindAt(path); {
	case n.Kind != yaml.ScalarNode:
	case kind == redact.Address && strings.Contains(message, "parse "): // net/url may repeat any part of the value
		message, hint = "not a URL", "write it like https://host:port/path"
	case kind == redact.Secret, !known:
		message = "want " + d.wanted(path, "") + ", got " + d.got(path, n)
	}
	if strings.Contains(message, "duration") && n.Kind == yaml.ScalarNode {
		hint = durationHint(n.Value)
	}
	if n.Kind == yaml.MappingNode {
		at.line, at.column = d.mentioned(path, message)
	}
	d.add(at.line, at.column, path, message, hint)
}

// mentioned returns the place of the first key in the mapping at path that message names, the best place to show a
// mistake of a whole mapping.
func (d *document) mentioned(path, message string) (line, column int) {
	n := d.value(path)
	if n == nil {
		return d.placeOf(path)
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if ok, err := regexp.MatchString(`\b`+regexp.QuoteMeta(k.Value)+`\b`, message); ok && err == nil {
			return k.Line, k.Column
		}
	}
	return n.Line, n.Column
}

var digits = regexp.MustCompile(`^[0-9]+$`)

func durationHint(value string) string {
	if digits.MatchString(value) {
		return `write "` + value + `s" if seconds are meant`
	}
	return "write a number and a unit, as in 500ms, 30s, 5m, 1h30m, 7d"
}

// wanted describes the value that belongs at path, in a reader's words; goType is the YAML package's name for it, for
// places whose type is unknown.
func (d *document) wanted(path, goType string) string {
	kind := reflect.Struct
	if types := d.typesAt(path); len(types) > 0 {
		kind = types[0].Kind()
	} else if t := strings.TrimLeft(goType, "*"); t == "string" || strings.HasSuffix(t, ".Secret") {
		kind = reflect.String
	}
	switch kind {
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	}
	return "a mapping (lines of key: value)"
}

// got describes the node at path in a reader's words. It does not repeat a value that may be a secret.
func (d *document) got(path string, n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	tag := n.ShortTag()
	if tag == "!!null" {
		return "nothing"
	}
	shown := d.masked(path, n.Value) == n.Value
	switch {
	case tag == "!!bool" && shown:
		return n.Value
	case tag == "!!bool":
		return "true or false"
	case (tag == "!!int" || tag == "!!float") && shown:
		return "the number " + n.Value
	case tag == "!!int" || tag == "!!float":
		return "a number"
	case shown:
		return fmt.Sprintf("%q", n.Value)
	}
	return "text"
}

// foreign explains keys that belong elsewhere, by the path of their mapping without list positions.
var foreign = map[string]map[string]string{
	"": {
		"self": "write an entry of type self under probes: {type: self, level: full} sends all of the agent's series, {type: self, enabled: false} none",
	},
	"wal": {
		"dir":  "set the log's directory with the flag --storage.path",
		"path": "set the log's directory with the flag --storage.path",
	},
}

// hintForKey suggests which key was meant by the unknown key in the mapping at path.
func (d *document) hintForKey(path, key string) string {
	bare := listStep.ReplaceAllString(path, "")
	if h := foreign[bare][key]; h != "" {
		return h
	}
	here := d.keysIn(path)
	if len(here) == 0 {
		return ""
	}
	for _, k := range here {
		if slices.Contains(d.keysIn(strings.TrimPrefix(path+"."+k, ".")), key) {
			return fmt.Sprintf("it belongs under %q", k+":")
		}
	}
	if path != "" && slices.Contains(d.keysIn(parentPath(path)), key) {
		return "it belongs one level further out"
	}
	if n := nearest(key, here); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	if len(here) <= 12 {
		return "known here: " + strings.Join(here, ", ")
	}
	return ""
}

// keysIn lists the keys that a mapping at path may have.
func (d *document) keysIn(path string) []string {
	var keys []string
	for _, t := range d.typesAt(path) {
		for _, f := range yamlFields(t) {
			keys = append(keys, f.key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// typesAt returns the types of the value that belongs at path, without pointers; as shapesAt.
func (d *document) typesAt(path string) []reflect.Type {
	var types []reflect.Type
	for _, s := range d.shapesAt(path) {
		types = append(types, s.Type)
	}
	return types
}

type yamlField struct {
	key   string
	typ   reflect.Type
	index int
}

// yamlFields lists the keys of a struct type, including those of inlined structs, whose index is -1.
func yamlFields(t reflect.Type) []yamlField {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var out []yamlField
	if t == reflect.TypeFor[Receivers]() {
		for _, name := range simpleReceivers() {
			out = append(out, yamlField{name, reflect.TypeFor[*Receiver](), -1})
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("yaml")
		if !ok || !f.IsExported() || tag == "-" {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		if strings.Contains(opts, "inline") {
			for _, inner := range yamlFields(f.Type) {
				inner.index = -1
				out = append(out, inner)
			}
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		out = append(out, yamlField{name, f.Type, i})
	}
	return out
}

// settingsKeys lists the keys of a probe type's configuration.
func settingsKeys(settings any) []string {
	if settings == nil {
		return nil
	}
	var keys []string
	for _, f := range yamlFields(reflect.TypeOf(settings).Elem()) {
		keys = append(keys, f.key)
	}
	return keys
}
