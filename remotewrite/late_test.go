package remotewrite

import (
	"slices"
	"testing"
)

func TestStandings(t *testing.T) {
	ss := testSeries(6)
	taken, refusedOne, unknown, twin := ss[0], ss[1], ss[2], ss[3]
	refusedTwice, refusedOften := ss[4], ss[5]
	refusedTwice.newest, refusedTwice.newestIn = noneTakenOneRefused, refusedSamples-1
	refusedOften.newest, refusedOften.newestIn = noneTakenOneRefused, refusedSamples
	taken.newest, refusedOne.newest, unknown.newest = 100, noneTakenOneRefused, noneTaken
	twin.hash, twin.newest = taken.hash, noneTaken // relabelling has made them one
	for _, tc := range []struct {
		name   string
		points []point
		want   []standing
	}{
		{"what is newer is fresh", []point{{series: taken, t: 101}, {series: taken, t: 102}}, []standing{fresh, fresh}},
		{"what is as old is late", []point{{series: taken, t: 99}, {series: taken, t: 100}}, []standing{late, late}},
		{"a step within the batch", []point{{series: taken, t: 110}, {series: taken, t: 105}, {series: taken, t: 111}}, []standing{fresh, late, fresh}},
		{"nothing taken yet", []point{{series: unknown, t: 5}, {series: unknown, t: 6}, {series: unknown, t: 6}}, []standing{unproven, unproven, late}},
		{"one refused", []point{{series: refusedOne, t: 5}}, []standing{late}},
		{"one refused, several come", []point{{series: refusedOne, t: 5}, {series: refusedOne, t: 6}}, []standing{unproven, unproven}},
		{"two that are one", []point{{series: twin, t: 100}, {series: twin, t: 101}, {series: taken, t: 101}}, []standing{late, fresh, late}},
		{"refused for its series", []point{{series: refusedTwice, t: 5}}, []standing{refusedSeries}},
		{"perhaps refused for its series, several come", []point{{series: refusedTwice, t: 5}, {series: refusedTwice, t: 6}}, []standing{unproven, unproven}},
		{"refused for its series, several come", []point{{series: refusedOften, t: 5}, {series: refusedOften, t: 6}}, []standing{refusedSeries, refusedSeries}},
		{"each by itself", []point{{series: unknown, t: 1}, {series: taken, t: 1}, {series: taken, t: 200}}, []standing{unproven, late, fresh}},
	} {
		if got := standings(tc.points); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	part, others, is := firstPart([]point{{series: unknown, t: 1}, {series: taken, t: 1}, {series: taken, t: 200}, {series: taken, t: 201}})
	if is != fresh || len(part) != 2 || part[0].t != 200 || len(others) != 2 || others[0].series != unknown {
		t.Errorf("the first part is %v of standing %v, the others are %v", part, is, others)
	}
}

// Of late samples those are asked for that are nearest to what the target takes, of different
// series, and in the end each.
func TestLateWitnesses(t *testing.T) {
	ss := testSeries(9)
	var points []point
	for i, s := range ss {
		s.newest = 100
		if i == 0 {
			s.newest = 200 // the furthest
		}
		points = append(points, point{series: s, seq: 1, t: 40}, point{series: s, seq: 2, t: 50})
	}
	sh, asked := &shard{}, map[*series]bool{}
	for range 2 * len(points) {
		witnesses, others := sh.lateWitnesses(points)
		if len(witnesses) != lateWitnesses || len(others) != len(points)-lateWitnesses {
			t.Fatalf("%d witnesses, %d others", len(witnesses), len(others))
		}
		for _, w := range witnesses {
			asked[w.series] = true
			if w.t != 50 || w.series == ss[0] {
				t.Errorf("%d of series %d is asked for", w.t, slices.Index(ss, w.series))
			}
		}
	}
	if len(asked) != len(ss)-1 {
		t.Errorf("%d of %d series are ever asked for", len(asked), len(ss)-1)
	}
}

// A target that takes late samples gets them all, in its own time; one bad among them is
// found, and does not make it one that refuses late samples.
func TestLateSamplesAreNoEvidenceWhenTaken(t *testing.T) {
	q := &Queue{}
	q.sawLate(0, 2)
	q.sawLate(40, 1)
	q.sawLate(0, 2)
	if q.refusesLate() {
		t.Error("a target that took late samples meanwhile counts as one that takes none")
	}
	if q.sawLate(0, 1); !q.refusesLate() {
		t.Error("three late samples were refused alone, and it does not show")
	}
}
