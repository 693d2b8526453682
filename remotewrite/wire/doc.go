// Package wire writes the messages of Prometheus remote write, versions 1.0 and 2.0.
//
// [Encoder] is the hot path: it writes the samples of a batch by hand, without
// allocating. Tests compare it with the types of prompb, field by field. All other
// messages are such types, marshalled with gogo/protobuf: see [Body].
//
// The protocol's specifications are
// https://prometheus.io/docs/specs/prw/remote_write_spec/ and
// https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/.
package wire
