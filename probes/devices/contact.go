package devices

import (
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// How a device that does not answer is asked. It costs its packets and their retries in the
// first rounds, then one packet a round, and then one packet after a quarter of the time
// that it has been silent: a site that is down for hours is asked every five minutes.
const (
	patientRounds = 2 // with all retries
	longestWait   = 5 * time.Minute
)

// Reason is why a device was not reached: one word of few, for a label.
type Reason string

// The reasons.
const (
	NoAnswer Reason = "timeout"  // nothing came back in time
	Refused  Reason = "refused"  // the connection was refused, or broke
	Login    Reason = "login"    // it answers, and refuses the user or password
	Name     Reason = "name"     // the host name has no address
	NoRoute  Reason = "route"    // this machine has no way to the address
	TLS      Reason = "tls"      // the certificate, or what else belongs to TLS
	Protocol Reason = "protocol" // something answers, but not what should
	Secret   Reason = "secret"   // a file with a secret cannot be read; the device was not asked
	Limit    Reason = "limit"    // the limit of requests left no time; the device was not asked
)

// Contact is what is known of whether one device answers. The zero value is that of a device
// that was never asked. It is used by one goroutine at a time.
type Contact struct {
	state  state
	since  time.Time // when the state began
	reason Reason    // of a device that is not reached

	rounds int       // in a row in which it was asked and did not answer
	silent time.Time // when the first of them began
	next   time.Time // when it is asked again
	last   error     // of the last of them
}

type state int8

const (
	unknown state = iota
	reached
	unreached
)

// Wait is why the device is not asked at now, nil if it is.
func (c *Contact) Wait(now time.Time) error {
	if c.rounds == 0 || !now.Before(c.next) {
		return nil
	}
	return fmt.Errorf("not asked before %s, as every question since %s failed: %w",
		c.next.UTC().Format(time.TimeOnly), c.silent.UTC().Format(time.DateTime), c.last)
}

// Impatient reports whether a request is sent without retries.
func (c *Contact) Impatient() bool { return c.rounds >= patientRounds }

// Answered notes that the device answered at now.
func (c *Contact) Answered(now time.Time) {
	c.rounds, c.last = 0, nil
	c.become(reached, now, "")
}

// Failed notes that the device was asked at now and was not reached. The error may not hold a
// secret: it is repeated while the device is not asked.
func (c *Contact) Failed(now time.Time, why Reason, err error) {
	if c.rounds == 0 {
		c.silent = now
	}
	c.rounds++
	c.next, c.last = now.Add(min(now.Sub(c.silent)/4, longestWait)), err
	c.become(unreached, now, why)
}

// Unasked notes that the device could not be asked at now for a reason on this side. It makes
// no distance to the next question.
func (c *Contact) Unasked(now time.Time, why Reason) { c.become(unreached, now, why) }

func (c *Contact) become(s state, now time.Time, why Reason) {
	if c.state != s {
		c.since = now
	}
	c.state, c.reason = s, why
}

// Ask makes the next question due at once, and again with all retries.
func (c *Contact) Ask() { c.rounds = 0 }

// Report adds the series of the device. Call it in each round, also where the device was not asked.
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
	deviceUp    = probes.Family{Name: "hwsagent_device_up", Help: "1 if the device answered when it was asked last, else 0.", Type: model.MetricTypeGauge}
	deviceSince = probes.Family{Name: "hwsagent_device_since_timestamp_seconds", Help: "Since when hwsagent_device_up has had its value, at the earliest since the probe began.", Type: model.MetricTypeGauge, Unit: "seconds"}
	deviceDown  = probes.Family{Name: "hwsagent_device_down", Help: "1, with the reason, while the device is not reached.", Type: model.MetricTypeGauge}
)
