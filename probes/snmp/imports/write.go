package imports

import (
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"hwsagent/probes/snmp/library"
)

// The subset of the dialect of package library that imports write.
type (
	definition struct {
		Name     string   `yaml:"definition"`
		Vendor   string   `yaml:"vendor,omitempty"`
		Fills    bool     `yaml:"fills,omitempty"`
		OneOf    string   `yaml:"one_of,omitempty"`
		Rank     int      `yaml:"rank,omitempty"`
		Detect   []detect `yaml:"detect,omitempty"`
		Includes []string `yaml:"includes,omitempty,flow"`
		Tables   []table  `yaml:"tables,omitempty"`
	}
	detect struct {
		ObjectIDs []string `yaml:"sysObjectID,omitempty,flow"`
		Pattern   string   `yaml:"sysObjectID_pattern,omitempty"`
		Descr     string   `yaml:"sysDescr,omitempty"`
		Present   string   `yaml:"present,omitempty"`
		Value     string   `yaml:"value,omitempty"`
		Unless    []detect `yaml:"unless,omitempty"`
		Family    string   `yaml:"family,omitempty"`
	}
	table struct {
		Table  string           `yaml:"table"`
		MIB    string           `yaml:"mib"`
		Entry  string           `yaml:"entry"`
		Scalar bool             `yaml:"scalar,omitempty"`
		Kind   string           `yaml:"kind"`
		Name   string           `yaml:"name,omitempty"`
		Only   []map[string]any `yaml:"only,omitempty"`
		Unless []map[string]any `yaml:"unless,omitempty"`
		Values []value          `yaml:"values"`
	}
	value struct {
		Object string            `yaml:"object"`
		Column string            `yaml:"column"`
		Metric string            `yaml:"metric,omitempty"`
		Limit  string            `yaml:"limit,omitempty"`
		States map[string]string `yaml:"states,omitempty"`
		Scale  float64           `yaml:"scale,omitempty"`
		From   string            `yaml:"from,omitempty"`
		Not    []string          `yaml:"not,omitempty,flow"`
		Least  *float64          `yaml:"least,omitempty"`
		Most   *float64          `yaml:"most,omitempty"`
		Sensor string            `yaml:"sensor,omitempty"`
	}
)

// Mark begins each file that an import writes.
const Mark = "# Made by hwsagent snmp import"

// maxName is the maximum length of a definition's name in bytes, which with .yaml must fit into a file's name (NAME_MAX is 255).
const maxName = 200

// text returns the definition as a file that package library accepts.
func (d *definition) text(source string) ([]byte, error) {
	if len(d.Name) > maxName {
		return nil, fmt.Errorf("the name of the definition has %d bytes, more than %d", len(d.Name), maxName)
	}
	body, err := yaml.Dump(d)
	if err != nil {
		return nil, fmt.Errorf("write definition %s: %w", d.Name, err)
	}
	text := append([]byte(Mark+" from "+printable(source)+"; the next import writes it anew.\n"), body...)
	if _, err := library.Parse(d.Name+".yaml", text); err != nil {
		return nil, fmt.Errorf("definition %s is not valid: %w", d.Name, err)
	}
	return text, nil
}

// nameOf makes the name of a definition from any text.
func nameOf(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
			return c
		}
		return '_'
	}, strings.ToLower(s))
}

// printable returns a text without line breaks and terminal control codes.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, s)
}

// literal makes a text safe for a template, in which braces have a meaning.
func literal(s string) string {
	return strings.NewReplacer("{", "(", "}", ")").Replace(s)
}
