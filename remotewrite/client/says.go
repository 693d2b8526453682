package client

import (
	"net/http"

	"hwsagent/remotewrite/reply"
)

// FromTarget reports whether the answer is certainly the target's own. Other answers may come from an
// intermediary, such as a gateway or a login page.
func (a Answer) FromTarget() bool {
	return a.BlamesData() || a.Status == StatusUnsupported || a.Accepted()
}

// TellsTime reports whether the answer's Date is the target's.
func (a Answer) TellsTime() bool { return a.FromTarget() && !a.Date.IsZero() }

// BlamesData reports whether the answer says that the samples are at fault, or their number.
func (a Answer) BlamesData() bool {
	switch a.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// FromDatabase reports whether the receiver's own database refuses the samples for their place in time: they are
// late or too old, or it has another value at the same time.
func (a Answer) FromDatabase() bool {
	k := a.Reply().Kind
	return k == reply.Late || k == reply.TooOld
}

// SaysLate reports whether the receiver's words are about the order or the age of samples. Another value at the same
// time does not count, because then the sample itself is not stored.
func (a Answer) SaysLate() bool {
	r := a.Reply()
	return r.Kind == reply.TooOld || r.Kind == reply.Late && r.Reason == reply.OutOfOrder
}
