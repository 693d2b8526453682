// Package receivers is what every receiver has in common: a listener that only those
// reach who may, bounds that hold before anything is allocated, and one commit for each
// request. The protocols are its subpackages.
//
// # A request's way
//
//	Server ──> Gate.Handler ──> protocol: decode ──> Batch.Series, Batch.Append ──> Batch.Commit ──> 2xx
//	            connections      body, within the       labels, counts, memory       the log has it
//	                             receiver's memory
//
// A request that passes a bound is refused as a whole, with a 4xx that names the bound; a
// request that finds no room gets 503 and Retry-After; in both cases nothing of it is in
// the log. A sample that is wrong by itself (a label that is not UTF-8, a second value for
// one moment, a series beyond limits.active_series) costs itself only: the rest is
// committed, and the answer is a 400 that says how many are not, which is what remote
// write 2.0 calls a partial write. Whatever is refused is counted by reason.
package receivers
