package snmp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hwsagent/internal/files"
	"hwsagent/probes/snmp/library"
)

// defaultAuth is the login that snmp_exporter uses if a request names none.
const defaultAuth = "public_v2"

// plan is a configuration with its files read.
type plan struct {
	auth    Auth
	modules []*compiled
	notes   []*Note
	version string // a digest of the lines read from files; empty without files
}

// Examine reads the files of c and reports settings without effect, and differences to
// snmp_exporter with the same files. The error is that of [New].
func (c *Config) Examine() ([]*Note, error) {
	p, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	return p.notes, nil
}

// newPlan reads the files that c names and looks up its modules and login.
func newPlan(c *Config) (*plan, error) { return planWith(c, sources{}, library.Load) }

// planWith is newPlan with files that may be read already, and load for the library of hardware.
func planWith(c *Config, read sources, load func(dirs ...string) (*library.Library, error)) (*plan, error) {
	files, err := readFiles(c, read)
	if err != nil {
		return nil, err
	}
	p := &plan{auth: c.Auth}
	sum := sha256.New()
	for _, f := range files {
		p.notes = append(p.notes, f.notes...)
		sum.Write(f.digest[:])
	}
	if len(files) > 0 {
		p.version = hex.EncodeToString(sum.Sum(nil))
	}
	var errs []error
	var found []*ymlModule
	for _, name := range c.modules() {
		m := p.module(files, name)
		own, isOwn := builtin[name]
		switch {
		case m != nil:
			found = append(found, m)
			p.modules = append(p.modules, m.compiled(name))
			p.notes = append(p.notes, differences(c, name, m)...)
			if isOwn {
				p.notes = append(p.notes, m.place.with(fmt.Sprintf("the module %s is read in place of the built-in one of that name", name), ""))
			}
		case isOwn:
			p.modules = append(p.modules, compile(name, own))
		case name == hardwareModule:
			known, err := load(c.Definitions...)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			p.version += known.Version()
			p.modules = append(p.modules, &compiled{name: name, library: known})
		default:
			errs = append(errs, unknownModule(files, name))
		}
	}
	if err := p.login(c, files, found); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if p.auth.version() == 1 {
		p.notes = append(p.notes, missingInV1(p.modules)...)
	}
	return p, nil
}

// with returns a note about the same place.
func (n Note) with(text, try string) *Note {
	n.Text, n.Try = text, try
	return &n
}

// module returns the module of that name in the last file that has it, or nil.
func (p *plan) module(files []*ymlFile, name string) (m *ymlModule) {
	for _, f := range files {
		next := f.modules[name]
		if next == nil {
			continue
		}
		if m != nil {
			p.notes = append(p.notes, next.place.with(fmt.Sprintf("the module %s replaces that of %s:%d", name, m.place.File, m.place.Line), ""))
		}
		m = next
	}
	return m
}

// login finds the login that c refers to or, if c has none, the one that the files imply.
func (p *plan) login(c *Config, files []*ymlFile, modules []*ymlModule) error {
	var known []string
	var a *ymlAuth
	name := c.Auth.Name
	if c.Auth == (Auth{}) {
		name = defaultAuth
	}
	for _, f := range files {
		for n, x := range f.auths {
			known = append(known, n)
			if n == name {
				a = x
			}
		}
	}
	switch {
	case a != nil:
		p.auth = a.Auth
	case c.Auth.Name != "":
		slices.Sort(known)
		return &FieldError{Key: "auth", Message: "no file of config_files has a login of that name; there are: " + strings.Join(slices.Compact(known), ", ")}
	case c.Auth != (Auth{}):
		return nil
	default:
		var err error
		if a, err = loginOfModules(modules); a == nil || err != nil {
			return err
		}
		p.auth = a.Auth
	}
	if a.expands {
		p.notes = append(p.notes, severe(a.place.with("a value of the login has ${…}, which stands for itself here; snmp_exporter expands it with --config.expand-environment-variables",
			"write auth: as a mapping with password_file or ${NAME} in the agent's configuration")))
	}
	if info, err := os.Stat(a.place.File); err == nil && info.Mode().Perm()&0o007 != 0 && a.secret() {
		p.notes = append(p.notes, severe(a.place.with(fmt.Sprintf("the file holds a secret and every user of this host may read it (%#o)", info.Mode().Perm()), "chmod 600 "+a.place.File)))
	}
	return nil
}

func severe(n *Note) *Note {
	n.Severe = true
	return n
}

// secret reports whether the login has a secret: a well-known community is not one.
func (a *Auth) secret() bool {
	return a.AuthPassword != "" || a.PrivPassword != "" || a.Community != "" && a.Community != "public"
}

