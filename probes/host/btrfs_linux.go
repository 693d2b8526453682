package host

import (
	"fmt"
	"strings"

	"github.com/prometheus/procfs/btrfs"
)

// newBtrfs reads mounted btrfs file systems: /sys/fs/btrfs/UUID, and devices through a mount point by ioctl. If no
// mount point of a file system can be opened, its devices only have name and size, as in node_exporter.
func newBtrfs(e *environment) reader { return newBtrfsAsking(e, ioctl) }

func newBtrfsAsking(e *environment, ask btrfsAsk) reader {
	root := strings.TrimRight(e.RootFSPath, "/")
	info := gauge("node_btrfs_info", "Always 1; the labels describe the file system.")
	size := gauge("node_btrfs_device_size_bytes", "Size of a device of the file system.")
	unused := gauge("node_btrfs_device_unused_bytes", "Space of a device that is allocated to nothing.")
	failures := counter("node_btrfs_device_errors_total", "Errors of a device, by kind; they are kept over restarts until they are reset.")
	reserve := gauge("node_btrfs_global_rsv_size_bytes", "Size of the global reserve.")
	commits := counter("node_btrfs_commits_total", "Commits.")
	last := gauge("node_btrfs_last_commit_seconds", "How long the last commit took.")
	longest := gauge("node_btrfs_max_commit_seconds", "How long the longest commit took.")
	spent := counter("node_btrfs_commit_seconds_total", "Time that all commits took.")
	reserved := gauge("node_btrfs_reserved_bytes", "Space that is reserved for a kind of block group.")
	used := gauge("node_btrfs_used_bytes", "Space in use, by kind of block group and profile.")
	total := gauge("node_btrfs_size_bytes", "Space that is allocated, by kind of block group and profile.")
	ratio := gauge("node_btrfs_allocation_ratio", "Bytes on disks for a byte of data, by kind of block group and profile.")
	const milliseconds = 1e3
	return newOnce(e, func() (samples, error) {
		fs, err := btrfs.NewFS(e.SysPath)
		if err != nil {
			return nil, fmt.Errorf("open sysfs: %w", err)
		}
		all, err := fs.Stats()
		if err != nil {
			return nil, fmt.Errorf("read statistics of btrfs: %w", err)
		}
		if len(all) == 0 {
			return nil, errAbsent
		}
		mounts, err := readMounts(&file{path: e.proc("1/mountinfo")}, &file{path: e.proc("self/mountinfo")})
		if err != nil {
			return nil, err
		}
		asked := btrfsMounted(mounts, root, ask)
		var s samples
		for _, f := range all {
			s.add(info, 1, "uuid", f.UUID, "label", strings.ToValidUTF8(f.Label, "\uFFFD")) // may be any bytes except 0
			s.add(reserve, float64(f.Allocation.GlobalRsvSize), "uuid", f.UUID)
			s.add(commits, float64(f.CommitStats.Commits), "uuid", f.UUID)
			s.add(last, float64(f.CommitStats.LastCommitMs)/milliseconds, "uuid", f.UUID)
			s.add(longest, float64(f.CommitStats.MaxCommitMs)/milliseconds, "uuid", f.UUID)
			s.add(spent, float64(f.CommitStats.TotalCommitMs)/milliseconds, "uuid", f.UUID)
			devices, answered := asked[strings.ReplaceAll(f.UUID, "-", "")]
			for _, d := range devices {
				labels := []string{"uuid", f.UUID, "device", d.name, "btrfs_dev_uuid", d.uuid}
				s.add(size, float64(d.size), labels...)
				s.add(unused, float64(d.size)-float64(d.inUse), labels...)
				for i, n := range d.errors {
					s.add(failures, float64(n), append([]string{"type", btrfsErrors[i]}, labels...)...)
				}
			}
			for name, d := range f.Devices {
				if !answered {
					s.add(size, float64(d.Size), "uuid", f.UUID, "device", name)
				}
			}
			for _, g := range []struct {
				kind string
				is   *btrfs.AllocationStats
			}{{"data", f.Allocation.Data}, {"metadata", f.Allocation.Metadata}, {"system", f.Allocation.System}} {
				if g.is == nil {
					continue
				}
				s.add(reserved, float64(g.is.ReservedBytes), "uuid", f.UUID, "block_group_type", g.kind)
				for profile, l := range g.is.Layouts {
					labels := []string{"uuid", f.UUID, "block_group_type", g.kind, "mode", profile}
					s.add(used, float64(l.UsedBytes), labels...)
					s.add(total, float64(l.TotalBytes), labels...)
					s.add(ratio, l.Ratio, labels...)
				}
			}
		}
		return s, nil
	})
}
