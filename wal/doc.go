// Package wal is the durable log between inputs and remote-write targets.
//
// Inputs commit every sample to the log first. Each target then reads the log through its own
// cursor. Segments use the page and record format of Prometheus' tsdb/wlog and the encodings of
// tsdb/record, so Prometheus' readers can open them. This package has its own writer and reader
// because Prometheus' writer acknowledges before an fsync and its reader stops at the first
// damage.
//
// # The promise
//
// A sample is acknowledged when [storage.AppenderTransaction.Commit] returns nil.
//
//   - A process kill at any moment loses no acknowledged sample.
//   - A power cut loses no acknowledged sample under `sync: always`. Under `sync: 1s` it loses
//     at most the samples acknowledged in the last 1.5 seconds; those that a target may have
//     received are counted.
//   - A full disk, a read-only remount or an I/O error fails only the Commit that meets it. The
//     log recovers by itself when writes succeed again.
//   - A damaged page loses the commits that touch it, and later samples in the same segment whose
//     series those commits announced. The loss is counted; later commits are still delivered.
//   - The disk budget is exceeded only briefly. Before drop_oldest removes a segment, its
//     undelivered samples are recorded in the ledger of each target.
//
// # Files
//
//	storage.path/
//	  lock           held by the process that owns the directory; its process ID
//	  wal/00000000   segments: numbers ascend and may have gaps
//	  wal/00000001
//	  savepoints/    the progress and the ledger of each target
//
// # Bytes of a segment
//
// A segment is a sequence of 32 KiB pages, a page is a sequence of fragments, and a record is one
// or more fragments, as in tsdb/wlog (numbers are big-endian):
//
//	page      | fragment | fragment | ... | zeros, where no fragment header fits |
//	fragment  | type and flags: 1 byte | length: 2 | checksum: 4 | payload: length |
//
//	type      low 3 bits: 1 whole record, 2 first, 3 middle, 4 last fragment; 0: zeros follow
//	flags     0x08: the record is compressed with snappy
//	checksum  CRC-32C of the payload
//
// Records are those of tsdb/record plus four of this package (uvarint and varint as in
// encoding/binary; header and commit are never compressed):
//
//	0xC8 header   version 1 byte | log ID 16 | segment ID 16 | number uvarint | created varint, ms |
//	              commit uvarint | total uvarint | found uvarint | previous ID 16 | previous end varint |
//	              durable commit uvarint | durable total uvarint
//	0xC9 commit   number uvarint | records uvarint | checksum 4 | samples uvarint | total uvarint |
//	              oldest varint, ms | newest varint, ms
//	0xCA family   (reference uvarint | length uvarint | name of the metric family)...
//	0xCB ended    (reference varint, as the difference to the one before)...
//
// The checksum of a commit is the CRC-32C of its records' uncompressed bytes, the segment number
// (8 bytes) and the offset at which the commit record begins (8 bytes). A page that was moved to
// another offset or segment therefore fails the checksum and counts as damage.
//
// The order of records in a segment (the fields of the header: segment.Header):
//
//	header  commit  commit  commit ...
//	        |
//	        ended* series* metadata* family* samples* histograms* exemplars* 0xC9
//
// After an ended record no commit of the segment has a sample of its references, unless it announces them again.
// Readers therefore release these series. A reader that does not know the record, or has lost it to damage, only keeps
// them for longer.
//
// A segment is self-contained: it announces each series, with its metadata, before the first
// sample of that series. Damage therefore stays within one segment, making room means removing
// the oldest file, and a start needs no checkpoint and no replay. No commit spans two segments.
//
// # Savepoints
//
// A savepoint records how far a target has got, how far it may have sent, and the outcome of
// every sample (the ledger). Package queue has these values and the decisions about them. Savepoints have their own files because they
// change constantly and must not prevent the removal of segments. There are two files of checksummed slots, used in turn and
// filled with zeros beforehand. Each begins with the state of all targets, to which records are appended. When half of it is used,
// or after a failed write, the state goes to the other file, which is used then:
//
//	records.0  | state since 71: log, a, b, c | log | b | a | b | drop c | (older records, or zeros)
//	records.1  | state since 23: log, a, b, c | log | a | a | ...
//
// Sequence numbers ascend over both files. For each target the newest good record counts, in whatever file it is; records from before
// the newest whole state do not, so that a target that it does not name has ended. A record is one or more slots of 512 bytes, one for
// a target without a backlog of live_first:
//
//	 0  magic "hw", version, kind (12 bytes with the sequence number)
//	12  since: the sequence number with which the state of the file begins (8), slots of the state (4)
//	24  length of the payload (2), part, parts, checksum of the slot (4)
//	32  payload (up to 480 bytes)
//
// A slot with a wrong checksum may have held the newest record of any target. A start reports how many there are, and any target may
// then have sent everything up to the head of the log: it gets some samples again, and one whose record is gone gets the whole log.
//
// A record counts as soon as it is in the file, because it survives a kill. It is synced after at
// most a second; nothing relies on it before. The durable end of the log is written each second,
// and synced with the next record of a target. All this assumes that the disk writes a 512-byte
// sector completely or not at all, and that writing one sector does not change its neighbours.
//
// Under `sync: 1s` this costs at most two fsyncs a second, one of the log and one of all savepoints,
// regardless of how many targets there are and whether they are up; beginning a file replaces one of
// them. Without outcomes and reservations, savepoints need no fsync. The end of a segment adds two: the last fsync of the segment, and that of the directory for the next segment.
//
// # Data flow
//
//	Appender.Commit ──> writer ──> segment files ──> cursor ──> Lane.Next ──> (remotewrite)
//	                                                 savepoint <── Lane.Advance <── outcomes
//
// # Invariants
//
// Invariants of a single field are documented beside it. These bind several parts of the
// package:
//
//	 1  Readers never read past the published head. A commit is published after its write, or
//	    under `sync: always` after its fsync. (index)
//	 2  durable.Commit <= written.Commit <= the last commit number assigned. (writer)
//	 3  Published commits are never truncated. After a failed fsync, published commits that are
//	    not durable are written again at their places; until that is synced, commits fail. (recover.go)
//	 4  Segments become durable in order. At most two are not durable: the active segment and
//	    the one before it. (roll.go)
//	 5  A commit number never identifies two different commits that could have been read.
//	    Totals ascend with commit numbers. ([Mark])
//	 6  The totals of two consecutive entries of a cursor differ by the samples of the second
//	    entry plus those that it counts as missing. ([Entry])
//	 7  Before samples are sent, a savepoint that survives a kill records how far sending may go,
//	    unless the disk refuses to write it. ([queue.Savepoint])
//	 8  Before the budget removes a file, its undelivered samples are in the durable ledger of
//	    each target. (budget)
//	 9  The segment of each target's durable position, and all newer segments, are kept, the
//	    budget permitting. (targets.lowest)
//	10  A series reference identifies one label set per process, and one per segment.
//	    (seriesMap, seriesTable)
//	11  One WriteAt writes all bytes of a commit, directly behind the previous commit. A torn
//	    write leaves no commit record that is valid and whose checksum matches.
//	12  The header of a segment names the last commit before it. A commit is in one segment, but for
//	    those that were moved out of a file that the disk did not sync for a minute. A reader that
//	    meets a number twice takes the first.
//	13  The writer never writes a commit that readers would refuse: both use the same bounds
//	    (segment.MaxCommit, segment.MaxRecord).
//	14  A commit is valid at one offset of one segment only. So commit numbers ascend within a
//	    segment, and moved or copied commits are not delivered. (segment.AppendPlace)
//
// # Crash safety, operation by operation
//
// "Cut" is a power cut: each sector that no fsync has confirmed may be old, new or zero, and
// unsynced directory entries may exist or not. A kill loses no written data.
//
//	operation    on the disk, in order                   why a kill or cut at any point is harmless
//	append       WriteAt behind the last commit          a commit without a valid commit record does
//	                                                     not count; Commit has not returned
//	group commit fsync of all commits written so far     later commits stay retained; their callers
//	                                                     wait for the next fsync
//	end of a     fsync in the background while the       fsyncs follow the order of segments. If the
//	segment      next segment begins                     end of the old segment is lost, the next
//	                                                     header shows that it was not durable, and
//	                                                     the samples count as lost
//	begin        create, WriteAt of header and first     the first fsync makes the directory entry
//	             commit; fsync of file and directory     durable, before any commit in the file counts
//	             with the first group commit             as durable; a torn beginning is overwritten
//	failed write truncate to the end of the commit       a torn commit does not count; the next one
//	             before; the next one is written there   overwrites it. A power cut within the sync
//	                                                     interval may bring a failed commit back,
//	                                                     without those written after it
//	failed fsync cut commits whose callers wait; write   the data come from memory, because the kernel
//	             the others again from the block of the  may have dropped lost pages, or marked them
//	             durable end on; fsync; again each       clean. After a kill before that, they are
//	             interval                                readable as far as the kernel kept them, and
//	                                                     the next start writes them again
//	move, after  write all but the first bytes of a new  a start removes a file without its first
//	a minute of  segment with these commits; fsync;      bytes. With them all is durable; the old file
//	failures     write the first bytes; fsync            ends at the durable end (PrevEnd)
//	remove       unlink, no fsync of the directory       a file that reappears is skipped by targets
//	                                                     that have its commit numbers; a new target
//	                                                     reads it
//	start        read headers and the newest segments;   a file that was not read to its end is not
//	             rewrite in place all commits that the   changed; after a kill the next start repeats
//	             savepoints do not call durable; fsync;  the work. Rewritten bytes are identical, so
//	             append an empty commit if a power cut   durable sectors do not change. Until the empty
//	             lost samples                            commit is durable, headers do not count the
//	                                                     lost samples as durable
//	savepoint    WriteAt behind the last record; fsync   each slot has its own sector, so no write
//	             each second                             touches durable slots; a torn record does not
//	                                                     count
//	state of all write and fsync the inactive file       the active file is complete, and meanwhile is
//	savepoints   (zeros first if it must grow), which    written only behind its durable records. A
//	             then becomes active                     state with missing slots does not count. A
//	                                                     start first makes the active file durable in
//	                                                     place: both a state that was never synced and
//	                                                     one whose later records a cut took look the same
//	rename or    one record of both names; fsync         the record exists or it does not; the next
//	drop                                                 state omits the ended target
//	make the     mkdir, fsync of the parent              commits are acknowledged only after the
//	directory                                            parents of all new directories are synced
//
// # Assumptions about the disk and the system
//
//   - Powersafe overwrite: writing into a sector does not harm the bytes of it that an fsync has
//     confirmed, even if the power fails. A commit often begins in the middle of a sector that
//     also holds the end of the previous commit. SQLite and raft-wal assume the same.
//   - When an fsync returns nil, the data are on the medium: no drive cache lies.
//   - fdatasync, which replaces fsync on Linux, also makes contents and size durable; it may
//     omit the modification time.
//   - After a failed fsync, the state of the file's dirty pages is unknown, and they may read as they are on the disk; only an
//     fsync after they were written again proves something.
//   - An fsync of a file does not make its directory entry durable; an fsync of the directory
//     does. Windows cannot sync a directory. There the log relies on the journal of NTFS, which
//     records the creation of a file no later than an fsync of that file. The log never renames
//     files.
//   - Removals become durable in order, or not at all.
//   - A page may be unreadable temporarily or permanently, at the start or later, and may change
//     after it was read. Checksums are not forged: all users who can write to the directory are
//     trusted, so Open refuses a directory that other users may write to.
//   - The lock of a file ends with its process. Network file systems may not guarantee that.
//
// # Lock order
//
// A goroutine that holds one of these locks may take only locks further right:
//
//	Lane.nextMu > writer.mu > budget.mu > targets.mu > savefile.Store.turn > savefile.Store.mu > targets.stateMu > target.mu
//	leaves, taken last, with no other lock taken under them but symbols.mu under seriesMap.mu: seriesMap.mu,
//	symbols.mu, index.mu, budget.configMu, pendingTimes.mu, and the registry of metrics
//
// A mutex is declared above the fields that it guards. The caller of a method whose name ends in
// Locked holds the mutex of that type (for batch: seriesMap.mu). The type writer documents its
// own rule.
//
// index.mu, target.mu and the leaves are never held while waiting for the disk, so the status
// page, cursors at the head and Reconfigure do not wait for it. writer.mu is held during WriteAt
// and during the fsync of recovery, and released during all other fsyncs: writer.syncing is true
// while one runs, and writer.cond signals its end.
//
// # Goroutines
//
// writer.run syncs each interval and when a segment ends. Log.keep does the housekeeping each
// second. Callers of Commit write, and under `sync: always` one caller syncs for all. Each lane
// has one caller of Next. The package has no other goroutines.
package wal
