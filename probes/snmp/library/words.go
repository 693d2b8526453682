package library

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"hwsagent/probes/hw"
)

// quantity is the meaning of a word of the dialect: a row of the vocabulary, its limits, and the kind of
// a sensor that is a separate component.
type quantity struct {
	metric, limit hw.Metric // limit is hw.Info if there is none
	kind          hw.Kind
}

// quantities are the words for metrics in definitions. Values are scaled to the metric's unit:
// ratios from 0 to 1, seconds, degrees Celsius.
var quantities = map[string]quantity{
	"temperature": {hw.TemperatureNow, hw.TemperatureLimit, hw.Temperature},
	"voltage":     {hw.VoltageNow, hw.VoltageLimit, hw.Voltage},
	"current":     {hw.CurrentNow, hw.CurrentLimit, hw.Current},
	"power":       {hw.Power, hw.PowerLimit, hw.PowerMeter},
	"energy":      {hw.Energy, hw.Info, hw.PowerMeter},
	"fan_speed":   {hw.FanSpeed, hw.FanSpeedLimit, hw.Fan},
	"fan_ratio":   {hw.FanSpeedRatio, hw.Info, hw.Fan},
	"humidity":    {hw.HumidityNow, hw.HumidityLimit, hw.Humidity},
	"frequency":   {hw.FrequencyNow, hw.Info, hw.Frequency},
	"optical":     {hw.OpticalPower, hw.OpticalPowerLimit, hw.Network},
	"charge":      {hw.BatteryCharge, hw.BatteryChargeLimit, hw.Battery},
	"time_left":   {hw.BatteryTimeLeft, hw.Info, hw.Battery},
	"on_battery":  {hw.OnBattery, hw.Info, hw.PowerSupply},
	"load":        {hw.PowerSupplyUtilization, hw.Info, hw.PowerSupply},
	"endurance":   {hw.DiskEndurance, hw.Info, hw.PhysicalDisk},
	"disk_size":   {hw.DiskSize, hw.Info, hw.PhysicalDisk},
}

// conversions are from units that need more than a factor.
var conversions = map[string]func(float64) float64{
	"fahrenheit": func(v float64) float64 { return (v - 32) * 5 / 9 },
	"kelvin":     func(v float64) float64 { return v - 273.15 },
	// To decibels above a milliwatt. Zero power has no logarithm: the result is infinite or not a number.
	"milliwatts": func(v float64) float64 { return 10 * math.Log10(v) },
}

// limits are the values of hw_limit_type.
var limits = []string{"high.critical", "high.degraded", "low.critical", "low.degraded"}

// statuses are the words for the meaning of a state.
var statuses = map[string]hw.Status{
	"ok": hw.OK, "degraded": hw.Degraded, "failed": hw.Failed, "predicted_failure": hw.OK | hw.PredictedFailure,
	"needs_cleaning": hw.OK | hw.NeedsCleaning, "unknown": hw.Unknown,
}

func words[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// stateInName are states that agents write into a sensor's description: at the end after a comma or a colon, or after a blank if the word
// is no part of a sensor's name.
var stateInName = regexp.MustCompile(`(?i)(\s*[,;:]\s*\(?(green|yellow|red|black|normal|warning|critical|shut ?down|not ?(present|exist|functioning)|absent|faulty|failed|fail|good|bad|okay|ok)\)?|` +
	`\s+(is\s+)?(normal|faulty|not ?(present|exist|functioning)))\s*(?P<end>,|$)`)

// withoutState cuts states out of a name. With them a component would become another one whenever its state changes.
func withoutState(name string) string {
	for {
		cut := strings.TrimRight(stateInName.ReplaceAllString(name, "${end}"), " ,;:")
		if cut == name || cut == "" {
			return name
		}
		name = cut
	}
}

var (
	fanInName    = regexp.MustCompile(`(?i)\bfan(s|[ -]?tray)?[ -]?[0-9]*\b`)
	supplyInName = regexp.MustCompile(`(?i)\b(psu|power[ -]?suppl(y|ies))[ -]?[0-9]*\b`)
)

// kindInName returns the kind of a part without one of its own, by its name: a fan or a power supply, but not the fan of a power supply.
func kindInName(name string) hw.Kind {
	fan, supply := fanInName.MatchString(name), supplyInName.MatchString(name)
	switch {
	case fan && !supply:
		return hw.Fan
	case supply && !fan:
		return hw.PowerSupply
	}
	return hw.Module
}
