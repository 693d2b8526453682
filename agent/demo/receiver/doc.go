// Package receiver is the other side of remote write, for the demo and for tests: a recording Remote-Write 1.0 receiver
// that can demand mutual TLS and a bearer token and can misbehave on request, certificates for it, and an oracle that
// computes which samples were lost, duplicated or reordered.
//
// It imports no other package of this module, so that its measurements do not depend on the code that they judge.
package receiver
