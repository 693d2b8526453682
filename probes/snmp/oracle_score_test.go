package snmp

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// vendorOf is the enterprise of an OID, or the standard MIB.
func vendorOf(oid string) string {
	arcs := strings.Split(oid, ".")
	return strings.Join(arcs[:min(len(arcs), 7)], ".")
}

func (s *score) print(t *testing.T, recordings int) {
	sum := s.sum()
	fmt.Printf("%-28s %7s %7s %7s %6s %7s %8s\n", "vendor", "sensors", "read", "recall", "wrong", "states≠", "crit=ok")
	for _, name := range slices.SortedFunc(maps.Keys(s.vendors), func(a, b string) int { return s.vendors[b].sensors - s.vendors[a].sensors }) {
		v := s.vendors[name]
		fmt.Printf("%-28s %7d %7d %6.1f%% %6d %7d %8d\n", name, v.sensors, v.read, 100*float64(v.read)/float64(v.sensors), v.wrong, v.otherState, v.criticalOK)
	}
	fmt.Printf("TOTAL %d recordings, %d errors: %d sensors, %d read, recall %.2f%%; wrong %d (%.2f%%), reviewed %d; of %d states %d differ, critical called ok %d; of %d devices %d have 90%% of their sensors\n",
		recordings, s.errors, sum.sensors, sum.read, 100*float64(sum.read)/float64(sum.sensors), sum.wrong, 100*float64(sum.wrong)/float64(max(1, sum.read+sum.wrong)),
		sum.reviewed, sum.states, sum.otherState, sum.criticalOK, s.devices, s.complete)
	fmt.Printf("%d devices give nothing (%.1f%%); %d results have values that hardware cannot have\n", s.nothing, 100*float64(s.nothing)/float64(max(1, s.devices)), s.nonsense)
	s.printIdentities()
	fmt.Printf("recognised %d devices with results, of %d only the vendor; of %d families %d are right (%.1f%%)\n", s.known, s.vendorOnly,
		s.known-s.vendorOnly, s.rightFamily, 100*float64(s.rightFamily)/float64(max(1, s.known-s.vendorOnly)))
	if dir := os.Getenv("ORACLE_DETAILS"); dir != "" {
		slices.Sort(s.wrong)
		write := func(name string, lines []string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
				t.Error(err)
			}
		}
		write("differ.txt", s.wrong)
		write("missing.txt", counted(s.tables))
		write("families.txt", counted(s.families))
		write("impossible.txt", s.impossible)
		write("names.txt", s.namesWithState)
		write("nameless.txt", s.nameless)
		write("twice.txt", s.twice)
		write("kinds.txt", s.otherKind)
	}
}

// sum is the tally of all vendors.
func (s *score) sum() (sum tally) {
	for _, v := range s.vendors {
		sum.sensors, sum.read, sum.wrong = sum.sensors+v.sensors, sum.read+v.read, sum.wrong+v.wrong
		sum.otherState, sum.criticalOK = sum.otherState+v.otherState, sum.criticalOK+v.criticalOK
		sum.states, sum.reviewed = sum.states+v.states, sum.reviewed+v.reviewed
	}
	return sum
}

// Bounds of the library, in parts of one.
const (
	leastRecall         = 0.75  // of the hardware sensors
	leastRecallImported = 0.80  // with what LibreNMS' files say
	mostWrong           = 0.001 // of what is read, states included, without what was reviewed
	leastFamilies       = 0.95  // of the families that it names, to the letter
	leastComplete       = 0.25  // of the devices: nine in ten of their sensors are read
	mostNothing         = 0.40  // of the devices: none of their sensors is read
	mostTwice           = 0.005 // of the readings: their name and quantity are there already
	mostOtherKinds      = 0.01  // of the components whose name says what they are
)

// judge fails where a bound does not hold.
func (s *score) judge(t *testing.T, imported bool) {
	sum := s.sum()
	if sum.criticalOK > 0 {
		t.Errorf("%d critical states are called ok", sum.criticalOK)
	}
	recall := leastRecall
	if imported {
		recall = leastRecallImported
	}
	least := func(what string, n, of int, want float64) {
		if share := float64(n) / float64(max(1, of)); share < want {
			t.Errorf("%s: %d of %d, %.2f%%, want at least %.2f%%", what, n, of, 100*share, 100*want)
		}
	}
	wrong := sum.wrong + sum.otherState
	least("sensors read", sum.read, sum.sensors, recall)
	least("values and states right", sum.read, sum.read+wrong, 1-mostWrong)
	least("families right", s.rightFamily, s.known-s.vendorOnly, leastFamilies)
	least("devices complete", s.complete, s.devices, leastComplete)
	least("devices of which something is read", s.devices-s.nothing, s.devices, 1-mostNothing)
	s.judgeIdentities(t, least)
}

func counted(m map[string]int) (lines []string) {
	for _, k := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], strings.Compare(a, b)) }) {
		lines = append(lines, fmt.Sprintf("%d %s", m[k], k))
	}
	return lines
}
