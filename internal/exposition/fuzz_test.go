package exposition

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// FuzzParser reads any body in any format with any options. The parser ends within the time that the
// body may take, never panics, gives labels that are sorted, and, within its bounds, gives the same as
// Prometheus' parser where that ends.
func FuzzParser(f *testing.F) {
	if testing.Short() {
		f.Skip("left out with -short: one goroutine, which the race detector has nothing to say about")
	}
	all, seeds := setups(), 0
	add := func(contentType string, body []byte) {
		seeds++ // each with other options: the fuzzer tries the rest
		i := slices.IndexFunc(all, func(s setup) bool { return s.contentType == contentType })
		f.Add(uint8(i+seeds*7%32), false, body)
	}
	for name, bodies := range corpus(f) {
		for i, body := range bodies {
			contentType := map[string]string{"text.jsonl": typeText, "openmetrics1.jsonl": typeOpen, "openmetrics2.jsonl": typeOpen2, "protobuf.jsonl": typeProtobuf}[name]
			if contentType == "" {
				contentType = []string{typeText, typeOpen}[i%2]
			}
			add(contentType, body)
		}
	}
	for _, body := range hostile() {
		for _, contentType := range []string{typeText, typeOpen, typeOpen2, typeProtobuf} {
			add(contentType, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, differential bool, body []byte) {
		s := all[int(which)%len(all)]
		checkEnds(t, body, s)
		if differential {
			compare(t, body, s)
		}
	})
}

// checkEnds reads a body, and ends the process with the body shown if that takes too long.
func checkEnds(t *testing.T, body []byte, s setup) {
	t.Helper()
	late := time.AfterFunc(allowance(body), func() {
		panic(fmt.Sprintf("%s: more than %s for the body\n%q", s, allowance(body), body))
	})
	defer late.Stop()
	p, err := New(slices.Clone(body), s.contentType, nil, s.options)
	if p == nil {
		if err == nil {
			t.Errorf("%s: neither a parser nor an error", s)
		}
		return
	}
	entries, err := walk(t, p, s)
	if err != nil && len(err.Error()) > 2*maxErrorBytes {
		t.Errorf("%s: the error has %d bytes", s, len(err.Error()))
	}
	// Each series of a text takes bytes of it, and a bucket of a list at least two.
	if entries > 4*len(body)+8 {
		t.Errorf("%s: %d entries of %d bytes", s, entries, len(body))
	}
}

// walk asks a parser for everything, as [read] does, and keeps nothing.
func walk(t *testing.T, p textparse.Parser, s setup) (entries int, err error) {
	t.Helper()
	var ls labels.Labels
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		} else if err != nil {
			return entries, err
		}
		entries++
		switch kind {
		case textparse.EntryHelp:
			p.Help()
		case textparse.EntryType:
			p.Type()
		case textparse.EntryUnit:
			p.Unit()
		case textparse.EntryComment:
			p.Comment()
		case textparse.EntrySeries:
			p.Series()
		case textparse.EntryHistogram:
			if _, _, h, fh := p.Histogram(); (h == nil) == (fh == nil) {
				t.Errorf("%s: histograms %v and %v", s, h, fh)
			}
		}
		if kind != textparse.EntrySeries && kind != textparse.EntryHistogram {
			continue
		}
		if p.Labels(&ls); !sorted(ls) {
			t.Errorf("%s: the labels %s are not sorted", s, ls)
		}
		for e := (exemplar.Exemplar{}); p.Exemplar(&e); e = (exemplar.Exemplar{}) {
			if !sorted(e.Labels) {
				t.Errorf("%s: the labels %s are not sorted", s, e.Labels)
			}
		}
		if s.starts {
			p.StartTimestamp()
		}
	}
}

// sorted reports whether labels are in order.
func sorted(ls labels.Labels) bool {
	last, ok := "", true
	ls.Range(func(l labels.Label) {
		ok = ok && l.Name >= last
		last = l.Name
	})
	return ok
}
