package snmp

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// Rows are found in whichever order they and their columns come, as in a map.
func TestRowsInAnyOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var table rows
	strayed := false
	for round := range 200 {
		table.reset()
		known := map[string]string{}
		for n := range 100 {
			index := oid{uint32(n % 40)}
			if round%2 == 1 { // else in order, as devices have them
				index = make(oid, 1+random.IntN(3))
				for i := range index {
					index[i] = random.Uint32N(4)
				}
			}
			got, ok := table.find(index)
			if want, was := known[index.key()]; ok != was || ok && got[0] != want {
				t.Fatalf("round %d: row %s is %q, %t, want %q, %t", round, index, got, ok, want, was)
			}
			if !ok {
				known[index.key()] = strconv.Itoa(n)
				table.add(index, []string{strconv.Itoa(n)})
			}
		}
		strayed = strayed || table.strays != nil
		if round%2 == 0 && table.strays != nil {
			t.Fatal("a row in order is a stray")
		}
	}
	if !strayed {
		t.Error("no row came out of order: the test says little")
	}
}

// The metric of an OID is the outermost that contains it, and of two at one place the last.
func TestFindColumns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	some := func() oid {
		o := make(oid, 1+random.IntN(5))
		for i := range o {
			o[i] = random.Uint32N(3)
		}
		return o
	}
	found := 0
	for range 300 {
		all := make([]*compiledMetric, random.IntN(12))
		for i := range all {
			all[i] = &compiledMetric{at: some()}
		}
		found += checkColumns(t, all, some)
	}
	if found == 0 {
		t.Error("no OID has a metric: the test says nothing")
	}
}

// checkColumns compares find with a look at all metrics, and returns how many OIDs have one.
func checkColumns(t *testing.T, all []*compiledMetric, some func() oid) (found int) {
	t.Helper()
	c := newColumns(all)
	for range 50 {
		o := some()
		var want *compiledMetric
		for _, m := range slices.Backward(all) {
			if m.contains(o) && (want == nil || len(m.at) < len(want.at)) {
				want = m
			}
		}
		if got := c.find(o); got != want {
			t.Fatalf("%s is of %+v, want %+v", o, got, want)
		}
		if want != nil {
			found++
		}
	}
	return found
}
