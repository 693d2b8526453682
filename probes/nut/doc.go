// Package nut is a probe that reads uninterruptible power supplies, and power distribution units, from upsd of Network
// UPS Tools. It speaks upsd's own protocol (RFC 9271), in clear or by TLS, and only reads: it never logs in to a
// device, so it does not count among the systems that a shutdown waits for.
//
// Each variable has a name (RFC 9271, appendix A, and docs/nut-names.txt of Network UPS Tools). Numbers are given under
// the names of nut_exporter, and also as hw_* if the vocabulary of package hw has them.
package nut
