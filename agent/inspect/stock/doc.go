// Package stock reads a log with Prometheus' own reader (tsdb/wlog) and decoder (tsdb/record),
// and with nothing of the package wal: what it finds is evidence that does not rest on the code
// that it is to check. It may therefore not import wal; three small records, which Prometheus
// does not know, it decodes itself.
//
// It reads files from their beginning to their end and changes nothing. Prometheus' reader
// cannot go on behind damage: it stops there, and this package goes on with the next segment.
package stock
