package wire

import (
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// valid returns ls in the form that the specification of remote write 2.0 allows: names may be any
// UTF-8. Invalid bytes become U+FFFD; if that makes names equal, it returns legal's result.
func (f *Forms) valid(ls labels.Labels) labels.Labels {
	ok := true
	ls.Range(func(l labels.Label) { ok = ok && utf8.ValidString(l.Name) && utf8.ValidString(l.Value) })
	if ok {
		return ls
	}
	f.scratch.Reset()
	ls.Range(func(l labels.Label) {
		f.scratch.Add(validText(l.Name), validText(l.Value))
	})
	f.scratch.Sort()
	valid := f.scratch.Labels()
	if _, twice := valid.HasDuplicateLabelNames(); twice {
		return f.legal(ls)
	}
	return valid
}

// legal returns ls in the form that the specification of remote write 1.0 allows ("Labels"): metric
// names of [a-zA-Z_:][a-zA-Z0-9_:]*, label names of [a-zA-Z_][a-zA-Z0-9_]*, and valid UTF-8,
// which protocol buffers require of every string. Other runes of a name become underscores,
// as in Prometheus' underscore escaping; if that makes two label names of a series equal,
// their values are joined by ";" in the order of the original names, as in the OpenTelemetry
// translation. Invalid bytes of a value become U+FFFD. Without these changes a receiver would
// refuse the series' samples for ever.
func (f *Forms) legal(ls labels.Labels) labels.Labels {
	ok := true
	ls.Range(func(l labels.Label) {
		switch {
		case l.Name == model.MetricNameLabel:
			ok = ok && model.LegacyValidation.IsValidMetricName(l.Value)
		default:
			ok = ok && model.LegacyValidation.IsValidLabelName(l.Name) && utf8.ValidString(l.Value)
		}
	})
	if ok {
		return ls
	}
	values := map[string]string{}
	ls.Range(func(l labels.Label) {
		name, value := l.Name, validText(l.Value)
		if name == model.MetricNameLabel {
			value = model.EscapeName(value, model.UnderscoreEscaping)
		} else {
			name = legalLabelName(name)
		}
		if before, twice := values[name]; twice {
			value = before + ";" + value
		}
		values[name] = value
	})
	f.scratch.Reset()
	for name, value := range values {
		f.scratch.Add(name, value)
	}
	f.scratch.Sort()
	return f.scratch.Labels()
}

// legalLabelName escapes a label name, in which a colon is not allowed.
func legalLabelName(name string) string {
	name = model.EscapeName(name, model.UnderscoreEscaping)
	return strings.ReplaceAll(name, ":", "_")
}

// validText returns s with each run of bytes that are not UTF-8 replaced by U+FFFD.
func validText(s string) string {
	if utf8.ValidString(s) { // much faster
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
