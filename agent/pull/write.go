package pull

import (
	"bufio"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/inputs"
)

// row is a series to show.
type row struct {
	inputs.Sample
	name   string // __name__
	family string // of the metric: name, or the part before a suffix that belongs to kind
	shown  string // family as written
	kind   model.MetricType

	// Sort keys within the family: the labels except le and quantile, then buckets and
	// quantiles by their bounds, then sum and count.
	group labels.Labels
	part  int
	bound float64
}

// prepare returns the series to show in output order, grouped by family and in it by metric. It
// omits and counts series that the format cannot express: in text, native histograms and series
// with a NUL in a name or value, which would end the page for a reader; in protobuf, native
// histograms with custom buckets.
func prepare(all []inputs.Sample, external labels.Labels, chosen [][]*labels.Matcher, escape model.EscapingScheme, protobuf bool) (rows []row, unshown int) {
	rows = make([]row, 0, len(all))
	b := labels.NewBuilder(labels.EmptyLabels())
	odd := false // a series may be written like another one
	for _, s := range all {
		if !external.IsEmpty() {
			b.Reset(s.Labels)
			external.Range(func(l labels.Label) {
				switch own := s.Labels.Get(l.Name); {
				case own == "":
					b.Set(l.Name, l.Value)
				case own == l.Value:
					odd = true // another one may lack it
				}
			})
			s.Labels = b.Labels()
		}
		if chosen != nil && !slices.ContainsFunc(chosen, func(ms []*labels.Matcher) bool { return matches(s.Labels, ms) }) {
			continue
		}
		odd = odd || escape == model.UnderscoreEscaping && !legacy(s.Labels)
		switch {
		case protobuf && custom(s), !protobuf && (native(s) || hasNUL(s.Labels)):
			unshown++
		case protobuf:
			rows = append(rows, protobufRow(s))
		default:
			rows = append(rows, newRow(s, b))
		}
	}
	for i := range rows {
		rows[i].shown = model.EscapeName(rows[i].family, escape)
	}
	if odd {
		rows = once(rows, escape)
	}
	slices.SortFunc(rows, func(x, y row) int {
		if c := cmp.Or(cmp.Compare(x.shown, y.shown), cmp.Compare(x.kind, y.kind)); c != 0 {
			return c
		}
		return cmp.Or(labels.Compare(x.group, y.group), cmp.Compare(x.part, y.part), cmp.Compare(x.bound, y.bound), cmp.Compare(x.name, y.name))
	})
	return rows, unshown
}

// legacy reports whether no name in ls needs escaping.
func legacy(ls labels.Labels) bool {
	ok := true
	ls.Range(func(l labels.Label) {
		ok = ok && model.LegacyValidation.IsValidLabelName(l.Name) && (l.Name != model.MetricNameLabel || model.LegacyValidation.IsValidMetricName(l.Value))
	})
	return ok
}

// written returns the labels of a series as they are written.
func written(ls labels.Labels, escape model.EscapingScheme) labels.Labels {
	if legacy(ls) {
		return ls
	}
	b := labels.NewScratchBuilder(ls.Len())
	ls.Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			b.Add(l.Name, model.EscapeName(l.Value, escape))
		} else {
			b.Add(labelName(ls, l.Name, escape), l.Value)
		}
	})
	b.Sort()
	return b.Labels()
}

// once keeps of the series that would be written alike, by the external labels or by escaping, the one with the newest
// sample: a scraper refuses a page, or a sample, for another.
func once(rows []row, escape model.EscapingScheme) []row {
	at := make(map[uint64]int, len(rows))
	kept := rows[:0]
	for _, r := range rows {
		ls := written(r.Labels, escape)
		hash := ls.Hash()
		if i, ok := at[hash]; !ok || !labels.Equal(ls, written(kept[i].Labels, escape)) {
			at[hash] = len(kept)
			kept = append(kept, r)
		} else if r.T > kept[i].T {
			kept[i] = r
		}
	}
	clear(rows[len(kept):])
	return kept
}

