package host

import (
	"fmt"

	"github.com/prometheus/procfs/xfs"

	"hwsagent/probes"
)

// xfsCounter is one of the kernel's counters for an XFS file system.
type xfsCounter struct {
	*probes.Family
	of func(*xfs.Stats) uint32
}

// newXFS reads the statistics of mounted XFS file systems (/sys/fs/xfs/*/stats/stats).
func newXFS(e *environment) reader {
	counters := xfsCounters()
	return newOnce(e, func() (samples, error) {
		fs, err := xfs.NewFS(e.ProcPath, e.SysPath)
		if err != nil {
			return nil, fmt.Errorf("open procfs and sysfs: %w", err)
		}
		all, err := fs.SysStats()
		if err != nil {
			return nil, fmt.Errorf("read statistics of XFS: %w", err)
		}
		if len(all) == 0 {
			return nil, errAbsent
		}
		var s samples
		for _, stats := range all {
			for _, c := range counters {
				s.add(c.Family, float64(c.of(stats)), "device", stats.Name)
			}
		}
		return s, nil
	})
}

// xfsCounters returns the counters that node_exporter reports.
func xfsCounters() (all []xfsCounter) {
	add := func(name, help string, of func(*xfs.Stats) uint32) {
		all = append(all, xfsCounter{counter("node_xfs_"+name, help), of})
	}
	add("extent_allocation_extents_allocated_total", "Extents allocated.", func(s *xfs.Stats) uint32 { return s.ExtentAllocation.ExtentsAllocated })
	add("extent_allocation_blocks_allocated_total", "Blocks allocated.", func(s *xfs.Stats) uint32 { return s.ExtentAllocation.BlocksAllocated })
	add("extent_allocation_extents_freed_total", "Extents freed.", func(s *xfs.Stats) uint32 { return s.ExtentAllocation.ExtentsFreed })
	add("extent_allocation_blocks_freed_total", "Blocks freed.", func(s *xfs.Stats) uint32 { return s.ExtentAllocation.BlocksFreed })
	add("allocation_btree_lookups_total", "Lookups in the trees of free space.", func(s *xfs.Stats) uint32 { return s.AllocationBTree.Lookups })
	add("allocation_btree_compares_total", "Comparisons in the trees of free space.", func(s *xfs.Stats) uint32 { return s.AllocationBTree.Compares })
	add("allocation_btree_records_inserted_total", "Records inserted into the trees of free space.", func(s *xfs.Stats) uint32 { return s.AllocationBTree.RecordsInserted })
	add("allocation_btree_records_deleted_total", "Records deleted from the trees of free space.", func(s *xfs.Stats) uint32 { return s.AllocationBTree.RecordsDeleted })
	add("block_mapping_reads_total", "Block maps looked at for reads.", func(s *xfs.Stats) uint32 { return s.BlockMapping.Reads })
	add("block_mapping_writes_total", "Block maps looked at for writes.", func(s *xfs.Stats) uint32 { return s.BlockMapping.Writes })
	add("block_mapping_unmaps_total", "Blocks unmapped.", func(s *xfs.Stats) uint32 { return s.BlockMapping.Unmaps })
	add("block_mapping_extent_list_insertions_total", "Insertions into lists of extents.", func(s *xfs.Stats) uint32 { return s.BlockMapping.ExtentListInsertions })
	add("block_mapping_extent_list_deletions_total", "Deletions from lists of extents.", func(s *xfs.Stats) uint32 { return s.BlockMapping.ExtentListDeletions })
	add("block_mapping_extent_list_lookups_total", "Lookups in lists of extents.", func(s *xfs.Stats) uint32 { return s.BlockMapping.ExtentListLookups })
	add("block_mapping_extent_list_compares_total", "Comparisons in lists of extents.", func(s *xfs.Stats) uint32 { return s.BlockMapping.ExtentListCompares })
	add("block_map_btree_lookups_total", "Lookups in trees of block maps.", func(s *xfs.Stats) uint32 { return s.BlockMapBTree.Lookups })
	add("block_map_btree_compares_total", "Comparisons in trees of block maps.", func(s *xfs.Stats) uint32 { return s.BlockMapBTree.Compares })
	add("block_map_btree_records_inserted_total", "Records inserted into trees of block maps.", func(s *xfs.Stats) uint32 { return s.BlockMapBTree.RecordsInserted })
	add("block_map_btree_records_deleted_total", "Records deleted from trees of block maps.", func(s *xfs.Stats) uint32 { return s.BlockMapBTree.RecordsDeleted })
	add("directory_operation_lookup_total", "File names looked up that the cache of names had not.", func(s *xfs.Stats) uint32 { return s.DirectoryOperation.Lookups })
	add("directory_operation_create_total", "Directory entries created.", func(s *xfs.Stats) uint32 { return s.DirectoryOperation.Creates })
	add("directory_operation_remove_total", "Directory entries removed.", func(s *xfs.Stats) uint32 { return s.DirectoryOperation.Removes })
	add("directory_operation_getdents_total", "Listings of directories.", func(s *xfs.Stats) uint32 { return s.DirectoryOperation.Getdents })
	add("inode_operation_attempts_total", "Inodes looked for in the cache.", func(s *xfs.Stats) uint32 { return s.InodeOperation.Attempts })
	add("inode_operation_found_total", "Inodes found in the cache.", func(s *xfs.Stats) uint32 { return s.InodeOperation.Found })
	add("inode_operation_recycled_total", "Inodes found in the cache while they were being recycled.", func(s *xfs.Stats) uint32 { return s.InodeOperation.Recycle })
	add("inode_operation_missed_total", "Inodes that the cache had not.", func(s *xfs.Stats) uint32 { return s.InodeOperation.Missed })
	add("inode_operation_duplicates_total", "Inodes that came into the cache by another way meanwhile.", func(s *xfs.Stats) uint32 { return s.InodeOperation.Duplicate })
	add("inode_operation_reclaims_total", "Inodes taken out of the cache.", func(s *xfs.Stats) uint32 { return s.InodeOperation.Reclaims })
	add("inode_operation_attribute_changes_total", "Changes of attributes of inodes.", func(s *xfs.Stats) uint32 { return s.InodeOperation.AttributeChange })
	add("read_calls_total", "Reads of files.", func(s *xfs.Stats) uint32 { return s.ReadWrite.Read })
	add("write_calls_total", "Writes of files.", func(s *xfs.Stats) uint32 { return s.ReadWrite.Write })
	add("vnode_active_total", "Vnodes that are not on a list of free ones.", func(s *xfs.Stats) uint32 { return s.Vnode.Active })
	add("vnode_allocate_total", "Vnodes allocated.", func(s *xfs.Stats) uint32 { return s.Vnode.Allocate })
	add("vnode_get_total", "Vnodes got.", func(s *xfs.Stats) uint32 { return s.Vnode.Get })
	add("vnode_hold_total", "Vnodes held.", func(s *xfs.Stats) uint32 { return s.Vnode.Hold })
	add("vnode_release_total", "Vnodes released.", func(s *xfs.Stats) uint32 { return s.Vnode.Release })
	add("vnode_reclaim_total", "Vnodes reclaimed.", func(s *xfs.Stats) uint32 { return s.Vnode.Reclaim })
	add("vnode_remove_total", "Vnodes removed.", func(s *xfs.Stats) uint32 { return s.Vnode.Remove })
	return all
}
