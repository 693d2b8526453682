package config

import (
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"hwsagent/internal/loopback"
	"hwsagent/probes/hw"
	"hwsagent/probes/self"
	"hwsagent/probes/snmp"
	remoteconfig "hwsagent/remotewrite/config"
)

const (
	defaultInterval = model.Duration(15 * time.Second)
	defaultTimeout  = model.Duration(10 * time.Second)
	// selfInterval is the shortest default of a self probe. Each 15 s its series took a third of the processor time on a small host.
	selfInterval = model.Duration(time.Minute)
	minInterval  = model.Duration(10 * time.Millisecond)

	minWALBytes   = 1 << 20
	maxNameLength = 200
)

// fill adds the defaults that the file left out.
func (c *Config) fill(d *document) {
	if c.Global.ScrapeInterval == 0 {
		c.Global.ScrapeInterval = defaultInterval
	}
	if c.Global.ScrapeTimeout == 0 {
		c.Global.ScrapeTimeout = min(defaultTimeout, c.Global.ScrapeInterval)
	}
	if c.Pull != nil && c.Pull.Listen == "" {
		c.Pull.Listen = defaultPull
	}
	hasSelf := false
	for i := range c.Probes {
		p := &c.Probes[i]
		hasSelf = hasSelf || p.Type == "self"
		if p.Name == "" && d.value(fmt.Sprintf("probes[%d].name", i)) == nil {
			p.Name = p.Type
			if p.Type == "self" {
				p.Name = selfName
			}
		}
		c.fillTimes(p)
		if p.HWLabels == "" && slices.Contains(hw.Dialects(), c.Global.HWLabels) { // an unknown value there is a single mistake, reported for global
			p.HWLabels = c.Global.HWLabels
		}
	}
	c.nameTargets(d)
	if p := c.Receivers.Pushgateway; p != nil && p.Interval == 0 {
		p.Interval = c.Global.ScrapeInterval
	}
	if !hasSelf {
		own := Probe{Name: selfName, Type: "self", Enabled: true, Settings: &self.Config{}}
		c.fillTimes(&own)
		c.Probes = append(c.Probes, own)
	}
}

// nameTargets names the targets without a name that have the same host and path, see [remoteconfig.NameApart].
func (c *Config) nameTargets(d *document) {
	sound := make([]*remoteconfig.Config, len(c.RemoteWrite))
	for i, t := range c.RemoteWrite {
		if t != nil && !d.broken[fmt.Sprintf("remote_write[%d]", i)] {
			sound[i] = t
		}
	}
	remoteconfig.NameApart(sound)
}

func (c *Config) fillTimes(p *Probe) {
	if p.Interval == 0 {
		p.Interval = c.Global.ScrapeInterval
		if p.Type == "self" {
			p.Interval = max(p.Interval, selfInterval)
		}
	}
	if p.Timeout == 0 {
		p.Timeout = min(c.Global.ScrapeTimeout, p.Interval)
	}
}

// validate checks rules that the types cannot express. c must be complete.
func (c *Config) validate(d *document) {
	if c.Global.ScrapeTimeout > c.Global.ScrapeInterval {
		d.errorAt("global.scrape_timeout", fmt.Sprintf("the timeout %s is longer than scrape_interval %s",
			c.Global.ScrapeTimeout, c.Global.ScrapeInterval), "")
	}
	d.checkLabels("global.external_labels", c.Global.ExternalLabels)
	d.checkDialect("global.hw_labels", c.Global.HWLabels)
	c.WAL.validate(d)
	c.Web.validate(d)
	taken := map[string]string{c.Web.Listen: "web.listen"}
	if c.Pull != nil {
		taken[c.Pull.Listen] = "pull.listen"
	}
	c.Receivers.validate(d, taken)
	c.validatePull(d)

	names := map[string]int{}
	for i := range c.Probes {
		p := &c.Probes[i]
		path := fmt.Sprintf("probes[%d]", i)
		if d.values[path] == nil { // the self probe that fill added
			if first, ok := names[p.Name]; ok {
				d.errorAt(fmt.Sprintf("probes[%d].name", first), fmt.Sprintf("the name %q is that of the agent's own probe", p.Name), "choose another")
			}
			continue
		}
		d.within(path, func() { p.validate(d, path) })
		if first, ok := names[p.Name]; ok && p.Name != "" {
			d.errorAt(nameOrEntry(d, path), fmt.Sprintf("the name %q is already used by %s", p.Name, d.cite(fmt.Sprintf("probes[%d]", first))), "give each probe a name of its own")
		} else {
			names[p.Name] = i
		}
		d.checkListed(path, p, names, i)
		if p.Name == PushgatewayName && c.Receivers.Pushgateway != nil {
			d.errorAt(nameOrEntry(d, path), fmt.Sprintf("the name %q is that of the receiver", p.Name), "give the probe another name")
		}
	}
	c.validateSites(d)
	c.validateDevices(d)
	if !c.hasInput(d) && !d.unknownSection {
		d.warnAt("", "no probes, receivers or scrape_configs are configured: only the agent's own metrics are collected",
			"add - {name: host, type: host} under probes:")
	}
}

