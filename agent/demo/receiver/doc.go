// Package receiver is the other side of remote write, for the demo and for tests: a
// recording Remote-Write 1.0 receiver that can demand mutual TLS and a bearer token
// and can be told to misbehave, the certificates for it, and an oracle that computes
// what was lost, duplicated or reordered.
//
// It imports nothing else of this module: what is measured here owes nothing to the
// code that it measures.
package receiver
