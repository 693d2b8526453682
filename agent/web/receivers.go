package web

import (
	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

// receiverView is a receiver as the page shows it.
type receiverView struct {
	status.ReceiverStatus
	Level, Last, Count, Taken, Active, Refused, Left, Error string
	ErrorAt                                                 moment
}

func newReceiver(s status.Status, r status.ReceiverStatus) receiverView {
	v := receiverView{
		ReceiverStatus: r, Level: status.LevelOK, Last: status.Ago(s.Now, r.LastRequest), Count: status.Count(r.Requests), Taken: status.Count(r.Samples),
		Active: status.Count(uint64(max(0, r.ActiveSeries))), Refused: status.ByReason(r.RefusedRequests), Left: status.ByReason(r.RefusedSamples),
	}
	if r.LastRequest.IsZero() {
		v.Level = status.SeverityNote
	}
	if status.Refusing(s, r) {
		v.Level = status.SeverityWarning
	}
	if r.LastError != "" && !(status.Refusing(s, r) && s.WAL.Error == "") { // else the problems have it
		v.ErrorAt, v.Error = newMoment(s.Now, r.LastErrorAt), status.Ago(s.Now, r.LastErrorAt)+": "+status.Cut(text.FirstLine(r.LastError), 300)
	}
	return v
}
