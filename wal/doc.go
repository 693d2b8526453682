// Package wal is the durable log between inputs and remote-write targets.
//
// Every sample is committed here before anything else happens to it, and every target reads
// the log through a cursor of its own. The files are pages and records in the format of
// Prometheus' tsdb/wlog with the encodings of tsdb/record, so Prometheus' own readers open
// them. The writer and the reader are this package's: the one of Prometheus acknowledges
// before an fsync, and the other stops at the first damage.
//
// # The promise
//
// A sample is acknowledged when [storage.AppenderTransaction.Commit] returns nil.
//
//   - A process kill at any moment loses no acknowledged sample.
//   - A power cut loses no acknowledged sample under `sync: always`. Under `sync: 1s` it loses
//     at most what was acknowledged in the last 1.5 seconds, and what a target may have had of
//     that is counted.
//   - A full disk, a read-only remount or an I/O error fails the Commit that meets it and
//     nothing else; the log works again by itself when writes succeed again.
//   - A damaged page costs the commits that touch it, and in the same segment what refers to
//     series announced there; the loss is counted, and nothing after it is lost.
//   - The disk budget is never exceeded for long; what drop_oldest removes is written to each
//     target's ledger before the file is removed.
//
// # Files
//
//	storage.path/
//	  lock           held by the process that owns the directory; its process ID
//	  wal/00000000   segments: numbers ascend and may have gaps
//	  wal/00000001
//	  savepoints/    how far each target is, and its account
//
// # Bytes of a segment
//
// A segment is a row of pages of 32 KiB, a page a row of fragments, a record one fragment or
// several, as in tsdb/wlog (numbers are big-endian):
//
//	page      | fragment | fragment | ... | zeros, where no fragment header fits |
//	fragment  | type and flags: 1 byte | length: 2 | checksum: 4 | payload: length |
//
//	type      low 3 bits: 1 whole record, 2 first, 3 middle, 4 last fragment; 0: zeros follow
//	flags     0x08: the record is compressed with snappy
//	checksum  CRC-32C of the payload
//
// Records are those of tsdb/record, and three of this package (uvarint and varint as in
// encoding/binary; header and commit are never compressed):
//
//	0xC8 header   version 1 byte | log ID 16 | segment ID 16 | number uvarint | created varint, ms |
//	              commit uvarint | total uvarint | found uvarint | previous ID 16 | previous end varint |
//	              relogged uvarint | durable commit uvarint | durable total uvarint
//	0xC9 commit   number uvarint | records uvarint | checksum 4 | samples uvarint | total uvarint |
//	              oldest varint, ms | newest varint, ms
//	0xCA family   (reference uvarint | length uvarint | name of the metric family)...
//
// The checksum of a commit is the CRC-32C of its records' uncompressed bytes, of the number of the
// segment (8 bytes) and of the offset at which the commit record begins (8 bytes). So a page
// that stands in another place, or in another segment, confirms nothing: it is damage.
//
// The order of records in a segment (see [Header] for what its fields mean):
//
//	header  commit  commit  commit ...
//	        |
//	        series* metadata* family* samples* histograms* exemplars* 0xC9
//
// A segment is self-contained: it announces a series, with its metadata, before the first use
// of that series in it. So damage stays in one segment, making room is removing the oldest
// file, and there is no checkpoint and no replay at the start. No commit spans two segments.
//
// # Savepoints
//
// A savepoint says how far a target is, how far sending may have gone, and what became of
// every sample: the ledger. They live beside the log and not in it: they change all the time,
// and must not keep segments from being removed. They stand in two files of checksummed
// records. A file begins with a snapshot of all targets; records are appended, and when there
// are many, a snapshot is written to the other file:
//
//	records.0  | snapshot 7: log, a, b, c | log | b | a | b | drop c | (older records, or zeros)
//	records.1  | snapshot 6: log, a, b, c | log | a | a | ...
//
// Of each target the record with the greatest sequence number counts; a target that the newest
// complete snapshot does not name has ended. A record is one cell of 512 bytes, or several:
//
//	 0 identity  magic "hw", version, kind, generation, sequence number, hash of the name,
//	             checksum (32 bytes)
//	32           part, parts, length of the payload, count, checksum of the cell (12 bytes)
//	44           payload (up to 436 bytes)
//	480 identity, once more
//
// A record counts as soon as it is written: a kill leaves it. It is synced with the next
// reservation, at most a second later, and nothing rests on it before. How much of the log is
// durable is written with such a record, or alone within two seconds. This assumes that the
// disk writes a sector of 512 bytes whole or not at all, and that writing one leaves its
// neighbours as they were.
//
// So under `sync: 1s` there are two fsyncs a second, one of the log and one of all savepoints,
// however many targets there are and whether they are up or not; a snapshot takes the place of
// one. Each reservation is one more, and those made at once share it. The end of a segment is
// two more: its own last one, and that of the directory for the next segment.
//
// # Data flow
//
//	Appender.Commit ──> writer ──> segment files ──> cursor ──> Lane.Next ──> (remotewrite)
//	                                                 savepoint <── Lane.Advance <── outcomes
//
// # Invariants
//
// Those of one value stand beside it. These bind several parts of the package:
//
//	 1  Nothing beyond the published head can be read. A commit is published after its write,
//	    under `sync: always` after its fsync. (index)
//	 2  durable.Commit <= written.Commit <= number given out last. (writer)
//	 3  A file that had an error is never written again. What was published of it and is not
//	    durable is logged again under its old numbers in the next segment. (recover.go)
//	 4  Segments become durable in their order. At most two wait for it: the active one and the
//	    one before. (roll.go)
//	 5  A commit number never stands for two different commits that anybody could have read.
//	    Totals ascend with numbers. ([Mark])
//	 6  Between two entries that a cursor yields, the totals differ by the samples of the second
//	    and by those that it counts as missing. ([Entry])
//	 7  Before anything is sent, a durable savepoint says how far sending may have gone; only
//	    after two seconds in which the disk refused that does sending go on without. ([Savepoint])
//	 8  What the budget takes from a target is in that target's durable ledger before the file
//	    is removed. (budget)
//	 9  A segment is kept while it is not older than the segment of any target's durable position,
//	    the budget permitting. (targets.lowest)
//	10  A series reference stands for one label set per process, and for one per segment.
//	    (seriesMap, seriesTable)
//	11  The bytes of one commit are written by one WriteAt, directly behind the commit before.
//	    A torn write leaves no valid commit record, or none whose checksum fits.
//	12  The header of a segment names the last commit before it, and a reader that finds the
//	    same number in two segments takes either, once. The smallest such number of all later
//	    headers says from which commit on a later segment has them once more. (segment.Info)
//	13  A commit that no reader would accept is not written: encoder and reader share their
//	    bounds (segment.MaxCommit, segment.MaxRecord).
//	14  A commit is valid in one place only, so those of a segment ascend in number, and nothing
//	    that was moved or copied is delivered. (segment.AppendPlace)
//
// # Crash safety, operation by operation
//
// "Cut" is a power cut: of what no fsync has confirmed, each sector may be old, new or zero,
// and directory entries may be there or not. A kill takes nothing that was written.
//
//	operation    on the disk, in order                   why a kill or cut at any point is harmless
//	append       WriteAt behind the last commit          without a valid commit record nothing of it
//	                                                     counts; Commit has not returned
//	group commit fsync for all that is written by then   a commit that is not covered stays
//	                                                     retained; its caller waits for the next fsync
//	end of a     fsync in the background, while the      the order of fsyncs is that of segments;
//	segment      next segment is begun                   if the end of the first is lost, the header of
//	                                                     the second says that it was not durable, and
//	                                                     the samples count as lost
//	begin        create, WriteAt of header and first     the entry becomes durable with the first
//	             commit; fsync of file and directory     fsync, before anything in it counts as
//	             with the first group commit             durable; a torn beginning is overwritten
//	failed write truncate to the published end, close;   if the truncation is lost, the next header
//	             next segment: header, what is not       (PrevID, PrevEnd) disowns the rest. If the
//	             durable, the new commit; fsync, then    next segment is torn, the one before still
//	             publish                                 has all: a start removes the torn one, which
//	                                                     it knows by the header's Relogged
//	failed fsync the same; the file is never synced      the data come from memory: the kernel may
//	             again                                   have marked lost pages clean. Killed before
//	                                                     the next segment has them, they can be read
//	                                                     until a cut: the next start writes them again
//	full disk    no next segment can be begun: fsync of  what was acknowledged before does not wait
//	             the abandoned files, oldest first       for space
//	remove       unlink, no fsync of the directory       a file that comes back is skipped, since
//	                                                     its commits have numbers that targets have. A
//	                                                     new target gets what has come back
//	start        read headers and the newest segments;   it changes nothing that it could not read to
//	             write what savepoints do not say is     its end; killed, the next start does the same.
//	             durable once more, in its place;        The bytes are the same, so no sector changes
//	             fsync of those; an empty commit if a    that is durable. Until that commit is durable,
//	             power cut took samples                  headers do not say that what a cut took is
//	savepoint    WriteAt behind the last record; fsync  each cell has a sector to itself: no write touches
//	             each second, and with a reservation    what is durable. Torn, it does not count
//	snapshot of  (a longer file: zeros, fsync;) write   the other file has everything, and is not written
//	savepoints   and fsync of the file that is not      meanwhile but behind what is durable. A snapshot
//	             active; from then on it is             with missing cells does not count
//	rename or    one record of both names; fsync        there or not; the snapshot that follows does not
//	drop                                                name the target that has ended
//	make the     mkdir, fsync of the parent              nothing is acknowledged before the parents
//	directory                                            of every new directory are synced
//
// # What is assumed of the disk and the system
//
//   - Powersafe overwrite: writing into a sector does not harm what an fsync has confirmed in
//     it before, even if the power fails. A commit is appended in the middle of a sector, whose
//     beginning holds the end of an older one. SQLite and raft-wal assume the same.
//   - An fsync that returns nil has reached the medium: no drive cache lies.
//   - fdatasync, which stands for fsync on Linux, makes contents and size durable as fsync
//     does; it may leave out the time of the last change.
//   - After a failed fsync nothing is assumed of the file's dirty pages, not even that a later
//     fsync would fail, too.
//   - An fsync of a file does not make its directory entry durable; an fsync of the directory
//     does. Windows cannot sync a directory. There the log rests on NTFS' journal, which writes
//     down that a file was made no later than an fsync of that file. It never renames a file.
//   - Removals become durable in their order, or not at all.
//   - A page may be unreadable for a moment or for good, at the start or while the agent runs;
//     what was read once may change. Checksums are not forged: who can write into the directory
//     is trusted, so Open refuses one that others may write to.
//   - The lock of a file ends with its process. No network file system is assumed to keep that.
//
// # Lock order
//
// A goroutine that holds one of these may take those further right only:
//
//	Lane.nextMu > writer.mu > budget.mu > targets.mu > savefile.Store.mu > targets.stateMu > target.mu
//	leaves, taken last and held for no other: seriesMap.mu, index.mu, budget.configMu,
//	pendingTimes.mu, and the registry of metrics
//
// A mutex stands in its type above the fields that it guards. A method whose name ends in Locked is
// called with the mutex of its type held (those of batch: seriesMap.mu); for writer, see there.
//
// index.mu, target.mu and the leaves are never held while waiting for the disk, so the status
// page, cursors at the head and Reconfigure do not wait for it. writer.mu is held over WriteAt,
// and over the fsync that ends an error, and is released during all others: writer.syncing says
// that one runs, and writer.cond that it has ended.
//
// # Goroutines
//
// writer.run syncs, each interval and when a segment has ended; Log.keep does the housekeeping
// each second. Callers of Commit write, and under `sync: always` one of them syncs for all. Each
// lane has one caller of Next. There are no others.
package wal
