package devices

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
)

// MaxListed bounds the devices of one list: each takes a goroutine, a socket and its series.
const MaxListed = 10_000

// List is the part of an entry of probes that lists its devices. It is plain data.
type List struct {
	Targets       []string `yaml:"targets,omitempty"`         // [many devices](../devices.md) in place of target
	StaticConfigs []Group  `yaml:"static_configs,omitempty"`  // groups of devices
	FileSD        []FileSD `yaml:"file_sd_configs,omitempty"` // files of groups
	// Shard is the share of the list that this agent reads; default all of it
	Shard                *Shard  `yaml:"shard,omitempty"`
	MaxRequests          float64 `yaml:"max_requests_per_second,omitempty"`            // to all devices together; 0: no limit
	MaxRequestsPerDevice float64 `yaml:"max_requests_per_second_per_device,omitempty"` // to each device; 0: no limit
}

// Group is a list of devices with additional labels, as in Prometheus' static_configs and its files of targets.
type Group struct {
	Targets []string          `yaml:"targets"`          // the devices, as in target
	Labels  map[string]string `yaml:"labels,omitempty"` // of all samples of these devices; those that begin with __ are not sent
}

// FileSD names files that hold groups, as Prometheus' file_sd_configs does.
type FileSD struct {
	// Files are paths, or patterns such as `devices/*.yml`, of files in YAML or JSON.
	Files []string `yaml:"files"`
}

// Device is one device of a list.
type Device struct {
	Target string
	// Labels are the labels of its group. Those beginning with __ are only for [Device.Fill].
	Labels map[string]string
}

// IsSet reports whether the entry has a list, which may be empty.
func (l *List) IsSet() bool {
	return l.Targets != nil || l.StaticConfigs != nil || l.FileSD != nil
}

// FieldError is a mistake in one key of a [List].
type FieldError struct {
	Key     string // dotted, below the entry: static_configs[0].targets[1]
	Message string // the mistake
	Hint    string // what to do; may be empty
}

// Error gives key and message.
func (e *FieldError) Error() string { return e.Key + ": " + e.Message }

// Validate reports every mistake in the list, joined, each a [*FieldError]. target checks a target's form for the
// probe's type. It reads no files.
func (l *List) Validate(target func(string) error) error {
	v := &validator{seen: map[string]bool{}, target: target}
	v.targets("targets", l.Targets)
	for i, g := range l.StaticConfigs {
		at := fmt.Sprintf("static_configs[%d]", i)
		v.targets(at+".targets", g.Targets)
		for name, value := range g.Labels {
			if why := wrongLabel(name, value); why != "" {
				v.add(at+".labels."+name, why, "letters, digits and _ only, no digit first")
			}
		}
	}
	files := 0
	for i, sd := range l.FileSD {
		for j, f := range sd.Files {
			if _, err := filepath.Match(f, ""); f == "" || err != nil {
				v.add(fmt.Sprintf("file_sd_configs[%d].files[%d]", i, j), "is not a path or a pattern of paths", "")
			}
			files++
		}
	}
	if l.IsSet() && len(v.seen) == 0 && files == 0 {
		v.add(l.firstKey(), "the list names no target", "write static_configs: [{targets: [192.0.2.7, 192.0.2.8]}]")
	}
	if s := l.Shard; s != nil && (s.Total < 1 || s.Index < 0 || s.Index >= s.Total) {
		v.add("shard", fmt.Sprintf("index %d of total %d is not a share", s.Index, s.Total), "index counts from 0 to total-1, as in shard: {index: 0, total: 3}")
	}
	if l.Shard != nil && !l.IsSet() {
		v.add("shard", "there is no list to share", "write targets, static_configs or file_sd_configs")
	}
	for _, r := range []struct {
		key  string
		rate float64
	}{{"max_requests_per_second", l.MaxRequests}, {"max_requests_per_second_per_device", l.MaxRequestsPerDevice}} {
		if !(r.rate >= 0 && r.rate <= 1e6) {
			v.add(r.key, fmt.Sprintf("%g is not between 0 and 1000000", r.rate), "0 stands for no limit")
		}
	}
	return errors.Join(v.errs...)
}

// firstKey returns the key of the list for a message about all of it.
func (l *List) firstKey() string {
	switch {
	case l.StaticConfigs != nil:
		return "static_configs"
	case l.FileSD != nil:
		return "file_sd_configs"
	}
	return "targets"
}

type validator struct {
	seen   map[string]bool
	full   bool
	target func(string) error
	errs   []error
}

