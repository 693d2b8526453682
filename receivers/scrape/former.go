package scrape

import (
	"maps"
	"reflect"
	"slices"

	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// A job whose sources are changed by a reload keeps the targets of the former ones until the new ones have answered:
// otherwise a job would lose all its targets for as long as the server of its list is down, because its URL or
// its refresh_interval was changed.

// kindOf is one kind of sources of a job, as of file_sd_configs.
type kindOf struct {
	job  string
	kind reflect.Type // of list.settings
}

// former are the groups of sources that a job no longer has, until all of by have answered. The new sources are of the
// same kind: nothing keeps a target that was removed from static_configs, or a kind that was removed.
type former struct {
	groups []*targetgroup.Group
	by     []*list
}

// formers returns the groups to keep after a change of the sources. had are the jobs of each source before it. The
// caller holds mu.
func (d *discovery) formers(had map[*list][]string) map[kindOf]former {
	all := map[kindOf]former{}
	for _, l := range d.lists {
		for _, job := range l.jobs {
			at := kindOf{job, reflect.TypeOf(l.settings)}
			before := d.former[at]
			if l.answered || slices.Contains(had[l], job) && !slices.Contains(before.by, l) {
				continue // one that has never answered replaces nothing
			}
			f := all[at]
			if f.by == nil {
				f.groups = before.groups
			}
			f.by = append(f.by, l)
			all[at] = f
		}
	}
	for l, jobs := range had {
		for _, job := range jobs {
			at := kindOf{job, reflect.TypeOf(l.settings)}
			if f, ok := all[at]; ok && !slices.Contains(l.jobs, job) {
				f.groups = append(slices.Clip(f.groups), l.sorted()...)
				all[at] = f
			}
		}
	}
	return all
}

// kept returns the groups of former sources that a job still has, and forgets the others. The caller holds mu.
func (d *discovery) kept(job string) (groups []*targetgroup.Group) {
	for at, f := range d.former {
		switch {
		case at.job != job:
		case slices.ContainsFunc(f.by, func(l *list) bool { return !l.answered }):
			groups = append(groups, f.groups...)
		default:
			delete(d.former, at)
		}
	}
	return groups
}

// answers records that a source has answered, also if it has no targets.
func (d *discovery) answers(l *list) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !l.answered {
		l.answered = true
		signal(d.changed)
	}
}

// sorted returns the groups in the order of their sources.
func (l *list) sorted() (groups []*targetgroup.Group) {
	for _, source := range slices.Sorted(maps.Keys(l.groups)) {
		groups = append(groups, l.groups[source])
	}
	return groups
}
