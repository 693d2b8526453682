// Package inputs is the way from everything that brings samples to the log.
//
// A [Path] lies over the log; each probe, scrape job and receiver has an [Input] of it, which
// is a [storage.AppendableV2] like the log itself. What holds for all inputs is done here, in
// one place: the limit of series, the finding of series that two inputs bring, the newest
// value of each series, and the count of what the rules dropped, which each input applies itself.
//
// An input keeps to three rules. It passes the labels with each Append, also with a
// reference. It begins a batch for what belongs together and ends it with Commit or
// Rollback. It marks series that end as stale. An Append that returns no error may
// have passed the sample over: no input fails because of a limit.
package inputs
