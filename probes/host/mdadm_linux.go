package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/procfs"

	"hwsagent/probes"
)

// mdadm reads software RAID: /proc/mdstat, and sysfs for degraded arrays.
type mdadm struct {
	proc, sys string

	state, disks, required, blocks, synced, raidDisks, degraded *probes.Family
}

// mdStates are the values of the label state, by what procfs calls them.
var mdStates = [...]struct{ label, activity string }{
	{"active", "active"}, {"check", "checking"}, {"inactive", "inactive"}, {"recovering", "recovering"}, {"resync", "resyncing"},
}

func newMdadm(e *environment) reader {
	return &mdadm{
		proc:      e.ProcPath,
		sys:       e.sys("block"),
		state:     gauge("node_md_state", "1 for the array's state, 0 for the others."),
		disks:     gauge("node_md_disks", "Disks of the array, by state."),
		required:  gauge("node_md_disks_required", "How many active disks the array needs to be complete."),
		blocks:    gauge("node_md_blocks", "Blocks of the array."),
		synced:    gauge("node_md_blocks_synced", "Blocks of the array that are in sync."),
		raidDisks: gauge("node_md_raid_disks", "How many disks the array is made for."),
		degraded:  gauge("node_md_degraded", "How many disks the array lacks."),
	}
}

func (m *mdadm) read(_ context.Context, r *probes.Round) error {
	fs, err := procfs.NewFS(m.proc)
	if err != nil {
		return fmt.Errorf("open procfs: %w", err)
	}
	arrays, err := fs.MDStat()
	if err != nil {
		return optional(err)
	}
	for _, a := range arrays {
		device := []string{"device", a.Name}
		for _, s := range mdStates {
			r.Add(m.state, boolean(a.ActivityState == s.activity), "device", a.Name, "state", s.label)
		}
		r.Add(m.disks, float64(a.DisksActive), "device", a.Name, "state", "active")
		r.Add(m.disks, float64(a.DisksFailed), "device", a.Name, "state", "failed")
		r.Add(m.disks, float64(a.DisksSpare), "device", a.Name, "state", "spare")
		r.Add(m.required, float64(a.DisksTotal), device...)
		r.Add(m.blocks, float64(a.BlocksTotal), device...)
		r.Add(m.synced, float64(a.BlocksSynced), device...)
	}
	found := len(arrays) > 0
	names, err := list(m.sys)
	if err != nil && !found {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "md") {
			continue
		}
		dir := m.sys + "/" + name + "/md"
		level, err := attribute(dir + "/level")
		if err != nil {
			continue
		}
		found = true
		switch level {
		case "", "container", "imsm", "ddf": // they hold arrays, not disks
		default:
			// During a reshape it reads "11 (10)".
			now, _, _ := strings.Cut(text(dir+"/raid_disks"), " ")
			if v, ok := numeral(now); ok {
				r.Add(m.raidDisks, v, "device", name)
			}
		}
		missing, _ := number(dir + "/degraded") // levels without redundancy have none
		r.Add(m.degraded, missing, "device", name)
	}
	if !found {
		return errAbsent
	}
	return nil
}
