package web

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Server-sent events, see https://html.spec.whatwg.org/multipage/server-sent-events.html.
const (
	streamEvery = 2 * time.Second
	maxStreams  = 32               // at a time
	slowReader  = 10 * time.Second // until a reader that does not read is disconnected
)

// streams counts the readers and ends them.
type streams struct {
	open   atomic.Int32
	ending chan struct{} // closed when the server stops
	once   sync.Once
}

// end ends all streams.
func (s *streams) end() { s.once.Do(func() { close(s.ending) }) }

// stream serves GET /api/v1/stream: the content of the page's main element, again and again. Beyond maxStreams the
// answer is 503, and the page polls instead.
func (h *handlers) stream(w http.ResponseWriter, r *http.Request) {
	at, err := url.Parse(r.URL.Query().Get("page"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	screen, ok := h.screen(at)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodHead { // the answer has no body: without this it would never end, and block its connection
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	if h.streams.open.Add(1) > maxStreams {
		h.streams.open.Add(-1)
		writeText(w, http.StatusServiceUnavailable, "too many pages are open\n")
		return
	}
	defer h.streams.open.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	for {
		if err := out.SetWriteDeadline(time.Now().Add(slowReader)); err != nil {
			return
		}
		if _, err := w.Write(event("main", screen.part(h.look(at)))); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-h.streams.ending:
			return
		case <-tick.C:
		}
	}
}

// event formats one event, with a line for each line of its data.
func event(name, data string) []byte {
	data = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data)
	return []byte("event: " + name + "\ndata: " + strings.ReplaceAll(data, "\n", "\ndata: ") + "\n\n")
}
