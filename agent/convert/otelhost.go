package convert

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"hwsagent/probes/host"
)

// hostmetrics converts the receiver of this host's metrics.
func (o *collector) hostmetrics(v *yaml.Node, where string) {
	again := o.hasHost()
	p := o.hostProbe()
	if every := o.text(v, "collection_interval"); every != "" {
		set(p, "interval", raw(every))
	}
	if root := o.text(v, "root_path"); root != "" && root != "/" {
		for _, part := range [][2]string{{"rootfs_path", ""}, {"proc_path", "proc"}, {"sys_path", "sys"}, {"udev_path", "run/udev/data"}} {
			set(p, part[0], str(path.Join(root, part[1])))
		}
	}
	o.scrapers(p, get(v, "scrapers"), again)
	pairs(get(v, "scrapers"), func(scraper string, k, options *yaml.Node) {
		at := where + ".scrapers." + scraper
		switch scraper {
		case "cpu", "disk", "filesystem", "load", "memory", "network", "nfs", "paging", "processes", "system":
			o.scraper(p, scraper, options, at)
		case "process":
			o.note(k, at, "the agent has no series of single processes: run process-exporter beside it, and read that with scrape_configs")
		default:
			o.note(k, at, "the probe host has no such part")
		}
	})
}

// scraperCollectors maps the parts of hostmetrics to collectors of the probe host.
var scraperCollectors = map[string][]string{
	"cpu": {"cpu"}, "disk": {"diskstats"}, "filesystem": {"filesystem"}, "load": {"loadavg"}, "memory": {"meminfo"},
	"network": {"netdev", "netclass", "conntrack", "sockstat", "netstat"},
	"nfs":     {"nfs", "nfsd"}, "paging": {"vmstat"}, "processes": {"stat", "processes"}, "system": {"stat", "time"},
}

// scrapers sets the collectors of the probe to those of the parts. A second receiver of this kind makes that all of the usual ones.
func (o *collector) scrapers(p, v *yaml.Node, again bool) {
	var names []string
	pairs(v, func(scraper string, _, _ *yaml.Node) { names = append(names, scraperCollectors[scraper]...) })
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	own := list()
	for _, name := range slices.Compact(names) {
		own.Content = append(own.Content, str(name))
	}
	own.Content = append(own.Content, str("uname"))
	set(p, "hw", raw("true"))
	set(p, "collectors", flow(own))
	if again {
		set(p, "collectors", list())
	}
}

// scraper converts the options of a part of hostmetrics.
func (o *collector) scraper(p *yaml.Node, scraper string, options *yaml.Node, at string) {
	if len(options.Content) == 0 {
		o.take(options)
	}
	pairs(options, func(option string, k, v *yaml.Node) {
		where := at + "." + option
		switch scraper + "." + option {
		case "filesystem.exclude_fs_types":
			o.exclude(p, v, "fs_types", where, "fs_types_exclude")
		case "filesystem.exclude_mount_points":
			o.exclude(p, v, "mount_points", where, "mount_points_exclude")
		case "filesystem.include_virtual_filesystems":
			if v.Value == "true" {
				set(p, "fs_types_exclude", str(orDefault(text(p, "fs_types_exclude"), "^$")))
			}
			o.take(v)
		case "disk.exclude":
			o.exclude(p, v, "devices", where, "diskstats_exclude")
		case "network.exclude":
			o.exclude(p, v, "interfaces", where, "netdev_exclude", "netclass_exclude")
		default:
			o.note(k, where, "%s", whyOTel(option))
		}
	})
	// The receiver excludes virtual file systems by default, and so do the probe's own patterns.
	if virtual := get(options, "include_virtual_filesystems"); scraper == "filesystem" && (virtual == nil || virtual.Value != "true") {
		for key, usual := range map[string]string{"fs_types_exclude": host.FSTypesExclude, "mount_points_exclude": host.MountPointsExclude} {
			if own := text(p, key); own != "" && own != "^$" {
				set(p, key, str(own+"|"+usual))
			}
		}
	}
}

// exclude converts a list of names or patterns into a pattern for keys of the probe.
func (o *collector) exclude(p, v *yaml.Node, list, where string, keys ...string) {
	kind := o.text(v, "match_type")
	o.matchType(v, where)
	var all []string
	for _, name := range items(get(v, list)) {
		if kind == "regexp" {
			all = append(all, name.Value)
			continue
		}
		all = append(all, "^"+regexp.QuoteMeta(name.Value)+"$")
	}
	o.take(get(v, list))
	for _, key := range keys {
		if len(all) > 0 {
			set(p, key, str(strings.Join(all, "|")))
		}
	}
}

// translation converts a setting of an exporter that says how OTLP becomes series; the agent has it in the receiver.
func (o *collector) translation(key string, k, v *yaml.Node, where string) {
	on := v.Value
	if v.Kind == yaml.MappingNode {
		on = o.text(v, "enabled")
	}
	switch {
	case get(o.out, "receivers", "otlp") == nil:
		o.note(k, where, "concerns data of an otlp receiver, and no pipeline of metrics has one")
		return
	case key == "resource_to_telemetry_conversion" && on == "true":
		o.promoted = append(o.promoted, where)
		set(get(o.out, "receivers", "otlp"), "promote_all_resource_attributes", raw("true"))
	case key == "resource_to_telemetry_conversion":
		o.kept = append(o.kept, where)
	case key == "add_metric_suffixes" && on == "false":
		set(get(o.out, "receivers", "otlp"), "translation_strategy", str("UnderscoreEscapingWithoutSuffixes"))
	case key == "translation_strategy" && on != "":
		set(get(o.out, "receivers", "otlp"), "translation_strategy", str(on))
	}
	o.take(v)
}

// promote notes exporters that had different labels from the attributes of resources.
func (o *collector) promote() {
	if len(o.promoted) > 0 && len(o.kept) > 0 {
		o.remark(nil, o.kept[0], "every target gets the attributes of resources as labels here, because %s asks for it", o.promoted[0])
	}
}
