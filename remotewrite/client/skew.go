package client

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// signatureLife is the largest allowed difference between the clocks of signer and service (AWS General Reference, "Signature Version
// 4 signing process").
const signatureLife = 5 * time.Minute

// blamesClock reports whether a refusal is about the time of a signature. The words are those of
// Amazon's services, of Microsoft Entra ID and of Google's token endpoint.
func blamesClock(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{
		"signature expired", "signature not yet current", "requesttimetooskewed", "requestexpired",
		"aadsts700024", "in a reasonable timeframe",
	}, func(words string) bool { return strings.Contains(text, words) })
}

// noteSkew reports whether this host's clock is why a signed request was refused, and adds the difference to the text. now
// is the time of the answer.
func (a *Answer) noteSkew(now time.Time) bool {
	if a.Status != http.StatusForbidden && a.Status != http.StatusUnauthorized && a.Status != http.StatusBadRequest {
		return false
	}
	var ahead time.Duration // of this host's clock relative to the receiver's
	if !a.Date.IsZero() {
		ahead = now.Sub(a.Date)
	}
	far := ahead.Abs() > signatureLife
	if !far && !blamesClock(a.Text) {
		return false
	}
	if far { // in whole minutes or hours, so that equal refusals have equal texts
		by := fmt.Sprintf("%.0f min", ahead.Abs().Minutes())
		if ahead.Abs() >= 100*time.Minute {
			by = fmt.Sprintf("%.0f h", ahead.Abs().Hours())
		}
		word := "ahead of"
		if ahead < 0 {
			word = "behind"
		}
		a.Text = strings.TrimPrefix(fmt.Sprintf("%s (this host's clock is %s %s the receiver's)", a.Text, by, word), " ")
	}
	return true
}
