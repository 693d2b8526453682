// Package remotewrite delivers the log to Prometheus remote-write targets.
//
// There is one [Queue] per target and it shares nothing with the others. Data goes
// one way:
//
//	Source.Next ──> relabel ──> shard by hash of the final labels ──> batch ──> Sender.Send
//	Source.Advance <── progress <────────── outcome of every sample ──────────────┘
//
// A sample leaves a queue by exactly one final outcome (see [wal.Outcome]), and the
// savepoint moves only over samples that have one. Everything that decides is pure
// ([progress.Tracker], [client.Classify], backoff, batching, and what becomes of a refused request: package split); I/O is thin.
package remotewrite
