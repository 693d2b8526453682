package imports

import (
	"regexp"
	"slices"
	"strings"
)

// hardware matches words for hardware in names of objects, tables and MIBs.
var hardware = regexp.MustCompile(`(?i)fan|temp|therm|power|psu|supply|batter|volt|curren|amp|sensor|probe|disk|drive|raid|array|volume|memor|cool|chassis|module|card|envmon|environ|ups|outlet|pdu|rectif|hardware|health|enclosure|alarm|humid|optic|transceiv|node|component|entity|redundan|controller|processor|cpu|board|slot`)

// goodWords, warnWords and badWords are names of values in MIBs, in lower case and reduced to letters.
var (
	goodWords = words("ok normal good online optimal healthy operational active operable ready charged running green nominal batterynormal " +
		"up fullyoperational nonbatteryneedsreplacing nobatteryneedsreplacing noerror noerrors nofault goodinuse inservice present functional pass passed working " +
		"redundant fullyredundant powergood poweron onlinegood noalarm noalarms noneactive cleared installedok okay fullredundant batteryok")
	warnWords = words("warning warn degraded minor noncritical noncriticalupper noncriticallower noncriticalwarning predictivefailure predictive batterylow low high " +
		"lowwarning highwarning upperwarning lowerwarning belowlowerwarning aboveupperwarning marginal rebuilding weak notredundant redundancylost lostredundancy " +
		"nonredundant partial partiallyoperational caution yellow attention discharging onbattery onbypass stressed predictedfailure testing")
	badWords = words("failed fail failure fault faulty critical major down bad error nonoperational inoperable dead emergency alarm severe nonrecoverable " +
		"criticalupper criticallower nonrecoverableupper nonrecoverablelower lowcritical highcritical uppercritical lowercritical belowlowercritical aboveuppercritical " +
		"batterydepleted depleted red broken defective missing notfunctioning shutdown offline batteryneedsreplacing replace needsreplacement " +
		"batteryinfaultcondition overheat overtemperature stopped nofanspeed criticalalarm majoralarm lost stuck notworking powerfail powerfailed")
)

func words(s string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields(s) {
		all[w] = true
	}
	return all
}

// statesByName maps values to states by their names; it returns nil unless some are good and some bad: otherwise
// the object is not a state of health. Unlisted names mean unknown.
func statesByName(names map[string]string) map[string]string {
	all := map[string]string{}
	good, bad := false, false
	for number, name := range names {
		word := strings.ToLower(notLetter.ReplaceAllString(name, ""))
		state := "unknown"
		switch {
		case goodWords[word]:
			state, good = "ok", true
		case warnWords[word]:
			state, bad = "degraded", true
		case badWords[word]:
			state, bad = "failed", true
		}
		all[named(name, number)] = state
	}
	if !good || !bad {
		return nil
	}
	return all
}

var notLetter = regexp.MustCompile(`[^A-Za-z]+`)

// unitWords are units as in MIBs and profiles: in lower case, without blanks and punctuation.
var unitWords = map[string]struct {
	metric string
	factor float64
}{
	"celsius": {"temperature", 1}, "cel": {"temperature", 1}, "c": {"temperature", 1}, "degreescelsius": {"temperature", 1},
	"degreecelsius": {"temperature", 1}, "degreesc": {"temperature", 1}, "degc": {"temperature", 1}, "°c": {"temperature", 1},
	"degreescentigrade": {"temperature", 1}, "centigrade": {"temperature", 1}, "degreec": {"temperature", 1},
	"v": {"voltage", 1}, "volt": {"voltage", 1}, "volts": {"voltage", 1}, "mv": {"voltage", 1e-3}, "millivolt": {"voltage", 1e-3},
	"millivolts": {"voltage", 1e-3}, "rmsvolts": {"voltage", 1}, "voltsrms": {"voltage", 1},
	"a": {"current", 1}, "amp": {"current", 1}, "amps": {"current", 1}, "ampere": {"current", 1}, "amperes": {"current", 1},
	"ma": {"current", 1e-3}, "milliamp": {"current", 1e-3}, "milliamps": {"current", 1e-3}, "milliamperes": {"current", 1e-3},
	"rmsamp": {"current", 1}, "rmsamps": {"current", 1}, "µa": {"current", 1e-6}, "microamps": {"current", 1e-6},
	"w": {"power", 1}, "watt": {"power", 1}, "watts": {"power", 1}, "mw": {"power", 1e-3}, "milliwatt": {"power", 1e-3},
	"milliwatts": {"power", 1e-3}, "kw": {"power", 1e3}, "kilowatts": {"power", 1e3},
	"wh": {"energy", 3600}, "watthours": {"energy", 3600}, "kwh": {"energy", 3.6e6}, "kilowatthours": {"energy", 3.6e6},
	"hz": {"frequency", 1}, "hertz": {"frequency", 1},
	"rpm": {"fan_speed", 1}, "revmin": {"fan_speed", 1}, "revolutionsperminute": {"fan_speed", 1}, "revolutionmin": {"fan_speed", 1},
	"dbm": {"optical", 1}, "dbmw": {"optical", 1},
	"rh": {"humidity", 0.01}, "%rh": {"humidity", 0.01}, "percentrh": {"humidity", 0.01}, "relativehumidity": {"humidity", 0.01},
}

