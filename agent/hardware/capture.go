package hardware

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
)

// capture stores the samples of a probe in memory instead of the log. It is used by one goroutine.
type capture struct {
	samples []captured
	first   map[moment]string // the text of the first sample
}

type moment struct {
	labels string
	t      int64 // milliseconds
}

type captured struct {
	family string
	meta   metadata.Metadata
	labels labels.Labels
	value  float64
	hist   fmt.Stringer // set for a histogram
}

// AppenderV2 implements storage.AppendableV2.
func (c *capture) AppenderV2(context.Context) storage.AppenderV2 { return c }

// Append implements storage.AppenderV2. Like the log, it refuses a second value of a series for one time.
func (c *capture) Append(_ storage.SeriesRef, ls labels.Labels, _, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	if ls.IsEmpty() {
		return 0, storage.ErrNotFound // the caller has them
	}
	s := captured{family: o.MetricFamilyName, meta: o.Metadata, labels: ls, value: v}
	if s.family == "" {
		s.family = ls.Get(model.MetricNameLabel)
	}
	switch {
	case fh != nil:
		s.hist = fh.Copy()
	case h != nil:
		s.hist = h.Copy()
	}
	at := moment{ls.String(), t}
	if c.first == nil {
		c.first = map[moment]string{}
	}
	switch first, ok := c.first[at]; {
	case !ok:
		c.first[at] = s.text()
		c.samples = append(c.samples, s)
	case first != s.text():
		return 0, storage.ErrDuplicateSampleForTimestamp
	}
	return storage.SeriesRef(len(c.samples)), nil
}

// Commit implements storage.AppenderV2.
func (c *capture) Commit() error { return nil }

// Rollback implements storage.AppenderV2.
func (c *capture) Rollback() error { return nil }

// write prints the samples in Prometheus' text format, families in the order of their
// first sample. Native histograms, for which that format has no notation, become
// comments.
func (c *capture) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	first := map[string]int{}
	for i, s := range c.samples {
		if _, ok := first[s.family]; !ok {
			first[s.family] = i
		}
	}
	slices.SortStableFunc(c.samples, func(x, y captured) int { return first[x.family] - first[y.family] })
	family := ""
	for i, s := range c.samples {
		if i == 0 || s.family != family {
			family = s.family
			name := family
			if !model.LegacyValidation.IsValidMetricName(name) {
				name = strconv.Quote(name)
			}
			if s.meta.Help != "" {
				fmt.Fprintf(b, "# HELP %s %s\n", name, strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(s.meta.Help))
			}
			if s.meta.Type != "" && s.meta.Type != model.MetricTypeUnknown {
				fmt.Fprintf(b, "# TYPE %s %s\n", name, s.meta.Type)
			}
		}
		if s.hist != nil {
			fmt.Fprintf(b, "# native histogram %s %s\n", series(s.labels), s.hist)
			continue
		}
		fmt.Fprintf(b, "%s %s\n", series(s.labels), model.SampleValue(s.value))
	}
	return b.Flush()
}

// series is a series in the text format: name{label="value",…}.
func series(ls labels.Labels) string {
	var b strings.Builder
	name := ls.Get(model.MetricNameLabel)
	quoted := !model.LegacyValidation.IsValidMetricName(name)
	if !quoted {
		b.WriteString(name)
	}
	sep := "{"
	if quoted {
		fmt.Fprintf(&b, "{%q", name)
		sep = ","
	}
	escape := strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)
	ls.Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			return
		}
		b.WriteString(sep)
		sep = ","
		if model.LegacyValidation.IsValidLabelName(l.Name) {
			b.WriteString(l.Name)
		} else {
			fmt.Fprintf(&b, "%q", l.Name)
		}
		b.WriteString(`="` + escape.Replace(l.Value) + `"`)
	})
	if sep == "," {
		b.WriteByte('}')
	}
	return b.String()
}

// text returns the sample's value as text.
func (s captured) text() string {
	if s.hist != nil {
		return s.hist.String()
	}
	return model.SampleValue(s.value).String()
}
