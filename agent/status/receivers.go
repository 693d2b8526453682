package status

import (
	"time"

	"hwsagent/internal/text"
)

// ReceiverStatus describes one listener for data from other programs. Counts begin when it was configured or the agent
// started.
type ReceiverStatus struct {
	Name            string            `json:"name"`
	Listen          string            `json:"listen"`
	TLS             bool              `json:"tls"` // has a web_config_file
	Requests        uint64            `json:"requests"`
	Accepted        uint64            `json:"accepted"`
	Samples         uint64            `json:"samples"`
	ActiveSeries    int               `json:"active_series"`
	RefusedRequests map[string]uint64 `json:"refused_requests,omitempty"` // by reason
	RefusedSamples  map[string]uint64 `json:"refused_samples_by_reason,omitempty"`
	LastRequest     time.Time         `json:"last_request,omitzero"`
	LastError       string            `json:"last_error,omitempty"` // error of the last refused request
	LastErrorAt     time.Time         `json:"last_error_at,omitzero"`
}

// refusedLately is how long a refusal stays a problem.
const refusedLately = 5 * time.Minute

func receiverProblems(s Status, r ReceiverStatus) []Problem {
	if !Refusing(s, r) || s.WAL.Error != "" { // the log's own problem covers that
		return nil
	}
	return []Problem{{SeverityWarning, "receiver " + r.Name, "refuses requests: " + Cut(text.FirstLine(r.LastError), 300),
		"the sender's log has the details; the limits are under receivers: in the configuration"}}
}

// Refusing reports whether requests are refused at present.
func Refusing(s Status, r ReceiverStatus) bool {
	return !r.LastErrorAt.IsZero() && s.Now.Sub(r.LastErrorAt) < refusedLately
}

// ByReason formats counts by reason; "" if there are none.
func ByReason(counts map[string]uint64) string {
	if Sum(counts) == 0 {
		return ""
	}
	return reasons(counts)
}