var fraction = regexp.MustCompile(`(?i)^(?:(tenths?|hundredths?|thousandths?)(?: of)?(?: an?\b)?|(0?\.\d+|1/1000?)) *(.+)$`)

var fractions = map[string]float64{"tenth": 0.1, "tenths": 0.1, "hundredth": 0.01, "hundredths": 0.01, "thousandth": 1e-3, "thousandths": 1e-3, "1/10": 0.1, "1/100": 0.01, "1/1000": 1e-3}

// kindsOf maps a metric to the kind of component that has only this reading.
var kindsOf = map[string]string{
	"temperature": "temperature", "voltage": "voltage", "current": "current", "power": "power_meter", "energy": "power_meter", "frequency": "frequency",
	"fan_speed": "fan", "fan_ratio": "fan", "optical": "network", "humidity": "humidity", "charge": "battery", "load": "power_supply", "time_left": "battery",
}

// notReadings matches names of objects with a unit that are not current readings.
var notReadings = regexp.MustCompile(`(?i)limit|thresh|max|(?-i:[Mm]in(?:imum)?(?:[A-Z_]|$))|nominal|rated|rating|peak|highest|lowest|shutdown|warning|critical|setpoint|config|average|avg|capab|available|budget|(?-i:Admin)|hyster|alarm`)

// quantityOf returns the quantity that an object measures: by its unit, and for a percentage or a time also by its name.
func quantityOf(unit, name string) (metric, kind string, factor float64, why string) {
	if notReadings.MatchString(name) {
		return "", "", 0, "by its name it is not a present reading"
	}
	factor = 1
	if m := fraction.FindStringSubmatch(strings.TrimSpace(unit)); m != nil {
		word := strings.ToLower(m[1] + m[2])
		if f, ok := fractions[word]; ok {
			factor = f
		} else {
			switch strings.TrimLeft(word, "0") {
			case ".1":
				factor = 0.1
			case ".01":
				factor = 0.01
			case ".001":
				factor = 1e-3
			default:
				return "", "", 0, "its unit is not understood: " + unit
			}
		}
		unit = m[3]
	}
	word := strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "", "(", "", ")", "", "{", "", "}", "", "/", "").Replace(unit))
	word = strings.TrimPrefix(word, "rms")
	for _, kind := range []string{"dc", "ac", "rms"} {
		if s := strings.TrimSuffix(word, kind); s != "" {
			word = s
		}
	}
	if u, ok := unitWords[word]; ok {
		return u.metric, kindsOf[u.metric], factor * u.factor, ""
	}
	metric, by, why := byName(word, strings.ToLower(name))
	return metric, kindsOf[metric], factor * by, why
}

// byName determines by the name what a percentage or a time refers to.
func byName(unit, name string) (metric string, factor float64, why string) {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) })
	}
	switch unit {
	case "%", "percent", "percentage", "percents":
		switch {
		case has("humid"):
			return "humidity", 0.01, ""
		case has("batter") && has("charge", "capacity"), has("chargeremaining"):
			return "charge", 0.01, ""
		case has("fan"):
			return "fan_ratio", 0.01, ""
		case has("load") && has("ups", "output", "outlet", "supply", "rectif"):
			return "load", 0.01, ""
		}
		return "", 0, "a percentage that is not in the vocabulary"
	case "s", "sec", "second", "seconds", "min", "minute", "minutes", "h", "hour", "hours":
		if !has("remaining", "runtime", "timeleft") || !has("batter", "ups", "runtime") {
			return "", 0, "a time that is not in the vocabulary"
		}
		return "time_left", map[byte]float64{'s': 1, 'm': 60, 'h': 3600}[unit[0]], ""
	}
	return "", 0, "its unit is not in the vocabulary"
}
