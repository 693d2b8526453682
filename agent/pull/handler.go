// Package pull exposes the newest value of every series in Prometheus' exposition formats, for
// consumers that scrape instead of receiving.
package pull

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/inputs"
)

// Bounds of a request.
const (
	maxSelector = 64 // match[] of one request
	maxQuery    = 16 << 10
)

// Options configure a handler.
type Options struct {
	// Newest appends the newest sample of each series to all.
	Newest func(all []inputs.Sample) []inputs.Sample
	// External are labels added to every series that lacks them, as when it is sent.
	External labels.Labels
	// Selector parses a selector, such as up{job="node"}.
	Selector func(string) ([]*labels.Matcher, error)
	// Unshown, if not nil, is set to the number of series that the last answer to /metrics omitted
	// because its format cannot express them.
	Unshown *atomic.Int64
	// Logger reports readers that lost their places; nil discards that.
	Logger *slog.Logger
}

// Handler serves GET /metrics, all series without timestamps, like an exporter, and GET
// /federate?match[]=…, the selected series with timestamps, like a Prometheus.
type Handler struct {
	o      Options
	places *places
	pool   sync.Pool // of *[]inputs.Sample
}

// New makes a handler.
func New(o Options) *Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Handler{o: o, places: newPlaces(o.Logger)}
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	if r.ContentLength != 0 {
		// The handler does not read the body, and the server would wait for it before the first byte of the answer.
		w.Header().Set("Connection", "close")
		http.Error(w, "a request has no body here", http.StatusBadRequest)
		return
	}
	var chosen [][]*labels.Matcher
	switch r.URL.Path {
	case "/":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "hwsagent shows what it collects at /metrics, and at /federate?match[]=SELECTOR\n") // an error means that the reader has gone
		return
	case "/metrics":
	case "/federate":
		var err error
		if chosen, err = h.selectors(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	default:
		http.NotFound(w, r)
		return
	}
	p, err := h.places.take(r.Context(), w)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, fmt.Sprintf("%d answers are being written, and none ended for %s", maxAtOnce, maxWait), http.StatusServiceUnavailable)
		return
	}
	defer h.places.leave(p)
	h.answer(p, r, chosen)
}

// selectors returns the selectors of a request to /federate.
func (h *Handler) selectors(r *http.Request) ([][]*labels.Matcher, error) {
	if len(r.URL.RawQuery) > maxQuery {
		return nil, fmt.Errorf("the query has more than %d bytes", maxQuery)
	}
	texts := r.URL.Query()["match[]"]
	if len(texts) == 0 {
		return nil, fmt.Errorf(`say which series: /federate?match[]=%%7B__name__%%3D~".%%2B"%%7D is all`)
	}
	if len(texts) > maxSelector {
		return nil, fmt.Errorf("more than %d selectors", maxSelector)
	}
	var all [][]*labels.Matcher
	for _, text := range texts {
		ms, err := h.o.Selector(text)
		if err != nil {
			return nil, err
		}
		all = append(all, ms)
	}
	return all, nil
}

// answer writes the series that chosen selects, or all if chosen is nil.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, chosen [][]*labels.Matcher) {
	kept, ok := h.pool.Get().(*[]inputs.Sample)
	if !ok {
		kept = new([]inputs.Sample)
	}
	all := h.o.Newest((*kept)[:0])
	defer func() {
		clear(all)
		*kept = all[:0]
		h.pool.Put(kept)
	}()

	format := expfmt.NegotiateAccept(r.Header, expfmt.FmtText, expfmt.FmtProtoDelim, expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1)
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	var out io.Writer = w
	if acceptsGzip(r.Header) {
		w.Header().Set("Content-Encoding", "gzip")
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil { // cannot happen: the level is valid
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer func() { _ = z.Close() }() // an error means that the reader has gone
		out = z
	}
	if r.Method == http.MethodHead {
		return
	}
	buffer := bufio.NewWriterSize(out, 64<<10)
	protobuf := format.FormatType() == expfmt.TypeProtoDelim
	rows, unshown := prepare(all, h.o.External, chosen, format.ToEscapingScheme(), protobuf)
	if chosen == nil && h.o.Unshown != nil {
		h.o.Unshown.Store(int64(unshown))
	}
	how := writing{open: format.FormatType() == expfmt.TypeOpenMetrics, escape: format.ToEscapingScheme(), times: chosen != nil}
	if protobuf {
		_ = writeProtobuf(buffer, rows, how) // an error means that the reader has gone
	} else {
		write(buffer, rows, how)
	}
	_ = buffer.Flush() // likewise
}

func acceptsGzip(header http.Header) bool {
	for _, one := range strings.Split(header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(one), ";")
		if strings.TrimSpace(name) == "gzip" {
			return strings.ReplaceAll(weight, " ", "") != "q=0"
		}
	}
	return false
}
