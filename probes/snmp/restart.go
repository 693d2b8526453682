package snmp

import (
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// tick is the unit of TimeTicks: RFC 2578 section 7.1.8.
const tick = 10 * time.Millisecond

// uptimeRange is the period after which TimeTicks wrap to 0: 497 days.
const uptimeRange = tick << 32

// clockSlack is how much a device's clock may lag behind ours between two rounds, and how near
// to the end of its range an uptime counts as wrapped rather than restarted.
const clockSlack = time.Minute

// uptimes counts restarts of a device by its sysUpTime. Strictly, that is the time since its
// agent began, which is when counters begin at 0. The zero value is for a device not seen yet.
type uptimes struct {
	seen     bool
	last     time.Duration // uptime that the device reported
	at       time.Time     // when the device reported it
	restarts int           // since the probe began
}

// note records the uptime reported at now, and reports whether the device has restarted since the
// last call. A constant uptime comes from an agent without a clock, and is not a restart.
func (u *uptimes) note(up time.Duration, now time.Time) bool {
	since := now.Sub(u.at)
	wrapped := u.last+since > uptimeRange-clockSlack
	restarted := u.seen && !wrapped && (up < u.last || up != u.last && up+clockSlack < since)
	if restarted {
		u.restarts++
	}
	u.seen, u.last, u.at = true, up, now
	return restarted
}

// report adds the count once the device has been seen.
func (u *uptimes) report(r *probes.Round) {
	if u.seen {
		r.Add(&deviceRestarts, float64(u.restarts))
	}
}

var deviceRestarts = probes.Family{
	Name: "hwsagent_device_restarts_total", Type: model.MetricTypeCounter,
	Help: "Restarts of the device's SNMP agent since the probe started, recognised by its uptime.",
}
