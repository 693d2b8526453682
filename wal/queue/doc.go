// Package queue is the state of one target's queue in the log, and the decisions about it: which samples have a final outcome
// ([Savepoint], [Ledger]), how many bytes of the log are pending, and how targets are named. [Stored] is the content of the
// target's record in the files of savepoints.
//
// The package does no I/O and has no locks; wal keeps the state of each target durable.
package queue
