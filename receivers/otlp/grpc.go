package otlp

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"hwsagent/receivers"
)

// method is the one call of OTLP for metrics.
const method = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"

// The gRPC codes used in answers.
const (
	codeOK                = 0
	codeInvalidArgument   = 3
	codeDeadlineExceeded  = 4
	codeResourceExhausted = 8
	codeUnimplemented     = 12
	codeUnavailable       = 14
)

// grpcCode returns the code for a refusal. Clients retry after codeUnavailable and codeDeadlineExceeded.
func grpcCode(why *receivers.Refusal) int {
	switch {
	case why.RetryAfter > 0:
		return codeUnavailable
	case why.Reason == receivers.Slow:
		return codeDeadlineExceeded
	case why.Reason == receivers.Unsupported:
		return codeUnimplemented
	case why.Status == http.StatusRequestEntityTooLarge:
		return codeResourceExhausted
	}
	return codeInvalidArgument
}

// GRPC returns the handler of OTLP over gRPC. A unary call is one HTTP/2 request whose message has a frame around it,
// see https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, so the same server can serve it within the same
// limits as everything else.
func (v *Receiver) GRPC(g *receivers.Gate) http.Handler {
	export := g.Handler(v.export, refuseGRPC)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		contentType := r.Header.Get("Content-Type")
		switch {
		case r.ProtoMajor != 2 || r.Method != http.MethodPost || !strings.HasPrefix(contentType, "application/grpc"):
			why := receivers.Refuse(receivers.Unsupported, http.StatusUnsupportedMediaType, "this listener speaks gRPC; OTLP over HTTP has one of its own")
			g.Refused(why)
			why.Answer(w)
		case r.URL.Path != method, contentType != "application/grpc" && contentType != "application/grpc+proto":
			why := receivers.Refuse(receivers.Unsupported, http.StatusNotFound, "this receiver has the call %s only, with protobuf", method)
			g.Refused(why)
			refuseGRPC(w, r, why)
		default:
			export.ServeHTTP(w, r)
		}
	})
}

// frame is the length of a message's head: a flag for compression, and the length of the message.
const frame = 5

func (v *Receiver) export(w http.ResponseWriter, r *receivers.Request) error {
	body := r.Body
	if len(body) < frame || body[0] > 1 || uint64(binary.BigEndian.Uint32(body[1:frame])) != uint64(len(body)-frame) {
		return receivers.Refuse(receivers.Malformed, http.StatusBadRequest, "the request is not one message of gRPC")
	}
	message := body[frame:]
	if body[0] == 1 {
		var err error
		if message, err = r.Decompress(r.Header.Get("Grpc-Encoding"), message); err != nil {
			return err
		}
	}
	return r.Once(w, func() (receivers.Answer, bool, error) {
		refused, why, err := v.receive(r, message, false)
		return func(w http.ResponseWriter) { answerGRPC(w, response(refused, why)) }, why == "", err
	})
}

// answerGRPC answers a stored request.
func answerGRPC(w http.ResponseWriter, answer []byte) {
	head := w.Header()
	head.Set("Content-Type", "application/grpc")
	head.Set("Trailer", "Grpc-Status, Grpc-Message")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(answer))), answer...)) // an error means that the client has gone
	head.Set("Grpc-Status", strconv.Itoa(codeOK))
}

// refuseGRPC answers with a status and no message.
func refuseGRPC(w http.ResponseWriter, _ *http.Request, why *receivers.Refusal) {
	head := w.Header()
	head.Set("Content-Type", "application/grpc")
	head.Set("Grpc-Status", strconv.Itoa(grpcCode(why)))
	head.Set("Grpc-Message", escape(why.Text))
	w.WriteHeader(http.StatusOK)
}

// escape encodes a text for gRPC's headers.
func escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= ' ' && c < utf8.RuneSelf-1 && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
