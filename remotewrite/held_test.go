package remotewrite

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/tenant"
	"hwsagent/wal"
)

// TestHeldSamplesAreAMap: after any entries, admitted or not, and whenever the window was empty, the samples are those of a map, found by
// series or by labels. Some series have the labels of another one once samples are found by labels.
func TestHeldSamplesAreAMap(t *testing.T) {
	for name, start := range map[string]uint32{"first entries": 0, "numbers overflow": math.MaxUint32 - 200} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			h := &heldSamples{entry: start}
			h.empty()
			type value struct {
				t int64
				v float64
			}
			before, now := map[uint64]value{}, map[uint64]value{} // of earlier entries, and of the present one
			all := []*series{}
			for i := range uint64(16) {
				all = append(all, &series{hash: i << 60, entry: start}) // alike in low bits
			}
			for range 200 {
				all = append(all, &series{hash: r.Uint64(), entry: start})
			}
			answers := map[finding]int{}
			for step := range 600 {
				if step == 300 {
					h.compareLabels(slices.All(all))
					for _, m := range []map[uint64]value{before, now} {
						for hash := range m {
							m[hash] = value{t: math.MinInt64}
						}
					}
					all = append(all, &series{hash: all[0].hash}, &series{hash: all[7].hash})
				}
				h.begin()
				maps.Copy(before, now)
				clear(now)
				at := r.IntN(len(all))
				shard := []point{}
				for range r.IntN(80) {
					if at = (at + 1) % len(all); r.IntN(8) == 0 { // most series come in one order
						at = r.IntN(len(all))
					}
					p := point{series: all[at], t: r.Int64N(3), v: float64(r.IntN(2))}
					hash := p.series.hash
					want := notHeld
					earlier, isEarlier := before[hash]
					present, isPresent := now[hash]
					byLabels := step >= 300
					switch {
					case byLabels && (isPresent && present.t == p.t && present.v != p.v || !isPresent && isEarlier && earlier.t == p.t && earlier.v != p.v):
						want = contradicts
					case isPresent:
						want = fromEntry
					case isEarlier:
						want = fromEarlier
					}
					if want == notHeld || want == fromEntry {
						now[hash] = value{p.t, p.v}
					}
					got := h.hold(&p)
					if answers[got]++; got != want {
						t.Fatalf("step %d: %d, want %d", step, got, want)
					}
					shard = append(shard, p)
				}
				switch r.IntN(10) {
				case 0:
					h.empty()
					clear(before)
					clear(now)
				case 1:
					h.undo([][]point{nil, shard})
					clear(now)
				}
			}
			if len(answers) != 4 {
				t.Errorf("not all answers came: %v", answers)
			}
		})
	}
}

// TestNoTableMeansNoEqualLabels: whatever external labels and rules do to series, two of them have the same labels at the target only if
// their samples are found by labels. External labels alone need no table, unless a series has one of them itself.
func TestNoTableMeansNoEqualLabels(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	equal, tables, none := 0, 0, 0
	for range 3000 {
		external := labels.FromStrings("site", "a")
		rule := []string{``, ``, `[{action: labeldrop, regex: c}]`, `[{target_label: b, replacement: x}]`, `[{source_labels: [c], target_label: b}]`,
			`[{action: drop, source_labels: [b], regex: x}]`}[r.IntN(6)]
		c := newSeriesCache(external, rules(t, rule))
		own, sent := map[string]bool{}, map[string]bool{}
		for slot := range 1 + r.IntN(8) {
			b := labels.NewBuilder(labels.FromStrings("__name__", []string{"up", "up.s", "up_s"}[r.IntN(3)]))
			for _, name := range []string{"b", "c", "site"} {
				if r.IntN(3) == 0 {
					b.Set(name, []string{"x", "y", "a"}[r.IntN(3)])
				}
			}
			ls := b.Labels()
			if own[ls.String()] {
				continue
			}
			own[ls.String()] = true
			to := c.get(wal.NewSeries(slot, ls, nil))
			if to.dropped() {
				continue
			}
			if text := to.labels().String(); sent[text] {
				equal++
				if c.held.byHash == nil {
					t.Fatalf("rules %s: two series are %s, and samples are not found by labels", rule, text)
				}
			} else {
				sent[text] = true
			}
		}
		if c.held.byHash == nil {
			none++
		} else {
			tables++
		}
	}
	if equal < 100 || tables < 100 || none < 100 {
		t.Errorf("%d equal series, %d tables, %d without", equal, tables, none)
	}
	c := newSeriesCache(labels.FromStrings("site", "a"), nil)
	for i, name := range []string{"up", "down", "zz"} {
		c.get(wal.NewSeries(i, labels.FromStrings("__name__", name, name, "1"), nil))
	}
	if c.held.byHash != nil {
		t.Error("series that get the same external label need a table")
	}
}

// TestHeldSeriesThatChange: the window knows a series of which it holds a sample after the series gets other metadata, and an entry waits
// if it ends one, because a new one with its labels would not be known.
func TestHeldSeriesThatChange(t *testing.T) {
	c := newSeriesCache(labels.EmptyLabels(), nil)
	ls := labels.FromStrings("__name__", "up")
	was := wal.NewSeries(3, ls, nil)
	c.held.empty()
	c.held.begin()
	c.held.hold(&point{series: c.get(was)})
	c.held.begin()
	now := wal.NewSeries(3, ls, &wal.About{Family: "up"})
	if got := c.held.hold(&point{series: c.get(now)}); got != fromEarlier {
		t.Errorf("with other metadata: %d", got)
	}
	other := wal.NewSeries(3, labels.FromStrings("__name__", "down"), nil)
	if c.end(other) {
		t.Error("the end of another series waits")
	}
	if !c.end(now) {
		t.Error("the end of a series of which a sample is held does not wait")
	}
	if got := c.held.hold(&point{series: c.get(other)}); got != notHeld {
		t.Errorf("another series in the slot: %d", got)
	}
	c.held.empty()
	if c.end(other) {
		t.Error("the end of a series waits although the window is empty")
	}
}

// TestHeldSeriesOfAForgottenTenant: the window knows a series of which it holds a sample also after its tenant is forgotten and the default
// target sends it.
func TestHeldSeriesOfAForgottenTenant(t *testing.T) {
	entry := config.Config{Target: config.TargetConfig{Tenant: &config.TenantConfig{Label: "team", Default: "d", MaxTenants: 3}}}
	tenants := tenant.NewRegistry(&entry, nil, func(string) error { return nil })
	c := newSeriesCache(labels.EmptyLabels(), nil)
	c.tenant = tenant.NewFilter(entry.ForRest(), tenants)
	s := wal.NewSeries(0, labels.FromStrings("__name__", "up", "team", "x"), nil)
	c.held.empty()
	c.held.begin()
	c.held.hold(&point{series: c.at(s, 1)})
	tenants.Forget("x")
	c.held.begin()
	if got := c.held.hold(&point{series: c.at(s, 2)}); got != fromEarlier {
		t.Errorf("after the tenant was forgotten: %d", got)
	}
}
