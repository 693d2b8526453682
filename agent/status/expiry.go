package status

import (
	"fmt"
	"strings"
	"time"
)

// ExpiryStatus says when a credential of a target or a certificate of its receiver expires.
type ExpiryStatus struct {
	What   string    `json:"what"` // client certificate, certificate of the authority, receiver's certificate, token, OAuth2 token, …
	At     time.Time `json:"expires_at"`
	WarnAt time.Time `json:"warn_at,omitzero"` // when a warning begins; zero if the agent renews it by itself
}

// expiryProblems reports credentials that expire soon or have expired.
func expiryProblems(s Status, t TargetStatus) []Problem {
	var all []Problem
	for _, e := range t.Expiries {
		if e.WarnAt.IsZero() || s.Now.Before(e.WarnAt) || blamed(s, t, e) {
			continue
		}
		text := fmt.Sprintf("its %s ends %s", e.What, Until(s.Now, e.At))
		if !e.At.After(s.Now) {
			text = fmt.Sprintf("its %s ended %s", e.What, Ago(s.Now, e.At))
		}
		all = append(all, Problem{SeverityWarning, "target " + t.Name, text, tryExpiry(e)})
	}
	return all
}

// blamed reports whether the failure of t names what has expired, so that it needs no finding of its own.
func blamed(s Status, t TargetStatus, e ExpiryStatus) bool {
	if e.At.After(s.Now) || t.State != StateHeld && t.State != StateRetrying {
		return false
	}
	switch t.Failure {
	case "certificate_expired":
		return ofReceiver(e)
	case "client_certificate":
		return strings.HasPrefix(e.What, "client certificate")
	case "credentials", "forbidden":
		return strings.Contains(e.What, "token") || strings.HasPrefix(e.What, "client certificate")
	}
	return false
}

// ofReceiver reports whether e is what the receiver's certificate is verified by: the certificate itself, or its authority's.
func ofReceiver(e ExpiryStatus) bool {
	return strings.HasPrefix(e.What, "receiver's") || strings.HasPrefix(e.What, "certificate of the authority")
}

// ended adds to the cause of a failure the credentials that have expired.
func ended(s Status, t TargetStatus) (text string) {
	for _, e := range t.Expiries {
		if blamed(s, t, e) && !ofReceiver(e) {
			text += "; its " + e.What + " ended " + Ago(s.Now, e.At)
		}
	}
	return text
}

func tryExpiry(e ExpiryStatus) string {
	switch {
	case strings.HasPrefix(e.What, "receiver's"):
		return "the receiver's operator must renew it; data waits on disk meanwhile"
	case strings.HasPrefix(e.What, "certificate of the authority"):
		return "add the authority's next certificate to the file that ca_file names; no reload is needed"
	}
	return "replace the file; no reload is needed"
}

// ExpiryText returns the expiries in one line for people.
func ExpiryText(s Status, t TargetStatus) string {
	var parts []string
	for _, e := range t.Expiries {
		when := "ends " + Until(s.Now, e.At)
		if !e.At.After(s.Now) {
			when = "ended " + Ago(s.Now, e.At)
		}
		parts = append(parts, e.What+" "+when)
	}
	return strings.Join(parts, ", ")
}
