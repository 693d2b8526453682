package config

import (
	"fmt"
	"slices"
	"strings"

	"hwsagent/probes/hw"
	"hwsagent/probes/site"
)

// siteLabel joins figures of a site with readings of its machines.
const siteLabel = "site"

// validateSites refuses a second entry for the same site. It warns about figures of a site without machines, and about
// machines at a site without figures.
func (c *Config) validateSites(d *document) {
	figures, used := map[string]int{}, map[string]bool{c.Global.ExternalLabels[siteLabel]: true}
	listed := false // an entry reads device lists from files, which may name any site
	for i := range c.Probes {
		p := &c.Probes[i]
		s, ok := p.Settings.(*site.Config)
		if !ok {
			used[p.Labels[siteLabel]] = true
			for _, g := range p.Devices.StaticConfigs {
				used[g.Labels[siteLabel]] = true
			}
			listed = listed || p.Devices.FileSD != nil
			continue
		}
		path := fmt.Sprintf("probes[%d].site", i)
		if first, twice := figures[s.Site]; twice && s.Site != "" {
			d.errorAt(path, fmt.Sprintf("the site %q is already used by %s", s.Site, d.cite(fmt.Sprintf("probes[%d]", first))), "put its figures into one entry")
		}
		figures[s.Site] = i
	}
	if len(figures) == 0 {
		return
	}
	for name, i := range figures {
		if name != "" && !used[name] && !listed && c.Probes[i].Enabled {
			d.warnAt(fmt.Sprintf("probes[%d].site", i), fmt.Sprintf("no probe has the label site: %s, so these figures join no reading of this agent", name),
				"write labels: {site: "+name+"} in the probes of its machines, or in global.external_labels")
		}
	}
	for i := range c.Probes {
		p := &c.Probes[i]
		if name := p.Labels[siteLabel]; name != "" {
			if _, ok := figures[name]; !ok {
				d.warnAt(fmt.Sprintf("probes[%d].labels.site", i), fmt.Sprintf("no entry of type site has figures of %q", name), "add one, or correct the name")
			}
		}
	}
}

// checkDialect reports an unknown value of hw_labels.
func (d *document) checkDialect(path, word string) {
	if word != "" && !slices.Contains(hw.Dialects(), word) {
		d.errorAt(path, fmt.Sprintf("unknown value %q", word), "write "+strings.Join(hw.Dialects(), " or "))
	}
}
