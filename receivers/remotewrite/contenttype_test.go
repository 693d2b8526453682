package remotewrite

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// TestMessageOfTheOtherVersion: a message that Content-Type names wrongly, because a proxy left out its parameter for
// example, is refused: its fields are unknown to the other message, so it would be answered as stored.
func TestMessageOfTheOtherVersion(t *testing.T) {
	number := func(field protowire.Number) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), 1)
	}
	source := number(2) // programs that are made of Cortex add it to messages of 1.0
	for name, tc := range map[string]struct {
		contentType string
		message     []byte
		status      int
		reason      receivers.Reason // "" if it is stored
	}{
		"2.0 as 1.0":                   {"application/x-protobuf", request2(t), 415, receivers.Unsupported},
		"2.0 without Content-Type":     {"", request2(t), 415, receivers.Unsupported},
		"1.0 as 2.0":                   {content2, request1(t), 415, receivers.Unsupported},
		"1.0, its metadata as 2.0":     {content2, []byte{3<<3 | 2, 0}, 415, receivers.Unsupported},
		"1.0 and then 2.0":             {"", append(request1(t), request2(t)...), 415, receivers.Unsupported},
		"1.0, a number for a series":   {"", number(series1), 400, receivers.Malformed},
		"1.0, a number for metadata":   {"", number(metadata1), 400, receivers.Malformed},
		"2.0, a number for a series":   {content2, number(series2), 400, receivers.Malformed},
		"2.0, a number for a symbol":   {content2, append(number(symbols2), request2(t)...), 400, receivers.Malformed},
		"1.0 with a field of Cortex":   {"", append(source, request1(t)...), 204, ""},
		"2.0 with fields of a later 2": {content2, append(number(6), request2(t)...), 204, ""},
	} {
		l := &receivertest.Log{}
		g := l.Gate("remote_write", receivers.DefaultLimits())
		w := send(New(g), tc.contentType, tc.message)
		if w.Code != tc.status || tc.reason != "" && g.Counts().RefusedRequests[tc.reason] != 1 || (len(l.Samples()) > 0) != (tc.reason == "") {
			t.Errorf("%s: %d %s, refused %v, %d stored; want %d %s", name, w.Code, w.Body, g.Counts().RefusedRequests, len(l.Samples()), tc.status, tc.reason)
		}
	}
}
