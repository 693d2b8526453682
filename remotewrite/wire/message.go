package wire

import (
	"fmt"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// Message is a message of remote write as prompb has it, marshalled by code that
// gogo/protobuf generated: *prompb.WriteRequest or *writev2.Request.
type Message interface{ Marshal() ([]byte, error) }

// Body returns the body of a request with the message m: a snappy block. It is for every
// message but a batch of the queue, which [Encoder] writes. It panics if m is of another
// type than those that Message names: their marshalling cannot fail.
func Body(m Message) []byte {
	raw, err := m.Marshal()
	if err != nil {
		panic(fmt.Sprintf("marshal %T: %v", m, err)) // proto3 has no required fields
	}
	return snappy.Encode(nil, raw)
}

// Empty returns the body of a request without samples. A receiver that accepts it answers
// 2xx, so it shows whether the route to the receiver works.
func Empty(v Version) []byte {
	if v == V2 {
		// "The first element of the symbols table MUST be an empty string" (2.0, Symbols).
		return Body(&writev2.Request{Symbols: []string{""}})
	}
	return Body(&prompb.WriteRequest{})
}
