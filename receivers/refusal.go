package receivers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"hwsagent/internal/exposition"
	"hwsagent/internal/text"
)

// Reason says in one word why something was refused. It is a label of the metrics.
type Reason string

// The reasons of requests that are refused as a whole.
const (
	BadRequest     Reason = "bad_request"      // a path, parameter or header that is wrong
	Malformed      Reason = "malformed"        // the body is not a message of the protocol
	Unsupported    Reason = "unsupported"      // an unsupported content type, encoding or message
	BodyTooLarge   Reason = "body_too_large"   // limits.body_bytes
	DecodedTooLong Reason = "decoded_too_long" // limits.decoded_bytes
	TooManySeries  Reason = "too_many_series"  // limits.series
	TooManySamples Reason = "too_many_samples" // limits.samples
	TooComplex     Reason = "too_complex"      // nested too deep, or takes more memory than one request may
	Slow           Reason = "slow"             // the body did not come in time
	Busy           Reason = "busy"             // limits.requests or limits.memory_bytes are used up
	LogFull        Reason = "log_full"         // wal.on_full: reject
	LogFailed      Reason = "log_failed"       // the disk
	Panicked       Reason = "panic"            // a bug in the agent; its log has the details
)

// The reasons of single samples. A push to the Pushgateway, which is kept as a whole, is refused for them as a whole.
const (
	InvalidLabels    Reason = "invalid_labels"
	TooManyLabels    Reason = "too_many_labels"   // limits.labels
	LabelTooLong     Reason = "label_too_long"    // limits.label_name_bytes, label_value_bytes
	InvalidSample    Reason = "invalid_sample"    // such as a histogram whose buckets do not add up
	Duplicate        Reason = "duplicate"         // another value than the newest of its series, for the same moment
	NewSeries        Reason = "new_series"        // limits.active_series
	Relabelled       Reason = "relabelled"        // dropped by metric_relabel_configs, as configured
	NotCumulative    Reason = "not_cumulative"    // OTLP: neither cumulative nor delta
	OldDelta         Reason = "old_delta"         // OTLP: a delta that was counted before, or an older one
	ExemplarUnlogged Reason = "exemplar_unlogged" // an exemplar that the log cannot store
	ExemplarTooLong  Reason = "exemplar_too_long" // text: an exemplar whose labels are longer than 128 characters; remote write 2.0: beyond a limit for labels
	MetadataUnkept   Reason = "metadata_unkept"   // remote write 1.0: metadata of more families than the limit
)

// Refusal says why a request is answered with something else than 2xx, and with what.
type Refusal struct {
	Reason     Reason
	Status     int           // of HTTP
	Text       string        // for the sender's log
	RetryAfter time.Duration // 0: trying again does not help
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// Refuse returns a refusal that trying again does not help.
func Refuse(reason Reason, status int, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Status: status, Text: fmt.Sprintf(format, args...)}
}

// AsRefusal returns err as a refusal; any other error means a malformed request.
func AsRefusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	switch shown := cut(err.Error()); {
	case errors.Is(err, exposition.ErrLabels):
		return Refuse(TooManyLabels, http.StatusBadRequest, "%s", shown)
	case errors.Is(err, exposition.ErrBound):
		return Refuse(TooComplex, http.StatusRequestEntityTooLarge, "%s", shown)
	case errors.Is(err, context.Canceled):
		return later(Busy, time.Second, "the connection was closed before the request was read")
	default:
		return Refuse(Malformed, http.StatusBadRequest, "%s", shown)
	}
}

// later returns a refusal of a request that may be accepted later.
func later(reason Reason, after time.Duration, format string, args ...any) *Refusal {
	r := Refuse(reason, http.StatusServiceUnavailable, format, args...)
	r.RetryAfter = after
	return r
}

// Answer writes a refusal as plain text.
func (r *Refusal) Answer(w http.ResponseWriter) {
	r.Head(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(r.Status)
	_, _ = w.Write([]byte(r.Text + "\n")) // an error means that the client has gone
}

// Head sets the headers that belong to the refusal.
func (r *Refusal) Head(w http.ResponseWriter) {
	if r.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((r.RetryAfter+time.Second-1)/time.Second)))
	}
}

// longest bounds how many bytes of a request an answer repeats.
const longest = 300

func cut(s string) string { return text.Bound(s, longest) }