// loginOfModules returns the login of modules of the old format; nil if they have none.
func loginOfModules(modules []*ymlModule) (a *ymlAuth, err error) {
	for _, m := range modules {
		switch {
		case m.auth == nil:
		case a == nil:
			a = m.auth
		case a.Auth != m.auth.Auth:
			return nil, m.place.with(fmt.Sprintf("the module logs in otherwise than that of line %d, and a probe has one login", a.place.Line),
				"write auth: in the probe's configuration, or make two probes")
		}
	}
	return a, nil
}

// differences returns how snmp_exporter would treat a module differently.
func differences(c *Config, name string, m *ymlModule) (notes []*Note) {
	say := func(format string, args ...any) {
		notes = append(notes, m.place.with("module "+name+": "+fmt.Sprintf(format, args...), ""))
	}
	if len(m.filters) > 0 {
		say("where the column of a filter cannot be read the module fails; snmp_exporter reads every row then")
	}
	for _, x := range m.metrics {
		if x.typ == typeParseDateAndTime && x.timePattern == "" {
			notes = append(notes, severe(m.place.with(fmt.Sprintf("module %s: %s has no datetime_pattern and gives nothing", name, x.name), "write one, such as \"%Y-%m-%d %H:%M:%S\"")))
		}
	}
	if i := slices.IndexFunc(m.metrics, func(x metric) bool { return x.typ == typeDateAndTime }); i >= 0 {
		say("a date with a month or day of 0, which stands for never, gives no sample of %s; snmp_exporter gives a time before 1970", m.metrics[i].name)
	}
	if slices.ContainsFunc(m.metrics, func(x metric) bool {
		return slices.ContainsFunc(x.indexes, func(i index) bool { return i.typ == typeLldpPortID })
	}) {
		say("an LldpPortId in an index is read with its length once; snmp_exporter reads the length twice and gets another text")
	}
	if m.params.maxRepetitions != 0 && c.MaxRepetitions != 0 {
		say("max_repetitions is %d, as the probe's configuration says, not %d", c.MaxRepetitions, m.params.maxRepetitions)
	}
	if m.params.retries != nil && c.Retries != nil {
		say("retries is %d, as the probe's configuration says, not %d", *c.Retries, *m.params.retries)
	}
	if m.params.timeout != 0 && c.PacketTimeout != 0 {
		say("the timeout of a packet is %s, as packet_timeout of the probe's configuration says, not %s", c.PacketTimeout, m.params.timeout)
	}
	return notes
}

// unknownModule returns the error for a module that neither a file nor this package has.
func unknownModule(files []*ymlFile, name string) error {
	have := Modules()
	for _, f := range files {
		have = append(have, f.names...)
	}
	slices.Sort(have)
	have = slices.Compact(have)
	near := slices.DeleteFunc(slices.Clone(have), func(n string) bool {
		return !strings.Contains(strings.ToLower(n), strings.ToLower(name)) && !strings.Contains(strings.ToLower(name), strings.ToLower(n))
	})
	hint := fmt.Sprintf("there are %s", strings.Join(have[:min(len(have), 80)], ", "))
	if len(near) > 0 {
		hint = "the nearest are " + strings.Join(near, ", ")
	}
	return &FieldError{Key: "modules", Message: fmt.Sprintf("no module %q is built in or in a file of config_files; %s", name, hint)}
}

// maxYMLFiles bounds the files matched by patterns.
const maxYMLFiles = 100

// readFiles reads the wanted modules of every file of c. Its error lists all errors of the
// files.
func readFiles(c *Config, read sources) (files []*ymlFile, err error) {
	var errs []error
	for i, pattern := range c.ConfigFiles {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			errs = append(errs, &FieldError{Key: fmt.Sprintf("config_files[%d]", i), Message: fmt.Sprintf("no file matches %s; put an snmp.yml there", pattern)})
			continue
		}
		for _, path := range paths {
			if len(files) == maxYMLFiles {
				return nil, &FieldError{Key: "config_files", Message: fmt.Sprintf("more than %d files match; name fewer", maxYMLFiles)}
			}
			from, err := read.open(path)
			if err != nil {
				errs = append(errs, &FieldError{Key: fmt.Sprintf("config_files[%d]", i), Message: err.Error()})
				continue
			}
			f, broken := from.read(func(name string) bool { return slices.Contains(c.modules(), name) })
			for _, n := range broken {
				errs = append(errs, n)
			}
			files = append(files, f)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return files, nil
}

// sources are files of modules, by path.
type sources map[string]*source

// open reads a file at the first call.
func (s sources) open(path string) (*source, error) {
	if s[path] == nil {
		text, err := readBounded(path)
		if err != nil {
			return nil, err
		}
		s[path] = newSource(path, text)
	}
	return s[path], nil
}

// readBounded reads a regular file within the size limit.
func readBounded(path string) ([]byte, error) {
	text, err := files.Read(path, maxYMLBytes)
	if errors.Is(err, files.ErrTooLarge) {
		return nil, fmt.Errorf("read modules: %w; split it", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read modules: %w", err)
	}
	return text, nil
}
