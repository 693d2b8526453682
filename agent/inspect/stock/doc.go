// Package stock reads a log with Prometheus' own reader (tsdb/wlog) and decoder (tsdb/record). It imports nothing of
// package wal, so its result is independent evidence about that package. It has its own decoder for the four types of
// records that Prometheus does not know.
//
// It reads files from their beginning to their end and changes nothing. Prometheus' reader stops at damage; this package
// then goes on with the next segment.
package stock
