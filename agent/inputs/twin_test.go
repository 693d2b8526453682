package inputs

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// Series that become the same at a target are found, whichever is there first and whoever brings them, and are forgotten when one
// of them ends.
func TestTwins(t *testing.T) {
	name := func(name string, kv ...string) labels.Labels {
		return labels.FromStrings(append([]string{"__name__", name}, kv...)...)
	}
	for what, tc := range map[string]struct {
		first, second labels.Labels
		same          bool
	}{
		"an external label":        {name("m"), name("m", "site", "lab"), true},
		"one of two":               {name("m", "rack", "7"), name("m", "site", "lab"), true},
		"both of two":              {name("m", "rack", "7", "site", "lab"), name("m"), true},
		"another value":            {name("m"), name("m", "site", "other"), false},
		"another value beside":     {name("m", "rack", "8"), name("m", "rack", "8", "site", "lab"), true},
		"a blank and a point":      {name("x y"), name("x.y"), true},
		"a name without escaping":  {name("x y"), name("x_y"), true},
		"a label":                  {name("m", "a.b", "1"), name("m", "a_b", "1"), true},
		"a label with other value": {name("m", "a.b", "1"), name("m", "a_b", "2"), false},
		"all at once":              {name("x.y", "site", "lab"), name("x y", "rack", "7"), true},
	} {
		for _, turned := range []bool{false, true} {
			for _, alone := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					r := newRig()
					r.Become(labels.FromStrings("site", "lab", "rack", "7"))
					a, b := r.Input("probe", "pa", Settings{}), r.Input("probe", "pb", Settings{})
					if alone {
						b = a
					}
					one, two := tc.first, tc.second
					if turned {
						one, two = two, one
					}
					add := func(in *Input, ls labels.Labels, v float64) {
						t.Helper()
						app := in.AppenderV2(t.Context())
						if _, err := app.Append(0, ls, 0, time.Now().UnixMilli(), v, nil, nil, storage.AOptions{}); err != nil {
							t.Fatal(err)
						}
						if err := app.Commit(); err != nil {
							t.Fatal(err)
						}
					}
					add(a, name("z"), 1)
					for range 3 {
						add(a, one, 1)
						add(b, two, 2)
						time.Sleep(time.Second)
					}
					var want []Duplicate
					if tc.same {
						want = []Duplicate{{Input: a.String(), Other: b.String(), Series: 1, Samples: 3, Example: one.String() + " and " + two.String(), Sent: true}}
					}
					got := r.Duplicates()
					for i := range got {
						got[i].Since, got[i].Last = time.Time{}, time.Time{}
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("%s, turned %t, alone %t: -want +got:\n%s", what, turned, alone, diff)
					}
					add(b, two, stale())
					for range 15 {
						time.Sleep(time.Minute)
						add(a, name("z"), 1)
						add(a, one, 1)
					}
					if got := r.Duplicates(); len(got) != 0 {
						t.Errorf("%s: %+v is still there", what, got)
					}
				})
			}
		}
	}
}

// New external labels apply to the series that are there.
func TestTwinsAfterAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		in := r.Input("probe", "pa", Settings{})
		add := func(ls ...string) {
			app := in.AppenderV2(t.Context())
			if _, err := app.Append(0, labels.FromStrings(ls...), 0, time.Now().UnixMilli(), 1, nil, nil, storage.AOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		both := func() { add("__name__", "m"); add("__name__", "m", "site", "lab") }
		both()
		r.Become(labels.FromStrings("site", "lab"))
		both()
		if got := r.Duplicates(); len(got) != 1 {
			t.Errorf("%+v", got)
		}
	})
}
