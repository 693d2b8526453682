// Package receivers has the common parts of all receivers: a listener with access control, limits that apply before
// anything is allocated, and one commit for each request. The protocols are its subpackages.
//
// # A request's way
//
//	Server ──> Gate.Handler ──> protocol: decode ──> Batch.Series, Batch.Append ──> Batch.Commit ──> 2xx
//	            connections      body, within the       labels, counts, memory       the log has it
//	                             receiver's memory
//
// A request that exceeds a limit is refused as a whole, with a 4xx that names the limit; a request for which there is
// no memory gets 503 and Retry-After; in both cases the log has no part of it. An invalid sample (with a label that is
// not UTF-8, a second value for one moment, or a series beyond limits.active_series) is refused by itself: the rest is
// committed, and the answer is a 400 with the number of refused samples, which remote write 2.0 calls a partial write.
// All refusals are counted by reason.
package receivers
