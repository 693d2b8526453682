package nut

import (
	"bufio"
	"crypto/sha1" // #nosec G505 -- it chooses files
	"encoding/hex"
	"math"
	"net"
	"strconv"
	"strings"
	"testing"

	"hwsagent/probes"
)

// permitted are the dumps to develop with: those whose name's SHA-1 begins with none of 1, 5, 9 and d.
func permitted(name string) bool {
	sum := sha1.Sum([]byte(name)) // #nosec G401 -- it chooses files
	return !strings.ContainsAny(hex.EncodeToString(sum[:1])[:1], "159d")
}

// clientOf returns a client to which upsd says this.
func clientOf(said string) *client {
	there, here := net.Pipe()
	_ = there.Close()
	return &client{conn: deaf{here}, in: bufio.NewReaderSize(strings.NewReader(said), maxLine)}
}

// deaf takes what is written.
type deaf struct{ net.Conn }

func (deaf) Write(p []byte) (int, error) { return len(p), nil }

// unit returns what one unit of a variable is in the base unit, by the last word that names a quantity.
func unit(name string) float64 {
	for _, percent := range []string{"charge", "load", "humidity"} {
		if strings.Contains(name, percent) {
			return 0.01
		}
	}
	return 1
}

// compare reads a dump and counts the numbers in it, those that are missing or wrong, and those that are in hw_*, too.
func compare(t *testing.T, file, dump string) (numbers, wrong, inHW int) {
	t.Helper()
	vars := parseDev(dump)
	p, err := New(Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := probes.NewRound(0)
	p.add(r, "x", vars)
	raw := map[string]float64{}
	for _, s := range r.Samples() {
		if name, ok := strings.CutPrefix(s.Family.Name, prefix); ok && len(s.Labels) == 2 {
			raw[name] = s.Value
		}
	}
	_ = text(t, r) // complains of series that are there twice
	values := map[string][]float64{}
	for _, c := range components("x", vars) {
		for _, reading := range c.Readings {
			inHW++
			values[c.ID] = append(values[c.ID], reading.Value)
		}
		for _, reading := range c.Refused { // read, and known to mean no reading
			values[c.ID] = append(values[c.ID], reading.Value)
		}
	}
	seen := map[string]bool{}
	for _, v := range vars {
		want, err := strconv.ParseFloat(v.value, 64)
		if err != nil || seen[v.name] || texts.MatchString(v.name) {
			continue
		}
		seen[v.name] = true
		numbers++
		if got, ok := raw[underscores(v.name)]; !ok || got != want {
			wrong++
			t.Errorf("%s: %s is %v (%t), want %v", file, v.name, got, ok, want)
		}
		place, q, ok := meaning(v.name)
		if _, exact := raw[underscores(v.name+".warning")]; !ok || exact && !strings.HasSuffix(v.name, "charge") {
			continue // a limit that has a more exact name, too
		}
		id := "ups:x"
		if place != "" {
			id += "/" + place
		}
		if place != "" && place != "battery" {
			id += "/" + q.kind.String()
		}
		found := false
		for _, got := range values[id] {
			found = found || math.Abs(got-want*unit(v.name)) <= 1e-6*math.Abs(got)
		}
		if !found && v.name != "output.realpower" {
			wrong++
			t.Errorf("%s: %s = %v is not among %v of %s", file, v.name, want, values[id], id)
		}
	}
	return numbers, wrong, inHW
}
