package wal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/tools/tier"
)

// Whatever metadata comes with a batch, its commit can be read back: neither long texts nor
// many series with texts of their own make it longer than a reader accepts.
func TestCommitWithHugeMetadataIsReadable(t *testing.T) {
	for _, c := range []struct {
		what   string
		series int
		help   func(i int) string
	}{
		{"one help of 63 KiB for all", 4400, func(int) string { return strings.Repeat("h", 63<<10) }},
		{"a help of 4 KiB for each of 40,000 series", 40_000, func(i int) string { return fmt.Sprintf("%06d", i) + strings.Repeat("h", 4<<10-6) }},
		{"a help of 63 KiB for each", 4400, func(i int) string { return fmt.Sprintf("%06d", i) + strings.Repeat("h", 63<<10) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := openLog(t, Options{})
			r := openReader(t, l, "a", ReaderOptions{})
			for round := range int64(2) { // metadata that did not fit the first commit comes with a later one
				app := l.AppenderV2(context.Background())
				for i := range c.series {
					_, err := app.Append(0, labels.FromStrings("__name__", "m", "i", fmt.Sprint(i)), 0, 1+round, float64(i), nil, nil, storage.AppendV2Options{
						MetricFamilyName: "m", Metadata: metadata.Metadata{Type: "gauge", Help: c.help(i)},
					})
					if err != nil {
						t.Fatalf("append %d: %v", i, err)
					}
				}
				if err := app.Commit(); err != nil {
					t.Fatalf("commit: %v", err)
				}
				e := nextEntry(t, r)
				if e.Count() != uint64(c.series) || e.Missing.GivenUp() != 0 {
					t.Errorf("round %d: %d of %d samples, missing %+v", round, e.Count(), c.series, e.Missing)
				}
				if help := e.Samples[0].Series.Meta().Help; len(help) != 4<<10 {
					t.Errorf("round %d: a help of %d bytes, want it cut at 4 KiB", round, len(help))
				}
			}
		})
	}
}

