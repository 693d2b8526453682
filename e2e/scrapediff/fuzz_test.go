package scrapediff

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/textparse"

	"hwsagent/internal/exposition"
)

// FuzzTwins gives both scrapers the same three pages, and compares what they store.
func FuzzTwins(f *testing.F) {
	at := newTarget()
	f.Cleanup(at.Close)
	for _, page := range []string{
		"a 1\n", "a{x=\"1\"} 1\na{x=\"2\"} 2 946684700000\n", "# TYPE a counter\n# HELP a x\na_total{x=\"y\"} 1 5\na 2\n", "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 3\n",
		"a{b=\"c\"} 1 # {t=\"x\"} 1\n# EOF\n", "{\"ü\",a=\"b\"} 1\n", "a{x=\"1\"} 1\nb 1\na{x=\"1\"} 2\n", "",
	} {
		for kind := range uint8(4) {
			f.Add([]byte(page), []byte("b 1\na{x=\"2\"} 2\na 1\n"), []byte(page+"a 3\n"), kind, kind*7)
		}
	}
	for _, p := range oddPages(f, 946_684_700_000) {
		f.Add([]byte(p.body), []byte(p.body), []byte("a 1\n"), uint8(0b11), uint8(0xff))
	}
	kinds := []string{plain, om1, om2, protobuf}
	f.Fuzz(func(t *testing.T, first, second, third []byte, kind, how uint8) {
		var pages []answer
		for i, body := range [][]byte{first, second, third} {
			k := kinds[int(kind>>(2*i))%len(kinds)]
			if !comparable(body, k, how) {
				t.Skip("the agent refuses what Prometheus' parsers are not safe with")
			}
			pages = append(pages, answer{kind: k, body: string(body)})
		}
		settings := map[string]any{"honor_labels": how&1 != 0, "honor_timestamps": how&2 == 0, "track_timestamps_staleness": how&4 != 0,
			"scrape_native_histograms": how&8 != 0, "convert_classic_histograms_to_nhcb": how&16 != 0, "always_scrape_classic_histograms": how&32 != 0, "sample_limit": 1000}
		if how&64 != 0 {
			settings["metric_relabel_configs"] = []any{map[string]any{"source_labels": []string{"x"}, "target_label": "x", "replacement": "y$1"}, map[string]any{"source_labels": []string{"__name__"}, "regex": "b.*", "action": "drop"}}
		}
		if diff, _ := differ(t, at, pages, settings, false); diff != "" {
			t.Errorf("what Prometheus stores (-) and the agent does (+):\n%s", diff)
		}
	})
}

// comparable reports whether a page may be given to Prometheus' parser, and means the same to it as to ours: the agent's
// refuses the ones of which that panics, or which pass a bound.
func comparable(body []byte, kind string, how uint8) bool {
	if kind != protobuf && bytes.IndexByte(body, 0) >= 0 || len(body) > 64<<10 {
		return false
	}
	o := textparse.ParserOptions{IgnoreNativeHistograms: how&8 == 0, ConvertClassicHistogramsToNHCB: how&16 != 0, KeepClassicOnClassicAndNativeHistograms: how&32 != 0}
	p, err := exposition.New(bytes.Clone(body), kind, nil, o)
	if p == nil {
		return kind != protobuf && !errors.Is(err, exposition.ErrBound) // TestCutOffProtobuf
	}
	began := time.Now()
	for {
		_, err := p.Next()
		if errors.Is(err, exposition.ErrBound) || time.Since(began) > time.Second {
			return false
		}
		if err != nil {
			return errors.Is(err, io.EOF) || !bytes.Contains([]byte(err.Error()), []byte("panicked"))
		}
	}
}
