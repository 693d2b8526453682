package wire

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
)

// randomLabels are up to eight labels, some with names and values that 1.0 or 2.0 cannot carry, and some
// of a length that takes two bytes.
func randomLabels(r *rand.Rand) labels.Labels {
	names := []string{model.MetricNameLabel, "a", "a.b", "a_b", "host", "job", "site", "x:y", "z\xff", "z\xfe", "zz"}
	b := labels.NewBuilder(labels.EmptyLabels())
	for range r.IntN(9) {
		name := names[r.IntN(len(names))]
		value := []string{"v", "w", "\xff", "ä.b"}[r.IntN(4)]
		if r.IntN(20) == 0 {
			value = fmt.Sprintf("%0*d", 100+r.IntN(60), 7)
		}
		b.Set(name, value)
	}
	return b.Labels()
}

// TestFormsWriteTheTargetsLabels: whatever external labels and rules made of a series' labels, requests have the
// same content, and in 1.0 the same bytes, as if the target's labels had been encoded as a whole.
func TestFormsWriteTheTargetsLabels(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 60 {
		external := randomLabels(r) // many of a series' own labels have the same names
		f, all := NewForms(V2), []*testSeries{}
		for range 20 {
			s := &testSeries{from: randomLabels(r), meta: metadata.Metadata{Type: model.MetricTypeGauge, Help: []string{"", "h\xff"}[r.IntN(2)]}}
			b := labels.NewBuilder(s.from)
			external.Range(func(l labels.Label) {
				if !s.from.Has(l.Name) {
					b.Set(l.Name, l.Value)
				}
			})
			for range r.IntN(3) * r.IntN(2) { // rules that change labels, or remove them by an empty value
				b.Set([]string{model.MetricNameLabel, "job", "a", "new"}[r.IntN(4)], []string{"", "v", "other"}[r.IntN(3)])
			}
			to := b.Labels()
			s.wire = Series{Labels: listed(s.from), Meta: &s.meta}
			if s.wire.Form, s.labels = f.Of(listed(s.from), to); s.labels.IsEmpty() != (s.wire.Form == nil) || s.labels.IsEmpty() != to.IsEmpty() {
				t.Fatalf("%s of %s: form %v, labels %s", to, s.from, s.wire.Form, s.labels)
			}
			if s.wire.Form == nil {
				continue
			}
			if got := s.wire.Form.Labels(V1, listed(s.from)); !labels.Equal(got, s.labels) {
				t.Fatalf("%s becomes %s in 1.0, want %s", s.from, got, s.labels)
			}
			s.from = f.valid(to) // as 2.0 sends them
			s.meta.Help = []string{"", "h\uFFFD"}[len(s.meta.Help)/2]
			all = append(all, s)
		}
		if len(all) == 0 {
			continue
		}
		samples := randomSamples(r, all, 100)
		var e testEncoder
		if d := cmp.Diff(message(samples), decode(t, encode(&e, V1, samples)), compareBits); d != "" {
			t.Fatalf("1.0 (-want +got):\n%s", d)
		}
		samples = []sample{{series: all[r.IntN(len(all))], t: 1, v: 2}}
		write(&e.Encoder, V1, Zstd, samples)
		if want, err := message(samples).Marshal(); err != nil || string(e.rest()) != string(want) {
			t.Fatalf("1.0: not the bytes that prompb writes (%v)", err)
		}
		samples = randomSamples2(r, all, 100)
		if d := cmp.Diff(message2(samples), decode2(t, encode(&e, V2, samples)), compareBits); d != "" {
			t.Fatalf("2.0 (-want +got):\n%s", d)
		}
	}
}

