// Package exposition reads what programs expose: Prometheus' text format, OpenMetrics and
// delimited protobuf, with Prometheus' own parsers, for the receivers that take them.
package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/textparse"

	"hwsagent/receivers"
)

// Content types that [Parse] knows.
const (
	Text        = "text/plain; version=0.0.4"
	OpenMetrics = "application/openmetrics-text; version=1.0.0"
	Protobuf    = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

// maxLineBytes bounds a line of text: what a parser keeps while it reads one is a multiple.
const maxLineBytes = 1 << 20

// Sample is one sample of an exposition. It is valid until the next one.
type Sample struct {
	Labels    labels.Labels
	Family    string // "" if nothing was said about it
	Meta      metadata.Metadata
	ST        int64 // milliseconds; 0 if unknown
	T         int64 // milliseconds, if Timed
	Timed     bool
	V         float64
	H         *histogram.Histogram
	FH        *histogram.FloatHistogram
	Exemplars []exemplar.Exemplar
}

// CheckLines refuses a text with a line that no exposition has.
func CheckLines(body []byte) error {
	for len(body) > 0 {
		n := bytes.IndexByte(body, '\n')
		if n < 0 {
			n = len(body) - 1
		}
		if n > maxLineBytes {
			return receivers.Refuse(receivers.TooComplex, http.StatusRequestEntityTooLarge, "a line has more than %d bytes", maxLineBytes)
		}
		body = body[n+1:]
	}
	return nil
}

// Parse calls f for each sample of body. It stops at an error of f, and at the first mistake
// of the text.
func Parse(body []byte, contentType string, f func(*Sample) error) error {
	if i := bytes.IndexByte(body, 0); i >= 0 && contentType != Protobuf {
		return fmt.Errorf("read the exposition: there is a zero byte at offset %d, which the parser would take for the end", i)
	}
	p, err := textparse.New(body, contentType, labels.NewSymbolTable(), textparse.ParserOptions{
		KeepClassicOnClassicAndNativeHistograms: true, OpenMetricsSkipSTSeries: true,
	})
	if p == nil {
		return fmt.Errorf("choose a parser: %w", err)
	}
	var family string
	var s Sample
	about := func(name []byte) *metadata.Metadata {
		if string(name) != family {
			family, s.Meta = string(name), metadata.Metadata{}
		}
		return &s.Meta
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the exposition: %w", err)
		}
		s.H, s.FH, s.V = nil, nil, 0
		var at *int64
		switch entry {
		case textparse.EntryType:
			name, kind := p.Type()
			about(name).Type = kind
			continue
		case textparse.EntryHelp:
			name, help := p.Help()
			about(name).Help = string(help)
			continue
		case textparse.EntryUnit:
			name, unit := p.Unit()
			about(name).Unit = string(unit)
			continue
		case textparse.EntrySeries:
			_, at, s.V = p.Series()
		case textparse.EntryHistogram:
			_, at, s.H, s.FH = p.Histogram()
		default:
			continue
		}
		p.Labels(&s.Labels)
		s.ST = p.StartTimestamp()
		s.T, s.Timed = 0, at != nil
		if at != nil {
			s.T = *at
		}
		s.Exemplars = s.Exemplars[:0]
		for e := (exemplar.Exemplar{}); p.Exemplar(&e); e = (exemplar.Exemplar{}) {
			s.Exemplars = append(s.Exemplars, e)
		}
		meta := s.Meta
		if s.Family = family; !belongs(s.Labels.Get(model.MetricNameLabel), family) {
			s.Family, s.Meta = "", metadata.Metadata{}
		}
		err = f(&s)
		s.Meta = meta
		if err != nil {
			return err
		}
	}
}

// belongs reports whether a series is of the family that was described last.
func belongs(series, family string) bool {
	end, ok := strings.CutPrefix(series, family)
	return ok && family != "" && slices.Contains([]string{"", "_bucket", "_count", "_sum", "_total", "_info", "_created", "_gcount", "_gsum"}, end)
}
