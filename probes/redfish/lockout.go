package redfish

import (
	"fmt"
	"time"
)

// How often to try again after the service refused name and password. Controllers lock an account for everybody after
// three to ten wrong passwords within some minutes; so there is one attempt, the next after ten minutes, then at
// doubled intervals.
const (
	firstPause   = 10 * time.Minute
	longestPause = 6 * time.Hour
)

// lockout decides when a login may be tried. The zero value allows one.
type lockout struct {
	refusals int // consecutive refusals
	until    time.Time
	password string // the refused password
	reason   error
}

// wait returns why no login with that password may be tried at now, nil if one may. A new password may be tried at
// once.
func (l *lockout) wait(now time.Time, password string) error {
	if l.refusals == 0 || password != l.password || !now.Before(l.until) {
		return nil
	}
	return fmt.Errorf("not tried again before %s or with another password, so that the account is not locked: %w",
		l.until.UTC().Format(time.TimeOnly), l.reason)
}

// refused records that a login with the password was refused at now.
func (l *lockout) refused(now time.Time, password string, reason error) {
	if password != l.password {
		l.refusals = 0
	}
	pause := firstPause << min(l.refusals, 10)
	*l = lockout{refusals: l.refusals + 1, until: now.Add(min(pause, longestPause)), password: password, reason: reason}
}

// accepted records that a login succeeded.
func (l *lockout) accepted() { *l = lockout{} }
