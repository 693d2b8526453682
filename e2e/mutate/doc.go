// Package mutate makes wrong protocol messages out of right ones: exposition text, protobuf, JSON, BER, answers and
// requests of HTTP/1.1, frames of HTTP/2.
//
// A [Kind] is one way to be wrong, with a name for counting. It makes a [Script]: the bytes to write to a connection,
// the pauses between them, and the end of the connection. The same random numbers make the same script, so that a seed
// repeats a run. Large messages are written piece by piece and take no memory.
package mutate
