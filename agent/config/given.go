package config

import (
	"fmt"
	"slices"
	"strings"

	"hwsagent/internal/redact"
	"hwsagent/probes/exec"
)

// part is a range of bytes in a scalar that came from a variable or file.
type part struct{ from, to int }

// givenBelow returns the texts that variables and files inserted, below a path of the configuration, into URL paths and
// commands. Such a text may be a token, and only its origin distinguishes it from an ordinary path.
func (d *document) givenBelow(prefix string) (texts []string) {
	for path, n := range d.values {
		if !strings.HasPrefix(path, prefix) {
			continue
		}
		if n = d.value(path); n == nil || len(d.given[n]) == 0 {
			continue
		}
		from, to := 0, len(n.Value)
		switch kind, _ := d.kindAt(path); {
		case kind == redact.Address:
			from, to = pathOf(n.Value)
		case kind == redact.Path, strings.HasPrefix(path[len(prefix):], "command["):
		default:
			continue
		}
		for _, p := range d.given[n] {
			if p.from, p.to = max(p.from, from), min(p.to, to); p.from < p.to {
				texts = append(texts, strings.Trim(n.Value[p.from:p.to], "/"))
			}
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// pathOf returns the range of an address that holds its path.
func pathOf(address string) (from, to int) {
	if i := strings.Index(address, "://"); i >= 0 {
		from = i + len("://")
	}
	to = len(address)
	if i := strings.IndexAny(address[from:], "?#"); i >= 0 {
		to = from + i
	}
	if i := strings.IndexByte(address[from:to], '/'); i >= 0 {
		return from + i, to
	}
	return to, to
}

// hideGiven passes each part of the configuration its texts from variables and files.
func (c *Config) hideGiven(d *document) {
	for i, t := range c.RemoteWrite {
		if given := d.givenBelow(fmt.Sprintf("remote_write[%d].", i)); t != nil && len(given) > 0 {
			t.Hide(given...)
		}
	}
	for i := range c.Probes {
		s, ok := c.Probes[i].Settings.(*exec.Config)
		if given := d.givenBelow(fmt.Sprintf("probes[%d].", i)); ok && len(given) > 0 {
			s.Hide = redact.New(given...)
		}
	}
}

// hideGivenScrape is hideGiven for the scrape configurations, in whichever file they are.
func (c *Config) hideGivenScrape(entries []scrapeEntry) {
	var given []string
	for _, e := range entries {
		given = append(given, e.in.givenBelow(e.path+".")...)
	}
	if len(given) > 0 {
		c.scrapeHidden = redact.New(given...)
	}
}
