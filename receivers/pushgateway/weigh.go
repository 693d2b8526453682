package pushgateway

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// weigh walks through delimited families without decoding them, and counts the messages inside: two bytes can be one
// message that takes hundreds in memory.
func weigh(body []byte) (messages int, err error) {
	for len(body) > 0 {
		family, n := protowire.ConsumeBytes(body)
		if n < 0 {
			return 0, fmt.Errorf("read protobuf: %w", protowire.ParseError(n))
		}
		inside, err := walk(family, 0)
		if err != nil {
			return 0, err
		}
		messages += inside
		body = body[n:]
	}
	return messages, nil
}

// maxDepth is the depth of messages in a family: metric, histogram, bucket, exemplar, label.
const maxDepth = 6

// walk counts the messages in a message, itself included. It does not know the types of byte fields, so it looks into
// each as long as it parses as a message. Thus the count is never too low.
func walk(message []byte, depth int) (count int, err error) {
	count = 1
	if depth > maxDepth {
		return count, nil
	}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return 0, fmt.Errorf("read protobuf: %w", protowire.ParseError(n))
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return 0, fmt.Errorf("read protobuf: %w", protowire.ParseError(n))
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			inside, err := walk(value, depth+1)
			if err != nil {
				inside = 1 // a string, or a list
			}
			count += inside
		}
		message = message[n:]
	}
	return count, nil
}
