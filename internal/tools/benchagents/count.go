//go:build linux

package main

import (
	varint "encoding/binary"
	"errors"
)

// errMessage means that a body is not a message of remote write.
var errMessage = errors.New("the body is not a protobuf message")

// Numbers of fields: remote.proto of Prometheus for 1.0, io/prometheus/write/v2/types.proto
// for 2.0. Samples and histograms are what an agent counts as samples.
type fieldNumbers struct{ series, sample, histogram uint64 }

func fieldsOf(version string) fieldNumbers {
	if version == v2 {
		return fieldNumbers{series: 5, sample: 2, histogram: 3}
	}
	return fieldNumbers{series: 1, sample: 2, histogram: 4}
}

// countSamples counts the samples and histograms of a request without decoding them, which would take more CPU than an
// agent spends on sending.
func countSamples(raw []byte, version string) (samples, histograms int, err error) {
	numbers := fieldsOf(version)
	err = fields(raw, func(number uint64, series []byte) error {
		if number != numbers.series {
			return nil
		}
		return fields(series, func(number uint64, _ []byte) error {
			switch number {
			case numbers.sample:
				samples++
			case numbers.histogram:
				histograms++
			}
			return nil
		})
	})
	return samples, histograms, err
}

// fields calls f with each length-delimited field of a message, and skips the others.
func fields(b []byte, f func(number uint64, value []byte) error) error {
	for len(b) > 0 {
		key, n := varint.Uvarint(b)
		if n <= 0 {
			return errMessage
		}
		b = b[n:]
		skip := 0
		switch key & 7 {
		case 0: // a varint
			if _, skip = varint.Uvarint(b); skip <= 0 {
				return errMessage
			}
		case 1:
			skip = 8
		case 5:
			skip = 4
		case 2:
			size, n := varint.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return errMessage
			}
			skip = n + int(size)
			if err := f(key>>3, b[n:skip]); err != nil {
				return err
			}
		default:
			return errMessage
		}
		if skip > len(b) {
			return errMessage
		}
		b = b[skip:]
	}
	return nil
}
