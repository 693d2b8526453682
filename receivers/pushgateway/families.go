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

	"hwsagent/internal/exposition"
	"hwsagent/receivers"
)

// Memory for the objects of a pushed exposition while it is checked, in bytes: for each line and label of text, for
// each message of protobuf, and for each byte of it, which may be a number in a list.
const (
	lineBytes    = 400
	labelBytes   = 160
	messageBytes = 160
	numberBytes  = 8
	pairBytes    = 12 // of the protobuf around a label's name and value, at most
)

// Names of the metrics that each group has in addition to the pushed ones.
const (
	pushTime    = "push_time_seconds"
	failureTime = "push_failure_time_seconds"
)

// A keeper turns pushed families into the form in which they are kept: delimited protobuf, each metric with the labels
// of the group. It processes one family at a time, so that only one is in memory as objects.
type keeper struct {
	group  map[string]string
	pairs  map[string]*dto.LabelPair // of group, which all metrics share
	out    map[string]family         // by name
	buffer bytes.Buffer

	take func(int64) error // [receivers.Request.Take]
	each int64             // bytes that the group's labels add to a metric

	refused error // error of the first refused family; later ones are read but not kept
}

func newKeeper(group map[string]string, take func(int64) error) *keeper {
	k := &keeper{group: group, take: take, pairs: map[string]*dto.LabelPair{}, out: map[string]family{}}
	for name, value := range group {
		k.pairs[name] = &dto.LabelPair{Name: &name, Value: &value}
		k.each += int64(len(name) + len(value) + pairBytes)
	}
	return k
}

// keep checks a family and stores it. It changes f. An error means that there is no memory for the group's labels in
// each metric: a short body may have very many metrics.
func (k *keeper) keep(f *dto.MetricFamily) error {
	if k.refused != nil {
		return nil
	}
	// The labels are in memory three times: in the buffer, in its copy, and in the objects made from the copy.
	if err := k.take(3 * k.each * int64(len(f.GetMetric()))); err != nil {
		return err
	}
	k.refused = k.encode(f)
	return nil
}

func (k *keeper) encode(f *dto.MetricFamily) error {
	if err := prepare(f, k.pairs); err != nil {
		return err
	}
	k.buffer.Reset()
	if _, err := protodelim.MarshalTo(&k.buffer, f); err != nil {
		return fmt.Errorf("keep family %q: %w", f.GetName(), err)
	}
	_, kept, err := newFamily(bytes.Clone(k.buffer.Bytes()))
	if err != nil {
		return err
	}
	k.out[f.GetName()] = kept
	return nil
}

const typeProtobuf = "application/vnd.google.protobuf"

// checkType refuses a push whose header says that its body is protobuf, but not delimited. A body of any other type is
// text, as for the Pushgateway.
func checkType(r *http.Request) error {
	kind, params := receivers.MediaType(r.Header.Get("Content-Type"))
	if r.Method != http.MethodDelete && kind == typeProtobuf && params["encoding"] != "delimited" {
		return receivers.Refuse(receivers.Unsupported, http.StatusUnsupportedMediaType, "protobuf must be delimited")
	}
	return nil
}

// read reads the families of a pushed body and passes each to take, which may change it. An error means that the body
// cannot be read, or comes from take; take has then had some of its families.
func read(r *receivers.Request, take func(*dto.MetricFamily) error) error {
	if kind, _ := receivers.MediaType(r.Header.Get("Content-Type")); kind == typeProtobuf {
		return readProtobuf(r, take)
	}
	// The parser's time grows with the square of the labels of a series.
	if err := exposition.CheckText(r.Body, r.Limits().Labels); err != nil {
		return err
	}
	if err := checkLabels(r.Body, r.Limits().Labels); err != nil {
		return err
	}
	lines, pairs := bytes.Count(r.Body, []byte("\n"))+1, bytes.Count(r.Body, []byte("="))
	if most := r.Limits().Samples; lines > 2*most {
		return receivers.Refuse(receivers.TooManySamples, http.StatusRequestEntityTooLarge, "the request has %d lines, more than twice limits.samples (%d)", lines, most)
	}
	if err := r.Take(int64(lines)*lineBytes + int64(pairs)*labelBytes); err != nil {
		return err
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(r.Body))
	if err != nil && exposition.WindowsLines(r.Body) {
		return fmt.Errorf("read the text, which has Windows line ends: %w", err)
	}
	if err != nil {
		return fmt.Errorf("read the text: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if err := take(families[name]); err != nil {
			return err
		}
		delete(families, name) // its memory is free before the next one is kept
	}
	return nil
}

func readProtobuf(r *receivers.Request, take func(*dto.MetricFamily) error) error {
	messages, err := weigh(r.Body)
	if err != nil {
		return err
	}
	if err := r.Take(int64(messages)*messageBytes + numberBytes*int64(len(r.Body))); err != nil {
		return err
	}
	names := map[string]bool{}
	in := bytes.NewReader(r.Body)
	o := protodelim.UnmarshalOptions{MaxSize: r.Limits().DecodedBytes}
	for {
		f := &dto.MetricFamily{}
		if err := o.UnmarshalFrom(in, f); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read protobuf: %w", err)
		}
		if names[f.GetName()] {
			return fmt.Errorf("family %q appears twice", f.GetName())
		}
		names[f.GetName()] = true
		if err := take(f); err != nil {
			return err
		}
	}
}

// prepare checks a family as the Pushgateway does, and gives its metrics the labels of the
// group, which they share.
func prepare(f *dto.MetricFamily, group map[string]*dto.LabelPair) error {
	name := f.GetName()
	refuse := func(format string, args ...any) error {
		return receivers.Refuse(receivers.Malformed, http.StatusBadRequest, format, args...)
	}
	if !model.UTF8Validation.IsValidMetricName(name) {
		return refuse("%q is not a metric name", name)
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
		of := map[string]*dto.LabelPair{}
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
			of[l.GetName()] = l
		}
		maps.Copy(of, group)
		m.Label = m.Label[:0]
		for _, n := range slices.Sorted(maps.Keys(of)) {
			if l := of[n]; l.GetValue() != "" { // an empty value means no label
				m.Label = append(m.Label, l)
			}
		}
	}
	return nil
}

// isOfType reports whether a metric has a value of its family's type.
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
