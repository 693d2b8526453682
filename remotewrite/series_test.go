package remotewrite

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"
	"go.yaml.in/yaml/v4"

	"hwsagent/internal/refs"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

func rules(t testing.TB, text string) []*relabel.Config {
	t.Helper()
	var rules []*relabel.Config
	if err := yaml.Unmarshal([]byte(text), &rules); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if err := r.Validate(config.NameValidation); err != nil {
			t.Fatal(err)
		}
	}
	return rules
}

func TestSeriesLabels(t *testing.T) {
	for _, tc := range []struct {
		name     string
		external labels.Labels
		rules    string
		in, want labels.Labels
	}{
		{
			name: "as it is",
			in:   labels.FromStrings("__name__", "up", "job", "host"),
			want: labels.FromStrings("__name__", "up", "job", "host"),
		}, {
			name:     "external labels fill in and do not override",
			external: labels.FromStrings("site", "fra1", "job", "other"),
			in:       labels.FromStrings("__name__", "up", "job", "host"),
			want:     labels.FromStrings("__name__", "up", "job", "host", "site", "fra1"),
		}, {
			name:     "rules see external labels",
			external: labels.FromStrings("site", "fra1"),
			rules:    `[{source_labels: [site, job], separator: /, target_label: where}, {regex: site, action: labeldrop}]`,
			in:       labels.FromStrings("__name__", "up", "job", "host"),
			want:     labels.FromStrings("__name__", "up", "job", "host", "where", "fra1/host"),
		}, {
			name:  "dropped",
			rules: `[{source_labels: [__name__], regex: go_.*, action: drop}]`,
			in:    labels.FromStrings("__name__", "go_goroutines"),
		}, {
			name:  "nothing left",
			rules: `[{regex: .*, action: labeldrop}]`,
			in:    labels.FromStrings("__name__", "up", "job", "host"),
		}, {
			name:  "a rule makes a label without a name",
			rules: `[{action: labelmap, regex: "j(.*)ob", replacement: "$1"}]`,
			in:    labels.FromStrings("__name__", "up", "job", "host"),
			want:  labels.FromStrings("__name__", "up", "job", "host"),
		}, {
			name: "utf-8 names are escaped",
			in:   labels.FromStrings("__name__", "hw.temperature:max", "hw.id", "a", "9x", "b", "x:y", "c"),
			want: labels.FromStrings("__name__", "hw_temperature:max", "_x", "b", "hw_id", "a", "x_y", "c"),
		}, {
			name: "names that become equal",
			in:   labels.FromStrings("__name__", "up", "a.b", "1", "a_b", "2", "a-b", "3"),
			want: labels.FromStrings("__name__", "up", "a_b", "3;1;2"),
		}, {
			name: "values become valid UTF-8",
			in:   labels.FromStrings("__name__", "up", "disk", "WD\xff\xfe1"),
			want: labels.FromStrings("__name__", "up", "disk", "WD\uFFFD1"),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newSeriesCache(tc.external, rules(t, tc.rules))
			got := c.get(wal.NewSeries(0, tc.in, nil))
			if d := cmp.Diff(tc.want.Map(), got.labels().Map()); d != "" {
				t.Errorf("labels (-want +got):\n%s", d)
			}
			if got.dropped() != tc.want.IsEmpty() {
				t.Errorf("dropped() = %v", got.dropped())
			}
			if got.hash != tc.want.Hash() && !got.dropped() {
				t.Error("hash is not that of the final labels")
			}
			got.labels().Validate(func(l labels.Label) error {
				if l.Name == "" || l.Value == "" {
					t.Errorf("label %q=%q", l.Name, l.Value)
				}
				return nil
			})
		})
	}
}

// TestSeriesSlotReused: a slot that is reused for another series does not have the old one's labels.
func TestSeriesSlotReused(t *testing.T) {
	c := newSeriesCache(labels.EmptyLabels(), nil)
	a := wal.NewSeries(7, labels.FromStrings("__name__", "a"), nil)
	b := wal.NewSeries(7, labels.FromStrings("__name__", "b"), nil)
	first := c.get(a)
	if c.get(a) != first {
		t.Error("a second look-up makes a new series")
	}
	if got := c.get(b); got.labels().Get("__name__") != "b" {
		t.Errorf("reused slot gives %v", got.labels())
	}
	if first.labels().Get("__name__") != "a" {
		t.Error("the evicted series changed")
	}
}

func TestSeriesLookupAllocatesNothing(t *testing.T) {
	c := newSeriesCache(labels.FromStrings("site", "fra1"), rules(t, `[{source_labels: [job], regex: "(.*)", target_label: work}]`))
	s := wal.NewSeries(3, labels.FromStrings("__name__", "up", "job", "host"), nil)
	c.get(s)
	if n := testing.AllocsPerRun(100, func() { c.get(s) }); n != 0 {
		t.Errorf("a look-up allocates %v times", n)
	}
}

