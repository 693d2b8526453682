package wire

import (
	"fmt"

	"github.com/gogo/protobuf/proto"
	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// Body returns the body of a request with the message m, *prompb.WriteRequest or *writev2.Request: a snappy block. It is for
// all messages except the queue's batches, which [Encoder] writes. It panics if marshalling fails, which cannot happen for
// these types.
func Body(m proto.Message) []byte {
	raw, err := proto.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("marshal %T: %v", m, err)) // proto3 has no required fields
	}
	return snappy.Encode(nil, raw)
}

// Empty returns the body of a request without samples. A receiver that accepts it answers
// 2xx, so it tests the route to the receiver.
func Empty(v Version) []byte {
	if v == V2 {
		// "The first element of the symbols table MUST be an empty string" (2.0, Symbols).
		return Body(&writev2.Request{Symbols: []string{""}})
	}
	return Body(&prompb.WriteRequest{})
}