// hasInput reports whether the file names a source of data: a probe, a receiver or a scrape job. The self probe counts
// only if the file itself has it.
func (c *Config) hasInput(d *document) bool {
	probe := len(c.Probes) > 1 || d.values["probes[0]"] != nil
	return probe || len(c.Receivers.Listeners()) > 0 || c.Receivers.OTLP != nil || c.scrape != nil && len(c.scrape.Names()) > 0
}

func nameOrEntry(d *document, path string) string {
	if d.value(path+".name") != nil {
		return path + ".name"
	}
	return path
}

func (c *Config) validateDevices(d *document) {
	names := map[string]int{}
	for i, t := range c.RemoteWrite {
		path := fmt.Sprintf("remote_write[%d]", i)
		if t == nil {
			if !d.broken[path] {
				d.errorAt(path, "the entry is empty", "a target needs at least a url")
			}
			continue
		}
		wrong := t.Validate()
		d.within(path, func() {
			for _, p := range wrong {
				at := strings.TrimSuffix(path+"."+p.Path, ".")
				line, column := d.placeOf(at)
				if p.Path == "" {
					line, column = d.mentioned(at, p.Text)
				}
				d.add(line, column, at, p.Text, p.Hint)
			}
		})
		explicit := d.value(path+".name") != nil
		if bad := len(wrong) > 0 || d.broken[path]; bad && !explicit {
			continue // its URL cannot be trusted for a name either
		} else if !bad {
			for _, w := range t.Warnings() {
				d.warnAt(strings.TrimSuffix(path+"."+w.Path, "."), w.Text, w.Hint)
			}
		}
		if explicit {
			d.checkName(path, t.Name)
		}
		name := t.TargetName()
		if name == "" {
			continue
		}
		first, taken := names[name]
		switch {
		case !taken:
			names[name] = i
		case explicit:
			d.errorAt(path+".name", fmt.Sprintf("the name %q is already used by %s", name, d.cite(fmt.Sprintf("remote_write[%d]", first))), "give each target a name of its own")
		default:
			d.errorAt(path+".url", fmt.Sprintf("without a name this target is called %q, like %s", name, d.cite(fmt.Sprintf("remote_write[%d]", first))),
				"name them: add name: to both")
		}
		if !taken && !explicit && name != t.URL.Place() {
			d.warnAt(path+".url", fmt.Sprintf("without a name this target is called %q, by what tells it from others of that address", name),
				"write that under name: else the name changes with it, and needs `hwsagent targets adopt OLD NEW` to keep its queue")
		}
	}
	c.validateTenantNames(d)
	if len(c.RemoteWrite) == 0 && !d.unknownSection {
		d.warnAt("remote_write", "no targets are configured: samples go into the log and nowhere else", "add an entry with a url under remote_write:")
	}
}

// validateTenantNames reports an entry with the name that another entry gives to the target of a tenant.
func (c *Config) validateTenantNames(d *document) {
	for i, t := range c.RemoteWrite {
		for _, other := range c.RemoteWrite {
			if t == nil || other == nil || t == other {
				continue
			}
			if err := sharedName(other, t.TargetName()); err != nil {
				d.errorAt(nameOrEntry(d, fmt.Sprintf("remote_write[%d]", i)), err.Error(), "give it another name")
			}
		}
	}
}

func (w *WAL) validate(d *document) {
	if w.MaxBytes < minWALBytes {
		d.errorAt("wal.max_bytes", fmt.Sprintf("%s is less than the least size of a log, 1MiB", w.MaxBytes), "")
	}
	if w.MinFreeBytes < 0 {
		d.errorAt("wal.min_free_bytes", "must not be negative", "")
	}
	if w.OnFull != dropOldest && w.OnFull != reject {
		d.errorAt("wal.on_full", fmt.Sprintf("unknown policy %q", w.OnFull), "write drop_oldest or reject")
	}
}