func (v *validator) add(key, message, hint string) {
	v.errs = append(v.errs, &FieldError{key, message, hint})
}

func (v *validator) targets(path string, targets []string) {
	for i, target := range targets {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch err := v.target(target); {
		case v.full:
			return
		case v.seen[target]:
			v.add(at, fmt.Sprintf("the target %q is listed twice", target), "take one out")
		case len(v.seen) == MaxListed:
			v.add(at, fmt.Sprintf("the entry has more than %d targets", MaxListed), "make several entries of it")
			v.full = true
		case err != nil:
			v.add(at, err.Error(), "")
		}
		v.seen[target] = true
	}
}

// wrongLabel reports why a label cannot be set; "" if it can.
func wrongLabel(name, value string) string {
	switch {
	case name == model.MetricNameLabel:
		return "__name__ is the metric's name and cannot be set as a label"
	case !model.LegacyValidation.IsValidLabelName(name):
		return fmt.Sprintf("%q is not a label name", name)
	case !utf8.ValidString(value):
		return "the value is not UTF-8 text"
	}
	return ""
}

// Devices returns the devices of the list that this agent reads: those of the configuration, then those of the files,
// each target once. It leaves out invalid targets of files. problems describe what is wrong with the files.
func (l *List) Devices(files *Files, target func(string) error) (all []Device, problems []Problem) {
	seen := map[string]bool{}
	add := func(g Group) (skipped []string) {
		for _, t := range g.Targets {
			switch err := target(t); {
			case seen[t]:
				skipped = append(skipped, fmt.Sprintf("the target %q is listed twice", t))
				continue
			case err != nil:
				skipped = append(skipped, fmt.Sprintf("target %q: %v", t, err))
				continue
			case len(seen) == MaxListed:
				return append(skipped, fmt.Sprintf("the list has more than %d targets", MaxListed))
			}
			seen[t] = true
			if l.Shard.Has(t) {
				all = append(all, Device{Target: t, Labels: g.Labels})
			}
		}
		return skipped
	}
	add(Group{Targets: l.Targets})
	for _, g := range l.StaticConfigs {
		add(g)
	}
	for _, sd := range l.FileSD {
		for _, pattern := range sd.Files {
			contents, wrong := files.Read(pattern)
			problems = append(problems, wrong...)
			for _, c := range contents {
				var skipped []string
				for _, g := range c.Groups {
					skipped = append(skipped, add(g)...)
				}
				if n := len(skipped); n > 0 {
					problems = append(problems, Problem{c.Path, fmt.Sprintf("%d of its targets left out, the first: %s", n, skipped[0])})
				}
			}
		}
	}
	return all, problems
}

// Patterns returns the paths and patterns of all files of the list.
func (l *List) Patterns() (all []string) {
	for _, sd := range l.FileSD {
		all = append(all, sd.Files...)
	}
	return all
}

// SeriesLabels returns the labels of the device's series.
func (d Device) SeriesLabels() map[string]string {
	all := maps.Clone(d.Labels)
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasPrefix(name, "__") })
	return all
}

// Host returns the target without a scheme, a path and a port: a name, or an address without
// brackets.
func (d Device) Host() string {
	s := d.Target
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	} else {
		for _, scheme := range []string{"udp:", "tcp:"} {
			s = strings.TrimPrefix(s, scheme)
		}
	}
	s, _, _ = strings.Cut(s, "/")
	if host, _, err := net.SplitHostPort(s); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
}

// Fill inserts the device's own words into the path of a secret: {target}, {host}, and {NAME} for a label of its group.
// It refuses a word that would lead out of the directory. A path without placeholders stays as it is.
func (d Device) Fill(path string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(path, "{")
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			b.WriteString(path)
			return b.String(), nil
		}
		word, ok := d.word(name)
		switch {
		case !ok:
			return "", fmt.Errorf("the path has {%s}, but the device %q has no label of that name", name, d.Target)
		case word == "" || word == "." || word == ".." || strings.ContainsAny(word, "/\\\x00"):
			return "", fmt.Errorf("the path has {%s}, but %q of the device %q is not the name of a file", name, word, d.Target)
		}
		b.WriteString(before)
		b.WriteString(word)
		path = after
	}
}

func (d Device) word(name string) (string, bool) {
	switch name {
	case "target":
		return d.Target, true
	case "host":
		return d.Host(), true
	}
	word, ok := d.Labels[name]
	return word, ok
}
