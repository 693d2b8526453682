package host

import (
	"bytes"
	"iter"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// lines yields the non-empty lines of b, without their line feed.
func lines(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			line := b
			if i := bytes.IndexByte(b, '\n'); i >= 0 {
				line, b = b[:i], b[i+1:]
			} else {
				b = nil
			}
			if len(line) > 0 && !yield(line) {
				return
			}
		}
	}
}

// word splits the first word off b. Words are separated by blanks and tabs.
func word(b []byte) (first, rest []byte) {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	b = b[i:]
	for i = 0; i < len(b) && b[i] != ' ' && b[i] != '\t'; i++ {
	}
	return b[:i], b[i:]
}

// float parses a decimal number.
func float(b []byte) (float64, bool) {
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil
}

// hexadecimal parses a number without 0x.
func hexadecimal(b []byte) (float64, bool) {
	v, err := strconv.ParseUint(string(b), 16, 64)
	return float64(v), err == nil
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// valid makes s a legal label value: names of devices and mount points, and firmware texts, may be any bytes.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func gauge(name, help string) *probes.Family   { return family(name, help, model.MetricTypeGauge) }
func counter(name, help string) *probes.Family { return family(name, help, model.MetricTypeCounter) }
func untyped(name, help string) *probes.Family { return family(name, help, model.MetricTypeUnknown) }

// family returns a family whose name is legal in any Prometheus, whatever the kernel's name for the field.
func family(name, help string, typ model.MetricType) *probes.Family {
	name = strings.Map(func(c rune) rune {
		if c == '_' || c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, name)
	return &probes.Family{Name: name, Help: valid(help), Type: typ}
}

// labelCache keeps the label lists that a reader uses in every round, by the value that distinguishes them. Readers see
// few values; the cache is bounded all the same, for hosts where devices come and go under new names.
type labelCache struct {
	name string
	m    map[string][]string
}

// of returns the list name, value. b is copied only when it is new.
func (c *labelCache) of(b []byte) []string {
	if l, ok := c.m[string(b)]; ok {
		return l
	}
	if c.m == nil || len(c.m) >= 4096 {
		c.m = make(map[string][]string)
	}
	l := []string{c.name, string(b)}
	c.m[string(b)] = l
	return l
}

// familyCache keeps families whose names come from the kernel.
type familyCache struct {
	make func(field string) *probes.Family
	m    map[string]*probes.Family
}

// of returns the family for a field; nil if make returns nil for an unwanted field.
func (c *familyCache) of(field []byte) *probes.Family {
	f, ok := c.m[string(field)]
	if !ok {
		if c.m == nil || len(c.m) >= 4096 {
			c.m = make(map[string]*probes.Family)
		}
		f = c.make(string(field))
		c.m[string(field)] = f
	}
	return f
}