func TestNoCustomBucketsIn1(t *testing.T) {
	for _, tc := range []struct {
		h    wal.Histogram
		want bool
	}{
		{wal.Histogram{H: &histogram.Histogram{Schema: 3}}, true},
		{wal.Histogram{FH: &histogram.FloatHistogram{Schema: -4}}, true},
		{wal.Histogram{H: &histogram.Histogram{Schema: histogram.CustomBucketsSchema}}, false},
		{wal.Histogram{FH: &histogram.FloatHistogram{Schema: histogram.CustomBucketsSchema}}, false},
	} {
		q := &Queue{cfg: config.Config{SendNativeHistograms: true}}
		if got := q.cfg.CarriesHistogram(tc.h.H, tc.h.FH); got != tc.want {
			t.Errorf("1.0 carries %+v: %v", tc.h, got)
		}
	}
}

// TestTargetsShareLabels: a target keeps no labels of its own, except those that its rules give to a single series, and
// a series is as small as its comment says, in either version.
func TestTargetsShareLabels(t *testing.T) {
	if size := unsafe.Sizeof(series{}); size > 32 {
		t.Errorf("a target keeps %d bytes of each series", size)
	}
	for _, newest := range []wire.Version{wire.V1, wire.V2} {
		for name, rest := range map[string]struct {
			rules string
			want  bool
		}{
			"external labels":              {``, true},
			"rules without effect":         {`[{action: labeldrop, regex: gone}]`, true},
			"rules that change all alike":  {`[{action: labeldrop, regex: job}, {target_label: to, replacement: x}]`, true},
			"rules that tell series apart": {`[{source_labels: [i], target_label: to}]`, false},
		} {
			c := newSeriesCache(labels.FromStrings("site", "a"), rules(t, rest.rules))
			c.forms = wire.NewForms(newest)
			one := c.get(wal.NewSeries(0, labels.FromStrings("__name__", "up", "i", "1", "job", strings.Repeat("host", 50)), nil))
			other := c.get(wal.NewSeries(1, labels.FromStrings("__name__", "down", "i", "2", "job", "x"), nil))
			if shares := one.form == other.form; shares != rest.want {
				t.Errorf("%s, %s: two series share a form: %t, want %t", newest, name, shares, rest.want)
			}
		}
	}
}

// TestGoneSeriesAreForgotten: a target's forms of series that no cursor has any more do not stay in memory.
func TestGoneSeriesAreForgotten(t *testing.T) {
	log, err := wal.Open(wal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	read := func(name string) (c *seriesCache, end func()) {
		r, err := log.Reader(name, wal.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		app := log.AppenderV2(t.Context())
		for i := range 100 {
			if _, err := app.Append(0, labels.FromStrings("__name__", name, "i", strconv.Itoa(i)), 0, 1, 1, nil, nil, storage.AppendV2Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
		e, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c = newSeriesCache(labels.EmptyLabels(), rules(t, `[{action: drop, source_labels: [i], regex: .*7}]`))
		for _, s := range e.Samples {
			c.get(s.Series)
		}
		return c, func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	kept := func(c *seriesCache) (n int) {
		for range c.forSlot.All() {
			n++
		}
		for _, list := range []*refs.Slots[wal.Series]{&c.removals, &c.orphans} {
			for range list.All() {
				n++
			}
		}
		return n
	}
	c, end := read("a")
	c.sweep()
	if n := kept(c); n != 100 {
		t.Errorf("%d of 100 series are kept while a cursor has them", n)
	}
	end()
	for i := range 120 { // a cache looks for them by itself
		c.get(wal.NewSeries(100+i, labels.FromStrings("__name__", "new", "i", strconv.Itoa(i)), nil))
	}
	if n := kept(c); n != 120 {
		t.Errorf("%d series are kept, 120 are there", n)
	}
}

// TestSlotsAreReused: whatever series follow each other in a slot, sent ones and others, the cache has the form of the
// present one, and keeps one pointer for it.
func TestSlotsAreReused(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	c := newSeriesCache(labels.EmptyLabels(), rules(t, `[{action: drop, source_labels: [kind], regex: removed}]`))
	now := map[int]*wal.Series{}
	for range 5000 {
		slot := r.IntN(50)
		s := now[slot]
		if s == nil || r.IntN(3) == 0 {
			s = wal.NewSeries(slot, labels.FromStrings("__name__", "up", "kind", []string{"sent", "removed"}[r.IntN(2)], "i", strconv.Itoa(r.Int())), nil)
			now[slot] = s
		}
		to := c.get(s)
		if sent := s.Labels().Get("kind") == "sent"; sent != (to != c.removed) || sent && (to.from != s || to.labels().Get("i") != s.Labels().Get("i")) {
			t.Fatalf("%s is sent as %s", s.Labels(), to.labels())
		}
		if c.get(s) != to {
			t.Fatalf("%s has two forms", s.Labels())
		}
		if c.forSlot.Get(slot) != nil && c.removals.Get(slot) != nil {
			t.Fatalf("slot %d keeps two series", slot)
		}
	}
}
