// Package inputs connects all sources of samples to the log.
//
// A [Path] wraps the log. Each probe, scrape job and receiver has its own [Input], which is a
// [storage.AppendableV2] like the log itself. The Path does the work common to all inputs: it
// limits series, detects series that two inputs append, and keeps the newest value of each
// series and the number of samples removed by the rules that each input applies itself.
//
// An input follows three rules. It passes the labels with each Append, even with a reference.
// It puts samples that belong together into one batch, and ends it with Commit or Rollback.
// It marks series that end as stale. Append may skip a sample without returning an error: no
// input fails because of a limit.
package inputs
