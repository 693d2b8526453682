package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hwsagent/probes"
)

// clock reads the time and its source in the kernel.
type clock struct {
	now func() time.Time
	sys string

	seconds, zone, available, current *probes.Family
}

func newClock(e *environment) reader {
	return &clock{
		now:       e.now,
		sys:       e.sys("devices/system/clocksource"),
		seconds:   gauge("node_time_seconds", "The machine's time, in seconds since the epoch."),
		zone:      gauge("node_time_zone_offset_seconds", "By how much local time is ahead of UTC."),
		available: gauge("node_time_clocksource_available_info", "1 for each clock source that the kernel could use."),
		current:   gauge("node_time_clocksource_current_info", "1 for the clock source in use."),
	}
}

func (c *clock) read(_ context.Context, r *probes.Round) error {
	now := c.now()
	r.Add(c.seconds, float64(now.UnixNano())/1e9)
	zone, offset := now.Zone()
	r.Add(c.zone, float64(offset), "time_zone", zone)
	names, err := list(c.sys)
	if err != nil {
		return nil //nolint:nilerr // containers may hide it; the time itself is known
	}
	for _, name := range names {
		id, ok := unit(name, "clocksource")
		if !ok {
			continue
		}
		for source := range strings.FieldsSeq(text(c.sys + "/" + name + "/available_clocksource")) {
			r.Add(c.available, 1, "clocksource", source, "device", id)
		}
		if source := text(c.sys + "/" + name + "/current_clocksource"); source != "" {
			r.Add(c.current, 1, "clocksource", source, "device", id)
		}
	}
	return nil
}

// timex reads the state of the kernel's clock discipline with adjtimex(2): is the
// time synchronised, and how good is it?
type timex struct {
	adjtimex func(*unix.Timex) (int, error)

	sync, offset, freq, maxerror, esterror, status, constant, tick, tai *probes.Family
	ppsFreq, ppsJitter, ppsShift, ppsStability                          *probes.Family
	ppsJitters, ppsCalibrations, ppsErrors, ppsExceeded                 *probes.Family
}

func newTimex(*environment) reader {
	return &timex{
		adjtimex:        unix.Adjtimex,
		sync:            gauge("node_timex_sync_status", "Whether the clock is synchronised (1) or not (0)."),
		offset:          gauge("node_timex_offset_seconds", "Offset to the reference clock."),
		freq:            gauge("node_timex_frequency_adjustment_ratio", "By which factor the clock is sped up."),
		maxerror:        gauge("node_timex_maxerror_seconds", "The largest error that the time may have."),
		esterror:        gauge("node_timex_estimated_error_seconds", "The estimated error of the time."),
		status:          gauge("node_timex_status", "The status bits of adjtimex(2)."),
		constant:        gauge("node_timex_loop_time_constant", "Time constant of the phase-locked loop."),
		tick:            gauge("node_timex_tick_seconds", "Time between two ticks."),
		tai:             gauge("node_timex_tai_offset_seconds", "By how much atomic time is ahead of UTC; 0 if the kernel does not know it."),
		ppsFreq:         gauge("node_timex_pps_frequency_hertz", "Frequency of the pulse-per-second signal."),
		ppsJitter:       gauge("node_timex_pps_jitter_seconds", "Jitter of the pulse-per-second signal."),
		ppsShift:        gauge("node_timex_pps_shift_seconds", "Interval of the pulse-per-second calibration."),
		ppsStability:    gauge("node_timex_pps_stability_hertz", "Stability of the pulse-per-second signal."),
		ppsJitters:      counter("node_timex_pps_jitter_total", "Pulses whose jitter was over the limit."),
		ppsCalibrations: counter("node_timex_pps_calibration_total", "Calibrations by the pulse-per-second signal."),
		ppsErrors:       counter("node_timex_pps_error_total", "Failed calibrations."),
		ppsExceeded:     counter("node_timex_pps_stability_exceeded_total", "Calibrations that found the signal unstable."),
	}
}

func (x *timex) read(_ context.Context, r *probes.Round) error {
	var t unix.Timex
	state, err := x.adjtimex(&t)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOSYS) {
		return errAbsent // some sandboxes forbid even reading
	}
	if err != nil {
		return fmt.Errorf("adjtimex: %w", err)
	}
	const (
		micro = 1e6
		ppm   = 1e6 * 65536 // frequencies are parts per million with 16 binary places
	)
	unit := micro
	if t.Status&unix.STA_NANO != 0 {
		unit = 1e9
	}
	r.Add(x.sync, boolean(state != unix.TIME_ERROR))
	r.Add(x.offset, float64(t.Offset)/unit)
	r.Add(x.freq, 1+float64(t.Freq)/ppm)
	r.Add(x.maxerror, float64(t.Maxerror)/micro)
	r.Add(x.esterror, float64(t.Esterror)/micro)
	r.Add(x.status, float64(t.Status))
	r.Add(x.constant, float64(t.Constant))
	r.Add(x.tick, float64(t.Tick)/micro)
	r.Add(x.tai, float64(t.Tai))
	r.Add(x.ppsFreq, float64(t.Ppsfreq)/ppm)
	r.Add(x.ppsJitter, float64(t.Jitter)/unit)
	r.Add(x.ppsShift, float64(t.Shift))
	r.Add(x.ppsStability, float64(t.Stabil)/ppm)
	r.Add(x.ppsJitters, float64(t.Jitcnt))
	r.Add(x.ppsCalibrations, float64(t.Calcnt))
	r.Add(x.ppsErrors, float64(t.Errcnt))
	r.Add(x.ppsExceeded, float64(t.Stbcnt))
	return nil
}
