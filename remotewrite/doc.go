// Package remotewrite delivers the log to Prometheus remote-write targets.
//
// There is one [Queue] per target; a queue does not depend on others. Data flows one way:
//
//	Source.Next ──> relabel ──> shard by hash of the final labels ──> batch ──> Sender.Send
//	Source.Advance <── progress <────────── outcome of every sample ──────────────┘
//
// A sample leaves a queue by exactly one final outcome (see [wal.Outcome]), and the
// savepoint moves only over samples that have one. All decisions are pure code
// ([progress.Tracker], [client.Classify], backoff, batching, and package split for refused requests); I/O is thin.
package remotewrite
