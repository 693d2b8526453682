package exposition

import (
	"bytes"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// BenchmarkParser reads what a program with 5,000 series shows, with and without the checks. The labels are
// not asked for, as by a scraper that knows the series.
func BenchmarkParser(b *testing.B) {
	for _, format := range []struct {
		name, contentType, end string
	}{{"text", typeText, ""}, {"openmetrics", typeOpen, "# EOF\n"}} {
		one := []byte("# HELP a_seconds How long things take.\n# TYPE a_seconds histogram\na_seconds_bucket{method=\"GET\",path=\"/api/v1/things\",status=\"200\",le=\"0.25\"} 1823\n" +
			"a_seconds_bucket{method=\"GET\",path=\"/api/v1/things\",status=\"200\",le=\"+Inf\"} 1823\na_seconds_sum{method=\"GET\",path=\"/api/v1/things\",status=\"200\"} 1.823\n" +
			"a_seconds_count{method=\"GET\",path=\"/api/v1/things\",status=\"200\"} 1823\n")
		body := append(bytes.Repeat(one, 1250), format.end...)
		type newParser = func([]byte, string, *labels.SymbolTable, textparse.ParserOptions) (textparse.Parser, error)
		checked := func(body []byte, kind string, st *labels.SymbolTable, o textparse.ParserOptions) (textparse.Parser, error) {
			return New(body, kind, st, o)
		}
		for name, parser := range map[string]newParser{"checked": checked, "prometheus": textparse.New} {
			b.Run(format.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					p, err := parser(body, format.contentType, nil, textparse.ParserOptions{})
					if err != nil {
						b.Fatal(err)
					}
					for {
						e, err := p.Next()
						if err != nil {
							break
						}
						if e == textparse.EntrySeries {
							p.Series()
						}
					}
				}
			})
		}
	}
}
