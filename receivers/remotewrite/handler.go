// Package remotewrite receives Prometheus remote write, versions 1.0 and 2.0.
//
// Sources: https://prometheus.io/docs/specs/prw/remote_write_spec/ and
// https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/.
package remotewrite

import (
	"errors"
	"mime"
	"net/http"
	"strconv"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/internal/spare"
	"hwsagent/receivers"
)

// Path is the path for requests.
const Path = "/api/v1/write"

// The messages, as the parameter proto of Content-Type names them.
const (
	message1 = "prometheus.WriteRequest"
	message2 = "io.prometheus.write.v2.Request"
)

// New returns the handler of a receiver.
func New(g *receivers.Gate) http.Handler {
	h := &handler{families: newFamilies()}
	mux := http.NewServeMux()
	mux.Handle("POST "+Path, g.Handler(h.write, nil, checkType))
	return mux
}

type handler struct {
	families *families
	spare2   spare.Stack[decoder2]
}

// write stores one request. It answers 2xx only when the log has the samples.
func (h *handler) write(w http.ResponseWriter, r *receivers.Request) error {
	message, err := messageOf(r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	r.Reusable() // decoded objects are copies
	// Without the header the encoding is snappy, too: the specification has no other.
	body := r.Body
	if r.Header.Get("Content-Encoding") == "" {
		if body, err = r.Decompress("snappy", body); err != nil {
			return err
		}
	}
	return r.Once(w, func() (receivers.Answer, bool, error) {
		written, metadata, err := h.store(r, body, message)
		if message == message2 && err != nil {
			tell(w, written) // so the sender knows how much of the request is stored
		}
		return func(w http.ResponseWriter) {
			if message == message2 {
				tell(w, written)
			}
			w.WriteHeader(http.StatusNoContent)
		}, !metadata, err
	})
}

// store puts a message into the log, and reports what was written and whether it had metadata without samples.
func (h *handler) store(r *receivers.Request, body []byte, message string) (written receivers.Written, metadata bool, err error) {
	b := r.Batch()
	defer b.Rollback()
	var said []prompb.MetricMetadata
	if message == message2 {
		err = h.decode2(r, body, b)
	} else {
		said, err = h.decode1(r, body, b)
	}
	switch {
	case errors.Is(err, receivers.ErrUnknown):
		b.Abandon()
		return h.store(r, body, message)
	case err != nil:
		return written, false, err
	}
	written, err = b.Commit()
	if err == nil || receivers.AsRefusal(err).Reason == receivers.InvalidSample { // only single samples are refused: the rest is stored
		h.note(said, b)
	}
	return written, len(said) > 0, err
}

// tell sets the counts of what is stored.
func tell(w http.ResponseWriter, written receivers.Written) {
	for header, n := range map[string]uint64{
		"X-Prometheus-Remote-Write-Samples-Written":    written.Samples,
		"X-Prometheus-Remote-Write-Histograms-Written": written.Histograms,
		"X-Prometheus-Remote-Write-Exemplars-Written":  written.Exemplars,
	} {
		w.Header().Set(header, strconv.FormatUint(n, 10))
	}
}

// checkType refuses a request that is not remote write, by its header.
func checkType(r *http.Request) error {
	_, err := messageOf(r.Header.Get("Content-Type"))
	return err
}

// messageOf returns the message named by a content type.
func messageOf(contentType string) (string, error) {
	if contentType == "" {
		return message1, nil
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "application/x-protobuf" {
		return "", receivers.Refuse(receivers.Unsupported, http.StatusUnsupportedMediaType, "the Content-Type is not application/x-protobuf")
	}
	switch proto := params["proto"]; proto {
	case "", message1:
		return message1, nil
	case message2:
		return message2, nil
	}
	return "", receivers.Refuse(receivers.Unsupported, http.StatusUnsupportedMediaType, "the message in Content-Type is neither %s nor %s", message1, message2)
}
