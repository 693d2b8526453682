package redfish

import (
	"fmt"
	"time"
)

// How a service that refuses the name and password is asked again. Controllers lock an account after three to ten wrong
// passwords within some minutes, for everybody; so one attempt is made, then one after ten minutes, then at doubled distances.
const (
	firstPause   = 10 * time.Minute
	longestPause = 6 * time.Hour
)

// lockout decides when a login may be tried. The zero value allows it.
type lockout struct {
	refusals int // in a row
	until    time.Time
	password string // that was refused
	reason   error
}

// wait is why no login may be tried at now with that password; nil if one may. A new password may be tried at once.
func (l *lockout) wait(now time.Time, password string) error {
	if l.refusals == 0 || password != l.password || !now.Before(l.until) {
		return nil
	}
	return fmt.Errorf("not tried again before %s or with another password, so that the account is not locked: %w",
		l.until.UTC().Format(time.TimeOnly), l.reason)
}

// refused takes over that a login with the password was refused at now.
func (l *lockout) refused(now time.Time, password string, reason error) {
	if password != l.password {
		l.refusals = 0
	}
	pause := firstPause << min(l.refusals, 10)
	*l = lockout{refusals: l.refusals + 1, until: now.Add(min(pause, longestPause)), password: password, reason: reason}
}

// accepted takes over that a login succeeded.
func (l *lockout) accepted() { *l = lockout{} }
