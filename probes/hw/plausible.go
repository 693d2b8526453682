package hw

import "math"

// bound is the range of a metric's plausible values. Beyond it a value is a placeholder for "no reading", a wrapped number or a wrong
// unit: it would be taken for a fact, so it is not sent.
type bound struct{ least, most float64 }

// bounds has a bound for each metric that is a reading of a sensor or a limit of one, in the metric's unit. Counters, sizes and counts
// have none.
var bounds = [len(table)]bound{
	Power:                  {-1e6, 1e8},
	PowerLimit:             {0, 1e8},
	BatteryCharge:          {0, 1.1},
	BatteryChargeLimit:     {0, 1.1},
	BatteryTimeLeft:        {0, 90 * 86400},
	BatteryTimeLimit:       {0, 90 * 86400},
	CurrentNow:             {-1e4, 1e4},
	CurrentLimit:           {-1e4, 1e4},
	FanSpeed:               {0, 60_000},
	FanSpeedLimit:          {0, 60_000},
	FanSpeedRatio:          {0, 1.5},
	FrequencyNow:           {0, 1e12},
	HostAmbient:            {-100, 200},
	HostPower:              {0, 1e8},
	HumidityNow:            {0, 1.05},
	HumidityLimit:          {0, 1.05},
	OpticalPower:           {-60, 30},
	OpticalPowerLimit:      {-60, 30},
	PowerSupplyLimit:       {0, 1e8},
	PowerSupplyUsage:       {-1e6, 1e8},
	PowerSupplyUtilization: {0, 2},
	TemperatureNow:         {-100, 200},
	TemperatureLimit:       {-273.15, 1000}, // some say "none" by a value that no sensor reaches
	VoltageNow:             {-1000, 1000},
	VoltageLimit:           {-1000, 1000},
	VoltageNominal:         {-1000, 1000},
}

// slowestFan is the least speed, in rotations per minute, at which a number of a device that may mean a percentage by it is taken for a
// speed. A sensor that says that it counts rotations has no such bound: a slow fan may be a dying one.
const slowestFan = 100

// Plausible reports whether hardware can have the value, in the metric's unit.
func (m Metric) Plausible(v float64) bool {
	b := bounds[m]
	return b == (bound{}) || v >= b.least && v <= b.most
}

// sentinels are the ends of the ranges of integers, by which devices say that they have no reading.
var sentinels = map[float64]bool{
	math.MaxInt16: true, math.MinInt16: true, math.MaxUint16: true,
	math.MaxInt32: true, math.MinInt32: true, math.MaxUint32: true, math.MaxInt32 + 1: true,
	math.MaxInt64: true, math.MinInt64: true, math.MaxUint64: true,
}

// Sentinel reports whether an integer, as the device sent it, stands for "no reading" of the metric. Metrics without a bound have no
// such numbers.
func (m Metric) Sentinel(raw float64) bool { return bounds[m] != (bound{}) && sentinels[raw] }

// Scaled converts a number of a device by scale to the metric's unit; ok is false if the number is a [Metric.Sentinel] or if the result is not
// [Metric.Plausible], or a fan's speed of less than slowestFan. A number that is only plausible as a signed one, of 16, 32 or 64 bits, is taken as that: agents send -5 as 4294967291.
func (m Metric) Scaled(raw float64, scale func(float64) float64) (v float64, ok bool) {
	v = scale(raw)
	if m.Sentinel(raw) || m == FanSpeed && v > 0 && v < slowestFan {
		return v, false
	}
	if m.Plausible(v) {
		return v, true
	}
	for _, bits := range [...]int{16, 32, 64} {
		if half := math.Ldexp(1, bits-1); raw >= half && raw < 2*half {
			if wrapped := scale(raw - 2*half); m.Plausible(wrapped) && raw-2*half < -1 {
				return wrapped, true
			}
		}
	}
	return v, false
}
