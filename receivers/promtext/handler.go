// Package promtext receives Prometheus text and OpenMetrics, as VictoriaMetrics does on /api/v1/import/prometheus, for
// example the output of a script posted with curl.
package promtext

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/internal/exposition"
	"hwsagent/receivers"
)

// Path is the path for requests.
const Path = "/api/v1/import/prometheus"

// New returns the handler of a receiver.
func New(g *receivers.Gate) http.Handler {
	mux := http.NewServeMux()
	h := g.Handler(store, nil, checkType)
	mux.Handle("POST "+Path, h)
	mux.Handle("PUT "+Path, h)
	return mux
}

// checkType refuses a request whose header says that its body is not text.
func checkType(r *http.Request) error {
	return receivers.CheckText(r.Header.Get("Content-Type"))
}

// store writes one exposition to the log. Samples without a timestamp get that of the parameter timestamp, or of the
// request; extra_label=name=value, any number of times, is added to every series.
func store(w http.ResponseWriter, r *receivers.Request) error {
	return r.Once(w, func() (receivers.Answer, bool, error) {
		timed, err := read(r)
		return func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }, timed, err
	})
}

// read is store without the answer. timed reports whether all samples have times that the request gives.
func read(r *receivers.Request) (timed bool, err error) {
	now, extra, err := parameters(r.Request)
	if err != nil {
		return false, err
	}
	timed = r.URL.Query().Has("timestamp")
	all := true
	contentType := exposition.Text
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "application/openmetrics-text" {
		contentType = exposition.OpenMetrics
	}
	body := r.Body
	if exposition.WindowsLines(body) { // as in VictoriaMetrics
		if err := r.Take(int64(len(body))); err != nil {
			return false, err
		}
		body = exposition.UnixLines(body)
	}
	b := r.Batch()
	defer b.Rollback()
	lb := labels.NewBuilder(labels.EmptyLabels())
	err = exposition.Each(r.Context(), body, contentType, func(s *exposition.Sample) error {
		b.LongExemplars(s.LongExemplars)
		ls := s.Labels
		if len(extra) > 0 {
			lb.Reset(ls)
			for _, l := range extra {
				lb.Set(l.Name, l.Value)
			}
			ls = lb.Labels()
		}
		if err := b.Series(ls, s.Family, s.Meta); err != nil {
			return err
		}
		t := now
		if s.Timed {
			t = s.T
		} else {
			all = false
		}
		return b.Append(s.ST, t, s.V, s.H, s.FH, s.Exemplars...)
	})
	if err != nil {
		return false, err
	}
	_, err = b.Commit()
	return timed || all, err
}

// maxExtra bounds how many labels the parameters of a request may add.
const maxExtra = 32

func parameters(r *http.Request) (now int64, extra []labels.Label, err error) {
	now = time.Now().UnixMilli()
	refuse := func(text string) error {
		return receivers.Refuse(receivers.BadRequest, http.StatusBadRequest, "%s", text)
	}
	query := r.URL.Query()
	if text := query.Get("timestamp"); text != "" {
		if now, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, nil, refuse("the parameter timestamp is not a number of milliseconds")
		}
	}
	if len(query["extra_label"]) > maxExtra {
		return 0, nil, refuse("more than " + strconv.Itoa(maxExtra) + " parameters extra_label")
	}
	for _, pair := range query["extra_label"] {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || !model.UTF8Validation.IsValidLabelName(name) || !model.LabelValue(value).IsValid() || name == model.MetricNameLabel {
			return 0, nil, refuse("a parameter extra_label is not name=value")
		}
		extra = append(extra, labels.Label{Name: name, Value: value})
	}
	return now, extra, nil
}
