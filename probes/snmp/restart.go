package snmp

import (
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// tick is the unit of TimeTicks: RFC 2578 section 7.1.8.
const tick = 10 * time.Millisecond

// uptimeRange is after how long a TimeTicks begins at 0 again: 497 days.
const uptimeRange = tick << 32

// clockSlack is by how much a device's clock may be slower than ours between two rounds, and how
// near to the end of its range an uptime has wrapped rather than begun.
const clockSlack = time.Minute

// uptimes counts restarts of a device by its sysUpTime. Strictly that is the time since its
// agent began, which is when counters begin at 0. The zero value is of one never seen.
type uptimes struct {
	seen     bool
	last     time.Duration // that the device told
	at       time.Time     // when it told it
	restarts int           // since the probe began
}

// note takes over what the device told at now, and reports whether it has restarted since the last
// time. An uptime that stands still is that of an agent without a clock: no restart.
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

// report adds the count, once there is one.
func (u *uptimes) report(r *probes.Round) {
	if u.seen {
		r.Add(&deviceRestarts, float64(u.restarts))
	}
}

var deviceRestarts = probes.Family{
	Name: "hwsagent_device_restarts_total", Type: model.MetricTypeCounter,
	Help: "Restarts of the device's agent, seen by its uptime, since the probe began.",
}
