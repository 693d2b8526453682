// Package remotewrite delivers the log to Prometheus remote-write targets.
//
// Each target has one [Queue], which does not depend on the others. Data flows one way:
//
//	Source.Next ──> relabel ──> shard by hash of the final labels ──> batch ──> Sender.Send
//	Source.Advance <── progress <────────── outcome of every sample ──────────────┘
//
// A sample leaves a queue with exactly one final outcome (see [queue.Outcome]), and the savepoint moves only over samples
// that have one. All decisions are pure code ([progress.Tracker], [client.Judge], package gate, and package
// split for refused requests); I/O is thin.
package remotewrite
