package remotewrite

import (
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"

	"hwsagent/receivers"
)

// maxSeriesBytes bounds the message of one series, whose object takes up to expansion times as much while it is
// processed.
const (
	maxSeriesBytes = 1 << 20
	expansion      = 32
)

// fields calls f for each field of a message; a field that is not length-delimited comes
// with a nil value.
func fields(message []byte, f func(number protowire.Number, value []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("read the message: %w", protowire.ParseError(n))
		}
		message = message[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(message)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return fmt.Errorf("read field %d: %w", number, protowire.ParseError(n))
		}
		message = message[n:]
		if err := f(number, value); err != nil {
			return err
		}
	}
	return nil
}

// errKind is the error for a field with a number in place of bytes.
var errKind = errors.New("read the message: a series, metadata or a symbol is a number")

// another is the refusal of a message of the other version. Its fields are unknown to this one, so all of it would be
// skipped and answered as stored. Senders of 2.0 know the status: they send 1.0 next.
func another(as string) error {
	return receivers.Refuse(receivers.Unsupported, http.StatusUnsupportedMediaType, "the message is not a %s, as Content-Type says", as)
}

// room reserves the memory for the object of one series, once for the largest.
type room struct {
	r     *receivers.Request
	taken int64
}

func (m *room) of(message []byte) error {
	if len(message) > maxSeriesBytes {
		return receivers.Refuse(receivers.TooComplex, http.StatusRequestEntityTooLarge, "a series takes %d bytes, more than %d: send less of it at once", len(message), maxSeriesBytes)
	}
	if n := expansion * int64(len(message)); n > m.taken {
		if err := m.r.Take(n - m.taken); err != nil {
			return err
		}
		m.taken = n
	}
	return nil
}
