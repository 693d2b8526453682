package pushgateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/encoding/protodelim"

	"hwsagent/inputs/exposition"
	"hwsagent/receivers"
)

// What the objects of a pushed exposition take of memory while they are looked at, in
// bytes: for each line and label of text, for each message of protobuf, and for each byte
// of it, which may be a number in a list.
const (
	lineBytes    = 400
	labelBytes   = 160
	messageBytes = 160
	numberBytes  = 8
)

// Names of the metrics that each group has besides what is pushed.
const (
	pushTime    = "push_time_seconds"
	failureTime = "push_failure_time_seconds"
)

// keep checks pushed families and returns them, by name, in the form in which they are kept:
// delimited protobuf, every metric with the labels of the group.
func keep(families map[string]*dto.MetricFamily, group map[string]string) (map[string]family, error) {
	out := map[string]family{}
	for name, f := range families {
		if err := prepare(f, group); err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if _, err := protodelim.MarshalTo(&b, f); err != nil {
			return nil, fmt.Errorf("keep family %q: %w", name, err)
		}
		_, kept, err := newFamily(b.Bytes())
		if err != nil {
			return nil, err
		}
		out[name] = kept
	}
	return out, nil
}

const typeProtobuf = "application/vnd.google.protobuf"

// checkType refuses a push whose header says that its body is protobuf, but not delimited.
// A body of every other type is text, as it is for the Pushgateway.
func checkType(r *http.Request) error {
	kind, params := receivers.MediaType(r.Header.Get("Content-Type"))
	if r.Method != http.MethodDelete && kind == typeProtobuf && params["encoding"] != "delimited" {
		return receivers.Refuse(receivers.Unsupported, http.StatusUnsupportedMediaType, "protobuf must be delimited")
	}
	return nil
}

// read reads the families of a pushed body, by name.
func read(r *receivers.Request) (map[string]*dto.MetricFamily, error) {
	if kind, _ := receivers.MediaType(r.Header.Get("Content-Type")); kind == typeProtobuf {
		return readProtobuf(r)
	}
	// The parser takes time with the square of the labels of a series.
	if err := exposition.CheckText(r.Body, r.Limits().Labels); err != nil {
		return nil, err
	}
	if err := checkLabels(r.Body, r.Limits().Labels); err != nil {
		return nil, err
	}
	lines, pairs := bytes.Count(r.Body, []byte("\n"))+1, bytes.Count(r.Body, []byte("="))
	if most := r.Limits().Samples; lines > 2*most {
		return nil, receivers.Refuse(receivers.TooManySamples, http.StatusRequestEntityTooLarge, "the request has %d lines, more than twice limits.samples (%d)", lines, most)
	}
	if err := r.Take(int64(lines)*lineBytes + int64(pairs)*labelBytes); err != nil {
		return nil, err
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("read the text: %w", err)
	}
	return families, nil
}

func readProtobuf(r *receivers.Request) (map[string]*dto.MetricFamily, error) {
	messages, err := weigh(r.Body)
	if err != nil {
		return nil, err
	}
	if err := r.Take(int64(messages)*messageBytes + numberBytes*int64(len(r.Body))); err != nil {
		return nil, err
	}
	families := map[string]*dto.MetricFamily{}
	in := bytes.NewReader(r.Body)
	o := protodelim.UnmarshalOptions{MaxSize: r.Limits().DecodedBytes}
	for {
		f := &dto.MetricFamily{}
		if err := o.UnmarshalFrom(in, f); errors.Is(err, io.EOF) {
			return families, nil
		} else if err != nil {
			return nil, fmt.Errorf("read protobuf: %w", err)
		}
		if families[f.GetName()] != nil {
			return nil, fmt.Errorf("family %q is there twice", f.GetName())
		}
		families[f.GetName()] = f
	}
}

// prepare checks a family as the Pushgateway does, and gives its metrics the labels of the
// group.
func prepare(f *dto.MetricFamily, group map[string]string) error {
	name := f.GetName()
	refuse := func(format string, args ...any) error {
		return receivers.Refuse(receivers.Malformed, http.StatusBadRequest, format, args...)
	}
	if !model.UTF8Validation.IsValidMetricName(name) {
		return refuse("%q is no name of a metric", name)
	}
	if name == pushTime || name == failureTime {
		return refuse("pushed metrics must not be called %s: the receiver adds it", name)
	}
	for _, m := range f.GetMetric() {
		switch {
		case m.TimestampMs != nil:
			return refuse("pushed metrics must not have timestamps, and %s has one", name)
		case !isOfType(m, f.GetType()):
			return refuse("%s is of type %s, and one of its metrics is not", name, strings.ToLower(f.GetType().String()))
		}
		of := map[string]string{}
		for _, l := range m.GetLabel() {
			_, twice := of[l.GetName()]
			switch {
			case twice:
				return refuse("a metric of %s has the label %q twice", name, l.GetName())
			case strings.HasPrefix(l.GetName(), model.ReservedLabelPrefix):
				return refuse("a metric of %s has the label %q: names that begin with %s are reserved", name, l.GetName(), model.ReservedLabelPrefix)
			case m.Summary != nil && l.GetName() == model.QuantileLabel:
				return refuse("a metric of the summary %s has the label %q, which is that of its quantiles", name, l.GetName())
			}
			of[l.GetName()] = l.GetValue()
		}
		maps.Copy(of, group)
		m.Label = m.Label[:0]
		for _, n := range slices.Sorted(maps.Keys(of)) {
			if v := of[n]; v != "" { // an empty value is the same as no label
				m.Label = append(m.Label, &dto.LabelPair{Name: &n, Value: &v})
			}
		}
	}
	return nil
}

// isOfType reports whether a metric has the value that its family's type says.
func isOfType(m *dto.Metric, kind dto.MetricType) bool {
	switch kind {
	case dto.MetricType_COUNTER:
		return m.Counter != nil
	case dto.MetricType_GAUGE:
		return m.Gauge != nil
	case dto.MetricType_SUMMARY:
		return m.Summary != nil
	case dto.MetricType_UNTYPED:
		return m.Untyped != nil
	case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
		return m.Histogram != nil
	}
	return false
}