func hasNUL(ls labels.Labels) (found bool) {
	ls.Range(func(l labels.Label) {
		found = found || strings.IndexByte(l.Name, 0) >= 0 || strings.IndexByte(l.Value, 0) >= 0
	})
	return found
}

func matches(ls labels.Labels, ms []*labels.Matcher) bool {
	for _, m := range ms {
		if !m.Matches(ls.Get(m.Name)) {
			return false
		}
	}
	return true
}

// bareCounter is a counter whose name does not end in _total, which OpenMetrics does not allow.
const bareCounter = model.MetricTypeCounter + " without _total"

// The parts of a histogram or summary, in output order.
const (
	partValue = iota
	partBound
	partSum
	partCount
)

func newRow(s inputs.Sample, b *labels.Builder) row {
	r := row{Sample: s, name: s.Labels.Get(model.MetricNameLabel), kind: s.Meta.Type}
	r.family, r.group = r.name, s.Labels
	suffix, member := strings.CutPrefix(r.name, s.Family)
	member = member && s.Family != ""
	switch {
	case r.kind == model.MetricTypeCounter:
		if base, ok := strings.CutSuffix(r.name, "_total"); ok {
			r.family = base
		} else {
			r.kind = bareCounter
		}
	case member && r.kind == model.MetricTypeHistogram && slices.Contains([]string{"_bucket", "_sum", "_count"}, suffix),
		member && r.kind == model.MetricTypeSummary && slices.Contains([]string{"", "_sum", "_count"}, suffix):
		r.family = s.Family
		r.place(suffix, b)
	case r.kind == model.MetricTypeGauge:
	default: // a single series does not identify the remaining types
		r.kind = model.MetricTypeUnknown
	}
	return r
}

// place sets the sort keys of a series within its histogram or summary.
func (r *row) place(suffix string, b *labels.Builder) {
	bound := ""
	switch suffix {
	case "_sum":
		r.part = partSum
	case "_count":
		r.part = partCount
	case "_bucket":
		r.part, bound = partBound, model.BucketLabel
	default:
		r.part, bound = partBound, model.QuantileLabel
	}
	b.Reset(r.Labels)
	b.Del(model.MetricNameLabel, bound)
	r.group = b.Labels()
	if v, err := strconv.ParseFloat(r.Labels.Get(bound), 64); err == nil {
		r.bound = v
	}
}

// writing configures the output of rows.
type writing struct {
	open   bool // OpenMetrics, else text
	times  bool // with timestamps
	escape model.EscapingScheme
}

// write writes rows. w keeps its errors.
func write(w *bufio.Writer, rows []row, how writing) {
	buf := make([]byte, 0, 1024)
	if how.open {
		split(rows, how.escape)
	}
	for i := range rows {
		r := &rows[i]
		if i == 0 || r.shown != rows[i-1].shown || r.kind != rows[i-1].kind {
			head(w, r, how)
		}
		buf = series(buf[:0], r, how)
		buf = append(buf, ' ')
		buf = number(buf, r.V)
		if how.times {
			buf = append(buf, ' ')
			if how.open {
				buf = strconv.AppendFloat(buf, float64(r.T)/1000, 'f', 3, 64)
			} else {
				buf = strconv.AppendInt(buf, r.T, 10)
			}
		}
		buf = append(buf, '\n')
		_, _ = w.Write(buf)
	}
	if how.open {
		_, _ = w.WriteString("# EOF\n")
	}
}

