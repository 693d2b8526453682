package main

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// least is the share of a licence's text, in percent, that licensecheck must recognise. The rest are names and headings.
const least = 75

// allowed returns the licences that the agent may link.
func allowed() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}
}

// licences returns the SPDX identifiers of the licences in a text, as pkg.go.dev finds them; none if too much is unknown.
func licences(text string) (ids []string) {
	found := licensecheck.Scan([]byte(text))
	if found.Percent < least {
		return nil
	}
	for _, m := range found.Match {
		if !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// isLicence reports whether a file is a licence, and not a notice or a grant of patents beside one.
func isLicence(file string) bool {
	base := strings.ToLower(path.Base(file))
	return !strings.HasPrefix(base, "notice") && !strings.HasPrefix(base, "patents") && !strings.HasPrefix(base, "copyright")
}

// ids returns the licences of a module. Each licence file must be known, and the module must have one.
func (m *module) ids() ([]string, error) {
	found := map[string]bool{}
	for file, text := range m.texts {
		if !isLicence(file) {
			continue
		}
		ids := licences(text)
		if len(ids) == 0 {
			return nil, fmt.Errorf("%s %s: the licence in %s is not known: read it before the module is linked", m.path, m.version, file)
		}
		for _, id := range ids {
			if !slices.Contains(allowed(), id) {
				return nil, fmt.Errorf("%s %s: the licence in %s is %s, which the agent may not link: do without the module", m.path, m.version, file, id)
			}
			found[id] = true
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s %s has no file with a licence: it may not be linked", m.path, m.version)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

const heading = `Notices for hwsagent

hwsagent itself is licensed under the Apache License 2.0: see LICENSE. Its binaries contain the
modules below, each under its own licence. This file is written by internal/tools/notices from the
modules that are linked on any platform that is released, and checked by continuous
integration.
`

// write writes the notices: the list of modules, the location of their source if their licence requires that, and all
// texts, each once.
func write(out io.Writer, modules []*module) error {
	var b strings.Builder
	b.WriteString(heading + "\n")
	var source strings.Builder
	holders := map[string][]string{} // by text: where it stands
	for _, m := range modules {
		ids, err := m.ids()
		if err != nil {
			return err
		}
		name := strings.TrimSpace(m.path + " " + m.version)
		fmt.Fprintf(&b, "%-86s %s\n", name, strings.Join(ids, ", "))
		if slices.Contains(ids, "MPL-2.0") {
			fmt.Fprintf(&source, "\n%s is licensed under the Mozilla Public License 2.0 and not changed. Its source is at\nhttps://%s (tag %s) and at\nhttps://proxy.golang.org/%s/@v/%s.zip\n",
				name, m.path, m.version, m.path, m.version)
		}
		for _, file := range slices.Sorted(maps.Keys(m.texts)) {
			holders[m.texts[file]] = append(holders[m.texts[file]], strings.TrimSpace(m.path+" "+m.version)+": "+file)
		}
	}
	b.WriteString(source.String())
	texts := slices.SortedFunc(maps.Keys(holders), func(x, y string) int { return strings.Compare(holders[x][0], holders[y][0]) })
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s", strings.Repeat("=", 80), strings.Join(holders[text], "\n"), text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
