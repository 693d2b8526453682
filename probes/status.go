package probes

import (
	"errors"
	"time"
)

// Status describes a probe for people.
type Status struct {
	Name, Type string
	Instance   string // the target label
	Interval   time.Duration
	State      string    // waiting, running (the first round), then the outcome of the last finished round: ok, failing, hung
	FirstRun   time.Time // when the first round begins; zero before the runner runs
	LastRun    time.Time
	Took       time.Duration
	Samples    int    // appended in the last round
	Failures   int    // rounds failed in a row
	Skipped    uint64 // rounds that could not start in time
	Refused    uint64 // samples that the log refused, or that were invalid
	LastError  string // error of the last failed round, until one succeeds
}

// waiting is the state before the first round.
const waiting = "waiting"

// report updates the status and logs changes.
func (l *loop) report(res result, appended, refused int, appendErr error) {
	err := errors.Join(res.err, appendErr)
	failed := (res.err != nil && !errors.Is(res.err, ErrPartial)) || (appendErr != nil && appended == 0)
	var before, after string
	l.set(func(s *Status) {
		before = s.LastError
		s.Took, s.Samples = res.took, appended
		s.Refused += uint64(refused)
		s.State, s.LastError = "ok", ""
		if err != nil {
			s.LastError = err.Error()
		}
		switch {
		case errors.Is(res.err, errHung):
			s.State = "hung"
		case failed:
			s.State = "failing"
		}
		if failed {
			s.Failures++
		} else {
			s.Failures = 0
		}
		after = s.LastError
	})
	switch {
	case before == "" && after != "":
		l.log.Warn("The probe has a problem", "err", after)
	case before != "" && after == "":
		l.log.Info("The probe works again")
	case before != after:
		l.log.Debug("The probe's problem changed", "err", after)
	}
}

func (l *loop) skipped(n uint64) { l.set(func(s *Status) { s.Skipped += n }) }

func (l *loop) set(f func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.status)
}

func (l *loop) snapshot() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}