// split turns a family that repeats the previous name with another type, which OpenMetrics
// forbids, into untyped families under the names of their series.
func split(rows []row, escape model.EscapingScheme) {
	for i := 0; i < len(rows); {
		end, again := i, i > 0 && rows[i].shown == rows[i-1].shown
		shown, kind := rows[i].shown, rows[i].kind
		for end < len(rows) && rows[end].shown == shown && rows[end].kind == kind {
			end++
		}
		for ; again && i < end; i++ {
			rows[i].kind, rows[i].family, rows[i].shown = model.MetricTypeUnknown, rows[i].name, model.EscapeName(rows[i].name, escape)
		}
		i = end
	}
}

// head writes the # lines of a family.
func head(w *bufio.Writer, r *row, how writing) {
	name, kind := r.family, string(r.kind)
	switch {
	case r.kind == bareCounter && how.open:
		kind = string(model.MetricTypeUnknown)
	case r.kind == bareCounter:
		kind = string(model.MetricTypeCounter)
	case r.kind == model.MetricTypeCounter && !how.open:
		name = r.name
	}
	if !how.open && kind == string(model.MetricTypeUnknown) {
		kind = "untyped"
	}
	name = quoted(name, how.escape)
	escape := strings.NewReplacer("\\", `\\`, "\n", `\n`)
	if how.open {
		escape = strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)
	}
	line := func(parts ...string) {
		for _, p := range parts {
			_, _ = w.WriteString(p)
		}
	}
	if r.Meta.Help != "" && strings.IndexByte(r.Meta.Help, 0) < 0 {
		// A target's help may be any bytes, and OpenMetrics refuses a page that is not UTF-8.
		line("# HELP ", name, " ", escape.Replace(strings.ToValidUTF8(r.Meta.Help, "\uFFFD")), "\n")
	}
	line("# TYPE ", name, " ", kind, "\n")
}

// quoted returns a name as written in a # line.
func quoted(name string, scheme model.EscapingScheme) string {
	if name = model.EscapeName(name, scheme); model.LegacyValidation.IsValidMetricName(name) {
		return name
	}
	return string(quote(nil, name))
}

// quote appends a text with the three escapes that both formats have.
func quote(buf []byte, s string) []byte {
	buf = append(buf, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '\\', '"':
			buf = append(buf, '\\', c)
		case '\n':
			buf = append(buf, '\\', 'n')
		default:
			buf = append(buf, c)
		}
	}
	return append(buf, '"')
}

// series appends name{label="value",…}, or {"name",…} if the name needs quotes.
func series(buf []byte, r *row, how writing) []byte {
	name := model.EscapeName(r.name, how.escape)
	sep := byte('{')
	if model.LegacyValidation.IsValidMetricName(name) {
		buf = append(buf, name...)
	} else {
		buf = quote(append(buf, '{'), name)
		sep = ','
	}
	r.Labels.Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			return
		}
		buf = append(buf, sep)
		sep = ','
		label := labelName(r.Labels, l.Name, how.escape)
		if model.LegacyValidation.IsValidLabelName(label) {
			buf = append(buf, label...)
		} else {
			buf = quote(buf, label)
		}
		buf = quote(append(buf, '='), l.Value)
	})
	if sep == ',' {
		buf = append(buf, '}')
	}
	return buf
}

// labelName returns the name of a label as written. If another label of the series would be written
// the same, each byte that needs escaping becomes a number: a repeated name costs a scraper the
// whole answer.
func labelName(all labels.Labels, name string, scheme model.EscapingScheme) string {
	short := model.EscapeName(name, scheme)
	if short == name {
		return name
	}
	alone := true
	all.Range(func(other labels.Label) {
		alone = alone && (other.Name == name || model.EscapeName(other.Name, scheme) != short)
	})
	if alone {
		return short
	}
	return model.EscapeName(name, model.ValueEncodingEscaping)
}

// number appends a value as both formats write it.
func number(buf []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(buf, "+Inf"...)
	case math.IsInf(v, -1):
		return append(buf, "-Inf"...)
	case math.IsNaN(v):
		return append(buf, "NaN"...)
	}
	return strconv.AppendFloat(buf, v, 'g', -1, 64)
}
