package devices

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// The requests to a silent device. In the first rounds it gets requests with retries, then one packet a round, and
// later one packet after a quarter of the time that it has been silent, at most every five minutes.
const (
	patientRounds = 2 // with all retries
	longestWait   = 5 * time.Minute
)

// Reason is why a device could not be reached, as a value of a label.
type Reason string

// The reasons.
const (
	NoAnswer Reason = "timeout"  // no answer in time
	Refused  Reason = "refused"  // the connection was refused or broken
	Login    Reason = "login"    // the device refuses the user or password
	Name     Reason = "name"     // the host name has no address
	NoRoute  Reason = "route"    // this machine has no route to the address
	TLS      Reason = "tls"      // the certificate, or another part of TLS
	Protocol Reason = "protocol" // something else answers
	Secret   Reason = "secret"   // a file with a secret cannot be read; the device was not asked
	Limit    Reason = "limit"    // the limit of requests left no time; the device was not asked
)

// Contact tracks whether one device answers. The zero value belongs to a device that was never asked. It is used by one
// goroutine at a time.
type Contact struct {
	state  state
	since  time.Time // when the state began
	reason Reason    // why the device is unreached

	rounds int       // consecutive rounds without an answer
	silent time.Time // when the first of these rounds began
	next   time.Time // when to ask again
	last   error     // error of the last of these rounds
}

type state int8

const (
	unknown state = iota
	reached
	unreached
)

// Wait returns why the device must not be asked at now, nil if it may be.
func (c *Contact) Wait(now time.Time) error {
	if c.rounds == 0 || !now.Before(c.next) {
		return nil
	}
	return fmt.Errorf("not asked before %s, because every request since %s failed: %w",
		c.next.UTC().Format(time.TimeOnly), c.silent.UTC().Format(time.DateTime), c.last)
}

// Impatient reports whether to send a request without retries.
func (c *Contact) Impatient() bool { return c.rounds >= patientRounds }

// Greeted records the outcome of the first request of a round, which began at now. The error, nil for an answer, must not hold
// a secret, see [Contact.Failed].
func (c *Contact) Greeted(now time.Time, why Reason, err error) {
	switch {
	case err == nil:
		c.Answered(now)
	case errors.Is(err, context.Canceled): // a stop of the agent says nothing about the device
	case why == Secret || why == Name || why == Limit: // the device was not asked
		c.Unasked(now, why)
	default:
		c.Failed(now, why, err)
	}
}

// Answered records that the device answered at now.
func (c *Contact) Answered(now time.Time) {
	c.rounds, c.last = 0, nil
	c.become(reached, now, "")
}

// Failed records that the device was asked at now but not reached. The error must not hold a secret: it is repeated
// while the device is not asked.
func (c *Contact) Failed(now time.Time, why Reason, err error) {
	if c.rounds == 0 {
		c.silent = now
	}
	c.rounds++
	c.next, c.last = now.Add(min(now.Sub(c.silent)/4, longestWait)), err
	c.become(unreached, now, why)
}

// Unasked records that the device could not be asked at now for a local reason. It does not delay the next request.
func (c *Contact) Unasked(now time.Time, why Reason) { c.become(unreached, now, why) }

func (c *Contact) become(s state, now time.Time, why Reason) {
	if c.state != s {
		c.since = now
	}
	c.state, c.reason = s, why
}

// Ask makes the next request due at once, with all retries.
func (c *Contact) Ask() { c.rounds = 0 }

// Report adds the series of the device. Call it in each round, even if the device was not asked.
func (c *Contact) Report(r *probes.Round) {
	if c.state == unknown {
		return
	}
	up := 0.0
	if c.state == reached {
		up = 1
	}
	r.Add(&deviceUp, up)
	r.Add(&deviceSince, float64(c.since.UnixMilli())/1000)
	if c.state == unreached {
		r.Add(&deviceDown, 1, "reason", string(c.reason))
	}
}

var (
	deviceUp    = probes.Family{Name: "hwsagent_device_up", Help: "1 if the device answered the last request, 0 if not.", Type: model.MetricTypeGauge}
	deviceSince = probes.Family{Name: "hwsagent_device_since_timestamp_seconds", Help: "Time since which hwsagent_device_up has its present value, in seconds since 1970; at the earliest the start of the probe.", Type: model.MetricTypeGauge, Unit: "seconds"}
	deviceDown  = probes.Family{Name: "hwsagent_device_down", Help: "1 while the device cannot be reached; the label reason says why.", Type: model.MetricTypeGauge}
)
