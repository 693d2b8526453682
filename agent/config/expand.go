package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"hwsagent/internal/redact"
)

// maxExpandedFile bounds what ${file:…} reads; a token or a certificate is smaller.
const maxExpandedFile = 256 << 10

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// Only expanded values of these forms are read as a number or a boolean; all others stay text, "null" and "~"
	// included.
	expandedScalar = regexp.MustCompile(`^(-?(0|[1-9][0-9]*)(\.[0-9]+)?|true|false)$`)
)

// expander replaces ${VAR}, ${VAR:-default}, ${file:PATH} and ${host:FACT} in the scalar values of a document. It works
// on the tree, so that the value of a variable cannot become structure.
type expander struct {
	env      func(string) (string, bool)
	readFile func(path string) ([]byte, error)
	dir      string // base of relative paths
	seen     map[*yaml.Node]bool
	values   []mask // each expanded value with the text it replaced
}

// expand replaces the variables in the whole document and adds mistakes to d.
func (x *expander) expand(d *document) {
	x.seen = map[*yaml.Node]bool{}
	x.walk(d, d.root)
	d.collectMasks()
	for _, m := range x.values {
		if m.secret != "" {
			d.masks = append(d.masks, m, mask{redact.URL(m.secret), m.shown})
		}
	}
	d.sortMasks()
}

func (x *expander) walk(d *document, n *yaml.Node) {
	if n == nil || x.seen[n] {
		return
	}
	x.seen[n] = true
	switch n.Kind {
	case yaml.ScalarNode:
		x.scalar(d, n)
	case yaml.SequenceNode:
		for _, item := range n.Content {
			x.walk(d, item)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			// In relabelling rules, ${1} is a capture group.
			if !strings.HasSuffix(n.Content[i].Value, "relabel_configs") {
				x.walk(d, n.Content[i+1])
			}
		}
	}
}

func (x *expander) scalar(d *document, n *yaml.Node) {
	if !strings.Contains(n.Value, "${") {
		return
	}
	value, given, err := x.text(n.Value)
	if err != nil {
		hint := "for a literal \"${\" write \"$${\""
		if errors.Is(err, errUnset) {
			hint = "set it, or give a default as in ${VAR:-default}; " + hint
		}
		d.add(n.Line, n.Column, d.valuesAt[place{n.Line, n.Column}], err.Error(), hint)
		d.unexpanded[place{n.Line, n.Column}] = true
		return
	}
	d.written[n], d.given[n] = n.Value, given
	n.Value = value
	n.Tag = "!!str"
	if n.Style == 0 && expandedScalar.MatchString(value) {
		n.Tag = "" // a number or a boolean; a key that wants text gets it as written
	}
}

var errUnset = errors.New("is not set")

// text expands one scalar. given are the parts that expansion inserted.
func (x *expander) text(s string) (text string, given []part, err error) {
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String(), given, nil
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			return "", nil, errors.New(`"${" without "}"`)
		}
		expr := s[i+2 : i+end]
		v, err := x.lookup(expr)
		if err != nil {
			return "", nil, err
		}
		if !strings.HasPrefix(expr, hostFacts) { // facts are no secrets
			x.values = append(x.values, mask{v, "${" + expr + "}"})
			given = append(given, part{b.Len(), b.Len() + len(v)})
		}
		b.WriteString(v)
		s = s[i+end+1:]
	}
}

func (x *expander) lookup(expr string) (string, error) {
	if path, ok := strings.CutPrefix(expr, "file:"); ok {
		return x.file(path)
	}
	if fact, ok := strings.CutPrefix(expr, hostFacts); ok {
		return hostFact(fact, machineIDFile)
	}
	name, standby, hasDefault := strings.Cut(expr, ":-")
	if !variableName.MatchString(name) {
		return "", errors.New(`"${" is not followed by the name of a variable and "}"`)
	}
	v, ok := x.env(name)
	// As in a shell, ":-" is for a variable that is unset or empty.
	if hasDefault && v == "" {
		return standby, nil
	}
	if !ok {
		return "", fmt.Errorf("the environment variable %s %w", name, errUnset)
	}
	return v, nil
}

// hostFacts is the prefix of expressions for facts about this host.
const hostFacts = "host:"

// machineIDFile holds the machine's ID, see machine-id(5).
const machineIDFile = "/etc/machine-id"

// hostFact returns a fact about this host. Facts tell apart hosts that share a configuration.
func hostFact(fact, machineID string) (string, error) {
	switch fact {
	case "name":
		name, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("get the host name for ${host:name}: %w", err)
		}
		return name, nil
	case "machine_id":
		text, err := readAtMost(machineID, maxExpandedFile)
		if err != nil {
			return "", fmt.Errorf("read the machine ID for ${host:machine_id}: %w", err)
		}
		id := strings.TrimSpace(string(text))
		if !machineIDForm.MatchString(id) {
			return "", fmt.Errorf("%s has no machine ID for ${host:machine_id}: want 32 hexadecimal digits", machineID)
		}
		return id, nil
	}
	return "", fmt.Errorf("unknown host fact %q: use ${host:name} or ${host:machine_id}", fact)
}

var machineIDForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

func (x *expander) file(path string) (string, error) {
	if path == "" {
		return "", errors.New("${file:} names no file")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(x.dir, path)
	}
	b, err := x.readFile(path)
	if err != nil {
		return "", fmt.Errorf("read file for ${file:…}: %w", err)
	}
	if len(b) > maxExpandedFile {
		return "", fmt.Errorf("file %s for ${file:…} is larger than %d bytes", path, maxExpandedFile)
	}
	return strings.TrimRight(strings.TrimPrefix(string(b), byteOrderMark), "\r\n"), nil
}

// byteOrderMark is what some editors put before a text, and no part of it.
const byteOrderMark = "\ufeff"

// readSmallFile reads a file of at most maxExpandedFile bytes. From a larger one it returns one byte more.
func readSmallFile(path string) ([]byte, error) { return readRegular(path, maxExpandedFile) }

// readRegular is readAtMost for a file that must not be a pipe: reading a pipe could block forever, and again at each reload.
func readRegular(path string, limit int) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return readAtMost(path, limit)
}

// readAtMost reads up to limit+1 bytes of a file, which may be a pipe from a shell.
func readAtMost(path string, limit int) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f, limit)
}
