package dbus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The kinds of messages, by the second byte of a message.
const (
	kindCall   = 1
	kindReturn = 2
	kindError  = 3
)

// The fields of a header that are used here.
const (
	fieldPath        = 1
	fieldInterface   = 2
	fieldMember      = 3
	fieldErrorName   = 4
	fieldReplyTo     = 5
	fieldDestination = 6
	fieldSignature   = 8
)

const (
	protocolVersion = 1
	noAutoStart     = 2 // a flag: a call shall not start a service that does not run
	fixedHeader     = 16
)

// message is a message that has arrived.
type message struct {
	kind      byte
	replyTo   uint32
	errorName string
	body      *Reader
}

// appendCall appends a call in little-endian form.
func appendCall(b []byte, serial uint32, c Call) []byte {
	start := len(b) // a multiple of nothing: alignment counts from here
	var body []byte
	for _, a := range c.Args {
		body = appendString(pad(body, 0, 4), a)
	}
	b = append(b, 'l', kindCall, noAutoStart, protocolVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body))) // #nosec G115 -- a few names
	b = binary.LittleEndian.AppendUint32(b, serial)
	b = binary.LittleEndian.AppendUint32(b, 0) // length of the fields, below
	fields := len(b)
	field := func(code byte, typ, text string) {
		b = append(pad(b, start, 8), code, 1, typ[0], 0)
		if typ == "g" {
			b = append(append(append(b, byte(len(text))), text...), 0) // #nosec G115 -- one for each argument
			return
		}
		b = appendString(b, text)
	}
	field(fieldPath, "o", c.Path)
	field(fieldDestination, "s", c.Destination)
	field(fieldInterface, "s", c.Interface)
	field(fieldMember, "s", c.Member)
	if len(c.Args) > 0 {
		field(fieldSignature, "g", strings.Repeat("s", len(c.Args)))
	}
	binary.LittleEndian.PutUint32(b[fields-4:], uint32(len(b)-fields)) // #nosec G115 -- a few names
	return append(pad(b, start, 8), body...)
}

// appendString appends a string at a place that is a multiple of 4.
func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s))) // #nosec G115 -- a name
	return append(append(b, s...), 0)
}

// pad appends zeros up to a multiple of align, counted from start.
func pad(b []byte, start, align int) []byte {
	for (len(b)-start)%align != 0 {
		b = append(b, 0)
	}
	return b
}

// read reads a message.
func (c *Conn) read() (message, error) {
	var fixed [fixedHeader]byte
	if _, err := io.ReadFull(c.in, fixed[:]); err != nil {
		return message{}, err
	}
	var order binary.ByteOrder
	switch fixed[0] {
	case 'l':
		order = binary.LittleEndian
	case 'B':
		order = binary.BigEndian
	default:
		return message{}, fmt.Errorf("%w: a message begins with %q", ErrProtocol, fixed[0])
	}
	if fixed[3] != protocolVersion {
		return message{}, fmt.Errorf("%w: version %d of the protocol", ErrProtocol, fixed[3])
	}
	m := message{kind: fixed[1]}
	bodyLength, fieldsLength := order.Uint32(fixed[4:]), order.Uint32(fixed[12:])
	if bodyLength > maxBody || fieldsLength > maxHeader {
		return m, fmt.Errorf("%w: a message has %d bytes after a header of %d; at most %d and %d are read", ErrProtocol, bodyLength, fieldsLength, maxBody, maxHeader)
	}
	fields, err := c.bytes(int64(fieldsLength+7) &^ 7)
	if err != nil {
		return m, err
	}
	body, err := c.bytes(int64(bodyLength))
	if err != nil {
		return m, err
	}
	m.body = &Reader{order: order, b: body}
	header := &Reader{order: order, b: fields[:fieldsLength]}
	for header.err == nil && header.at < len(header.b) {
		header.align(8)
		code := header.byte()
		switch typ := header.signature(); typ {
		case "s", "o":
			if text := header.String(); code == fieldErrorName {
				m.errorName = text
			}
		case "g":
			if text := header.signature(); code == fieldSignature {
				m.body.sig = text
			}
		case "u":
			if n := header.Uint32(); code == fieldReplyTo {
				m.replyTo = n
			}
		default:
			header.fail("a field of a header has the type %q", typ)
		}
	}
	return m, header.err
}

// bytes reads n bytes. Memory grows with what has arrived.
func (c *Conn) bytes(n int64) ([]byte, error) {
	var b bytes.Buffer
	if _, err := io.CopyN(&b, c.in, n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b.Bytes(), nil
}
