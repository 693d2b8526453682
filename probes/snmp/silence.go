package snmp

import (
	"fmt"
	"time"
)

// How a device that does not answer is asked. It costs its packets and their retries in the
// first rounds, then one packet a round, and then one packet after a quarter of the time
// that it has been silent: a site that is down for hours is asked every five minutes.
const (
	patientRounds = 2 // with all retries
	longestWait   = 5 * time.Minute
)

// silence is what is known of a device that does not answer. The zero value is that of one
// that does.
type silence struct {
	rounds int       // in a row in which it was asked and did not answer
	since  time.Time // when the first of them began
	next   time.Time // when it is asked again
	reason error     // of the last of them
}

// wait is why the device is not asked at now, nil if it is.
func (s *silence) wait(now time.Time) error {
	if s.rounds == 0 || !now.Before(s.next) {
		return nil
	}
	return fmt.Errorf("not asked before %s, as every question since %s failed: %w",
		s.next.UTC().Format(time.TimeOnly), s.since.UTC().Format(time.DateTime), s.reason)
}

// impatient reports whether a packet is sent without retries.
func (s *silence) impatient() bool { return s.rounds >= patientRounds }

// heard takes over what came of a question at now: nil is an answer.
func (s *silence) heard(now time.Time, err error) {
	if err == nil {
		*s = silence{}
		return
	}
	if s.rounds == 0 {
		s.since = now
	}
	s.rounds++
	s.next, s.reason = now.Add(min(now.Sub(s.since)/4, longestWait)), err
}