func (w *Web) validate(d *document) {
	if w.Listen == "" {
		return
	}
	host, _, err := net.SplitHostPort(w.Listen)
	if err != nil {
		d.errorAt("web.listen", fmt.Sprintf("%q is not host:port", w.Listen), `as in "127.0.0.1:9464"`)
		return
	}
	if !loopback.Host(host) && w.ConfigFile == "" && !w.InsecureListen {
		d.errorAt("web.listen", fmt.Sprintf("%q can be reached from other hosts, and there is no config_file with TLS and users", w.Listen),
			"listen on 127.0.0.1, give config_file, or write insecure_listen: true")
	}
}

// Reachable reports whether other hosts can reach the page.
func (w *Web) Reachable() bool {
	host, _, err := net.SplitHostPort(w.Listen)
	return err == nil && !loopback.Host(host)
}

// checkName reports names that are unusable in logs, labels and file names.
func (d *document) checkName(path, name string) {
	switch {
	case name == "":
		if n := d.value(path + ".name"); n != nil && n.Value == "" {
			d.errorAt(path+".name", "the name is empty", "write a name or leave the key out")
		}
	case len(name) > maxNameLength:
		d.errorAt(path+".name", fmt.Sprintf("the name has more than %d bytes", maxNameLength), "")
	case strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		d.errorAt(path+".name", fmt.Sprintf("the name %q has characters that cannot be printed, or a space at an end", name), "")
	}
}

// checkLabels reports labels that remote write 1.0 does not allow.
func (d *document) checkLabels(path string, set map[string]string) {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		at := path + "." + name
		switch {
		case name == model.MetricNameLabel:
			d.errorAtKey(at, "__name__ is the metric's name and cannot be set as a label", "use metric_relabel_configs or write_relabel_configs to rename")
		case !model.LegacyValidation.IsValidLabelName(name):
			d.errorAtKey(at, fmt.Sprintf("%q is not a label name", name), "letters, digits and _ only, no digit first")
		case !utf8.ValidString(set[name]):
			d.errorAt(at, "the value is not UTF-8 text", "")
		}
	}
}

// errorsAt adds each error joined in err, at the key that begins its text.
func (d *document) errorsAt(path string, err error) {
	if err == nil {
		return
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			d.errorsAt(path, e)
		}
		return
	}
	key, text := d.locate(path, err.Error())
	hint := ""
	if before, after, ok := strings.Cut(text, "; "); ok {
		text, hint = before, after
	}
	d.errorAt(key, text, hint)
}

var leadingKey = regexp.MustCompile(`^([a-z0-9_]+(?:\.[A-Za-z0-9_-]+|\[\d+\])*): (?s:(.*))$`)

// locate splits a text such as "queue_config.max_shards: too many" into the path of the key below path and the rest, if
// its first word is a key there.
func (d *document) locate(path, text string) (at, rest string) {
	m := leadingKey.FindStringSubmatch(text)
	if m == nil {
		return path, text
	}
	first := m[1]
	if i := strings.IndexAny(first, ".["); i >= 0 {
		first = first[:i]
	}
	if !slices.Contains(d.keysIn(path), first) {
		return path, text
	}
	return path + "." + m[1], m[2]
}

// absolutePaths makes file paths absolute, relative to the configuration's directory.
func (c *Config) absolutePaths() {
	join := func(p *string) {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(c.Dir, *p)
		}
	}
	join(&c.Web.ConfigFile)
	if c.Pull != nil {
		join(&c.Pull.WebConfigFile)
	}
	for _, l := range c.Receivers.Listeners() {
		join(&l.WebConfigFile)
	}
	for i := range c.Probes {
		eachFile(reflect.ValueOf(c.Probes[i].Settings), func(_ string, path *string) { join(path) })
		for _, sd := range c.Probes[i].Devices.FileSD {
			for k := range sd.Files {
				join(&sd.Files[k])
			}
		}
		if s, ok := c.Probes[i].Settings.(*snmp.Config); ok {
			for k := range s.ConfigFiles {
				join(&s.ConfigFiles[k])
			}
			for k := range s.Definitions {
				join(&s.Definitions[k])
			}
		}
	}
	for _, t := range c.RemoteWrite {
		t.SetDirectory(c.Dir)
	}
}

// eachFile calls f with the key and the value of every string below v whose key ends in _file; f may change the value.
func eachFile(v reflect.Value, f func(key string, path *string)) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	for _, y := range yamlFields(v.Type()) {
		if y.index < 0 {
			continue
		}
		field := v.Field(y.index)
		switch {
		case field.Kind() == reflect.String && strings.HasSuffix(y.key, "_file") && field.CanSet():
			s := field.String()
			f(y.key, &s)
			field.SetString(s)
		case field.Kind() == reflect.Struct || field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Struct:
			eachFile(field, f)
		}
	}
}