// Texts beyond their bound are cut or left out, at a whole character, whichever comes first.
func TestMetadataIsBounded(t *testing.T) {
	l := openLog(t, Options{})
	r := openReader(t, l, "a", ReaderOptions{})
	for i, c := range []struct {
		meta   metadata.Metadata
		family string
		want   About
	}{
		{metadata.Metadata{Help: strings.Repeat("a", maxHelpBytes)}, "f", About{Meta: metadata.Metadata{Help: strings.Repeat("a", maxHelpBytes)}, Family: "f"}},
		{metadata.Metadata{Help: strings.Repeat("b", maxHelpBytes+1)}, "f", About{Meta: metadata.Metadata{Help: strings.Repeat("b", maxHelpBytes)}, Family: "f"}},
		{metadata.Metadata{Help: strings.Repeat("a", maxHelpBytes-1) + "é"}, "f", About{Meta: metadata.Metadata{Help: strings.Repeat("a", maxHelpBytes-1)}, Family: "f"}},
		{metadata.Metadata{Help: "h", Unit: strings.Repeat("u", maxUnitBytes)}, "f", About{Meta: metadata.Metadata{Help: "h", Unit: strings.Repeat("u", maxUnitBytes)}, Family: "f"}},
		{metadata.Metadata{Help: "h", Unit: strings.Repeat("u", maxUnitBytes+1)}, "f", About{Meta: metadata.Metadata{Help: "h"}, Family: "f"}},
		{metadata.Metadata{Help: "i"}, strings.Repeat("f", maxFamilyBytes), About{Meta: metadata.Metadata{Help: "i"}, Family: strings.Repeat("f", maxFamilyBytes)}},
		{metadata.Metadata{Help: "j"}, strings.Repeat("f", maxFamilyBytes+1), About{Meta: metadata.Metadata{Help: "j"}, Family: ""}},
	} {
		app := l.AppenderV2(context.Background())
		if _, err := app.Append(0, sampleOf(i), 0, 1, 1, nil, nil, storage.AppendV2Options{Metadata: c.meta, MetricFamilyName: c.family}); err != nil {
			t.Fatal(err)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
		s := nextEntry(t, r).Samples[0].Series
		c.want.Meta.Type = s.Meta().Type // "unknown" for none
		if got := (About{Meta: s.Meta(), Family: s.Family()}); got != c.want {
			t.Errorf("case %d: %d bytes of help, %d of unit, %d of family", i, len(got.Meta.Help), len(got.Meta.Unit), len(got.Family))
		}
	}
}

// A commit that no reader would accept is refused, whatever its batch says of its size, and
// leaves the log as it was.
func TestEncoderRefusesAHugeCommit(t *testing.T) {
	oneGoroutine(t)
	for _, first := range []bool{true, false}[tier.Of(1, 0):] {
		l := openLog(t, Options{})
		r := openReader(t, l, "a", ReaderOptions{})
		if !first {
			if err := commitFloats(l, 1, 1, 1); err != nil {
				t.Fatal(err)
			}
			_ = nextEntry(t, r)
		}
		h := &histogram.Histogram{Schema: 0, PositiveSpans: []histogram.Span{{Length: maxHistogramBytes / 10}}, PositiveBuckets: make([]int64, maxHistogramBytes/10)}
		for i := range h.PositiveBuckets {
			h.PositiveBuckets[i] = (1<<40 + int64(i)*7919) * int64(1-2*(i%2))
		}
		app := l.AppenderV2(context.Background()).(*appender)
		if _, err := app.Append(0, sampleOf(5), 0, 1, 1, nil, nil, storage.AppendV2Options{}); err != nil {
			t.Fatal(err)
		}
		for i := range int64(130) {
			app.b.add(1<<20, 0, &lastSample{t: i, native: native{h: h}})
		}
		if err := app.Commit(); !errors.Is(err, errHugeCommit) {
			t.Errorf("first %v: the commit of %d bytes: %v", first, app.log.writer.encoder.bytes, err)
		}
		if err := commitFloats(l, 3, 2, 2); err != nil {
			t.Errorf("first %v: the next commit: %v", first, err)
		}
		if e := nextEntry(t, r); e.Count() != 3 || e.Missing.GivenUp() != 0 {
			t.Errorf("first %v: %d samples, missing %+v", first, e.Count(), e.Missing)
		}
		if st := l.Status(); st.Err != nil {
			t.Errorf("first %v: status %v", first, st.Err)
		}
	}
}

// A text that changes with each sample is not kept for ever, neither by the log nor by a
// cursor.
func TestChangingHelpIsNotKept(t *testing.T) {
	l := openLog(t, Options{})
	r := openReader(t, l, "a", ReaderOptions{})
	const n = 3 * maxAboutBytes / maxHelpBytes
	for i := range n {
		app := l.AppenderV2(context.Background())
		if _, err := app.Append(0, sampleOf(0), 0, int64(i+1), 1, nil, nil, storage.AppendV2Options{
			Metadata: metadata.Metadata{Type: "gauge", Help: fmt.Sprint(i) + strings.Repeat("h", maxHelpBytes-8)},
		}); err != nil {
			t.Fatal(err)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
		_ = nextEntry(t, r)
		d := r.cursor.decode
		for what, kept := range map[string]int{"the log": bytesOf(l.series.abouts), "the cursor's texts": textBytesOf(d.texts)} {
			if kept > maxAboutBytes {
				t.Fatalf("%s keeps %d bytes of texts after %d", what, kept, i)
			}
		}
	}
}

func bytesOf(a *abouts) (n int) {
	for about := range a.shared {
		n += len(about.Meta.Help)
	}
	return n
}

func textBytesOf(texts map[string]string) (n int) {
	for text := range texts {
		n += len(text)
	}
	return n
}
