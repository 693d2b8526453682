package imports

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// states maps the values of a state by their severity: 0 ok, 1 warning, 2 critical, others unknown.
func states(x node, texts bool) map[string]string {
	words := []string{"ok", "degraded", "failed"}
	all := map[string]string{}
	seen := map[string]bool{}
	for _, s := range x.list() {
		v, err := strconv.Atoi(s.get("value").text())
		if err != nil {
			continue
		}
		state := "unknown"
		if g, err := strconv.Atoi(s.get("generic").text()); err == nil && g >= 0 && g < len(words) {
			state = words[g]
		}
		number := strconv.Itoa(v)
		descr := strings.TrimSpace(s.get("descr").text())
		if key := named(descr, number); !seen[number] {
			seen[number] = true
			all[key] = state
		}
		if low := strings.ToLower(descr); texts && low != "" && !seen[low] && !strings.ContainsAny(low, "()") {
			seen[low] = true
			all[low] = state
		}
	}
	return all
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// named returns NAME(NUMBER), or the number if there is no name.
func named(descr, number string) string {
	if word := strings.Trim(notWord.ReplaceAllString(descr, "_"), "_"); word != "" && len(word) < 60 {
		return word + "(" + number + ")"
	}
	return number
}

// kindWords give the kind of component by a word in the name of a state; the first match wins.
var kindWords = []struct{ word, kind string }{
	{"fan", "fan"}, {"psu", "power_supply"}, {"powersupply", "power_supply"}, {"power supply", "power_supply"}, {"pwrsupply", "power_supply"}, {"rectifier", "power_supply"},
	{"battery", "battery"}, {"raid", "logical_disk"}, {"volume", "logical_disk"}, {"disk", "physical_disk"}, {"drive", "physical_disk"},
	{"temp", "temperature"}, {"humidity", "humidity"}, {"voltage", "voltage"}, {"memory", "memory"}, {"outlet", "outlet"},
}

// kindOf returns the kind of component of a class; for states and loads it depends on the words of a name.
func kindOf(to class, words string) string {
	words = strings.ToLower(words)
	switch to.metric {
	case "":
		for _, k := range kindWords {
			if strings.Contains(words, k.word) {
				return k.kind
			}
		}
	case "load":
		if strings.Contains(words, "fan") {
			return "fan"
		}
	}
	return to.kind
}

func sortedUnique(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}