// TestSeriesShareForms: series whose labels are changed in the same way at the same places have one form, whatever their labels are.
func TestSeriesShareForms(t *testing.T) {
	f := NewForms(V2)
	of := func(ls labels.Labels, set func(*labels.Builder)) *Form {
		b := labels.NewBuilder(ls)
		set(b)
		form, _ := f.Of(listed(ls), b.Labels())
		return form
	}
	site := func(b *labels.Builder) { b.Set("site", "fra1") }
	move := func(b *labels.Builder) { b.Set("site", "fra1").Del("tenant") }
	up := labels.FromStrings(model.MetricNameLabel, "up", "job", "i", "tenant", "x")
	down := labels.FromStrings(model.MetricNameLabel, "down", "job", "j", "tenant", "y")
	short := labels.FromStrings(model.MetricNameLabel, "up", "tenant", "x")
	if of(up, site) != of(down, site) || of(up, move) != of(down, move) {
		t.Error("two series that get the same label and lose the same one at the same places have two forms")
	}
	if of(up, site) == of(short, site) || !of(up, site).AddsAs(of(short, site)) {
		t.Error("the same label at another place")
	}
	for i, form := range []*Form{of(up, move), of(up, func(b *labels.Builder) { b.Set("site", "fra2") }), of(up, func(b *labels.Builder) {}),
		of(up, func(b *labels.Builder) { b.Set("job", "fra1") })} {
		if form.AddsAs(of(short, site)) || of(short, site).AddsAs(form) {
			t.Errorf("form %d adds the same labels as one that adds a site", i)
		}
	}
	if form := of(up, move); form.AddsAs(form) {
		t.Error("a form that removes a label only adds labels")
	}
	if own := of(short, func(*labels.Builder) {}); own.by[V1].edits != nil || own.by[V2].edits != nil {
		t.Errorf("a series that is sent as it is has the form %v", own)
	}
	if dotted, _ := f.Of(listed(labels.FromStrings("a.b", "1")), labels.FromStrings("a.b", "1")); len(dotted.by[V1].edits) != 2 || len(dotted.by[V2].edits) != 0 {
		t.Errorf("a name that only 2.0 carries has the form %v", dotted)
	}
}

// TestFormsAreBounded: where each series has a form of its own, those that were made before are not kept for it.
func TestFormsAreBounded(t *testing.T) {
	f := NewForms(V2)
	first := labels.FromStrings(model.MetricNameLabel, "up")
	of := func(i int) *Form {
		form, ls := f.Of(listed(first), labels.FromStrings(model.MetricNameLabel, "up", "unique", fmt.Sprint(i)))
		if got := form.Labels(V2, listed(first)); !labels.Equal(got, ls) {
			t.Fatalf("series %d is sent as %s, want %s", i, got, ls)
		}
		return form
	}
	for i := range 10_000 {
		if of(i); f.bytes > maxFormBytes {
			t.Fatalf("%d bytes are kept after %d forms", f.bytes, i)
		}
	}
	if len(f.shared) == 10_000 {
		t.Error("all forms are kept")
	}
	long := labels.FromStrings(model.MetricNameLabel, "up", "long", string(make([]byte, maxFormBytes+1)))
	if form, _ := f.Of(listed(first), long); !labels.Equal(form.Labels(V1, listed(first)), long) || len(f.shared) != 1 {
		t.Errorf("a form above the bound: %d are kept", len(f.shared))
	}
}

// TestEncodeWithFormAllocatesNothing: labels that are merged while they are written take no memory.
func TestEncodeWithFormAllocatesNothing(t *testing.T) {
	samples := formSamples(2000)
	samples[7].kind, samples[7].h = intHistogram, &histogram.Histogram{}
	for _, v := range []Version{V1, V2} {
		var e testEncoder
		encode(&e, v, samples)
		if n := testing.AllocsPerRun(20, func() { encode(&e, v, samples) }); n > 0 {
			t.Errorf("%s: encoding allocates %v times a batch, want 0", v, n)
		}
	}
}

// formSamples is a batch of n samples, each of another series, that get two external labels.
func formSamples(n int) []sample {
	f := NewForms(V2)
	samples := benchSamples2(n, 1)
	for i := range samples {
		s := samples[i].series
		s.wire.Form, s.labels = f.Of(listed(s.from), labels.NewBuilder(s.from).Set("agent", "a-17").Set("region", "eu").Labels())
	}
	return samples
}

// BenchmarkEncodeForm is BenchmarkEncode with external labels.
func BenchmarkEncodeForm(b *testing.B) {
	samples := formSamples(2000)
	for _, v := range []Version{V1, V2} {
		b.Run(v.String(), func(b *testing.B) {
			var e testEncoder
			b.ReportAllocs()
			var body []byte
			for b.Loop() {
				body = encode(&e, v, samples)
			}
			perSample(b, len(samples), len(body))
		})
	}
}
