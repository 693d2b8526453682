package hostile

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// maxBody bounds a request.
const maxBody = 16 << 20

// Exchange is one request whose body has not been read yet.
type Exchange struct {
	Request *http.Request
	c       *conn
	written int // number of its stored samples
}

// accept does what a normal server does.
func (x *Exchange) accept() bool {
	if !x.store(false) {
		return false
	}
	return x.say("HTTP/1.1 204 No Content\r\n" + x.head() + "\r\n")
}

// head returns the headers of an answer: those required by 2.0, and the time.
func (x *Exchange) head() string {
	return fmt.Sprintf("Date: %s\r\n", time.Now().UTC().Format(http.TimeFormat)) + x.writtenHead()
}

func (x *Exchange) writtenHead() string {
	if !isV2(x.Request) {
		return ""
	}
	return fmt.Sprintf("X-Prometheus-Remote-Write-Samples-Written: %d\r\nX-Prometheus-Remote-Write-Histograms-Written: 0\r\nX-Prometheus-Remote-Write-Exemplars-Written: 0\r\n", x.written)
}

// say writes; it returns false if the client has gone.
func (x *Exchange) say(text string) bool { return x.c.say(text) }

func (c *conn) say(text string) bool {
	_, err := io.WriteString(c.Conn, text)
	return err == nil
}

// status answers with a status, without storing anything; head are more headers, with line ends.
func (x *Exchange) status(code int, head, body string) bool {
	return x.drop() && x.say(fmt.Sprintf("HTTP/1.1 %03d %s\r\n%sContent-Length: %d\r\n\r\n%s", code, http.StatusText(code), head, len(body), body))
}

// drop reads and discards the body.
func (x *Exchange) drop() bool {
	_, err := io.Copy(io.Discard, io.LimitReader(x.Request.Body, maxBody))
	return err == nil
}

// store reads and stores the body. withheld: the sender will not learn of it.
func (x *Exchange) store(withheld bool) bool {
	n, err := x.c.s.store(x.Request, withheld)
	x.written = n
	return err == nil
}

// store reads and stores the body of a request.
func (s *Server) store(req *http.Request, withheld bool) (samples int, err error) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody))
	if err != nil {
		return 0, err
	}
	series, err := decode(req, body)
	if err != nil {
		s.mu.Lock()
		s.counts.Wrong = err.Error()
		s.mu.Unlock()
		return 0, err
	}
	for _, ts := range series {
		samples += len(ts.Samples)
	}
	s.sink.Lock()
	if s.o.Sink != nil && len(series) > 0 {
		s.o.Sink(series)
	}
	s.sink.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if withheld || s.doubt {
		s.counts.Unsure += uint64(samples)
	}
	return samples, nil
}

// isV2 reports whether a request is one of remote write 2.0.
func isV2(req *http.Request) bool {
	return strings.Contains(req.Header.Get("Content-Type"), "io.prometheus.write.v2.Request")
}

// decode decodes a request of either version.
func decode(req *http.Request, body []byte) ([]prompb.TimeSeries, error) {
	if req.Method != http.MethodPost || req.Header.Get("Content-Encoding") != "snappy" || !strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-protobuf") {
		return nil, fmt.Errorf("%s with %q in %q is no remote write", req.Method, req.Header.Get("Content-Type"), req.Header.Get("Content-Encoding"))
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		return nil, fmt.Errorf("decode a request: %w", err)
	}
	if !isV2(req) {
		var w prompb.WriteRequest
		err := w.Unmarshal(raw)
		return w.Timeseries, err
	}
	var w writev2.Request
	if err := w.Unmarshal(raw); err != nil {
		return nil, err
	}
	b := labels.NewScratchBuilder(0)
	var all []prompb.TimeSeries
	for _, ts := range w.Timeseries {
		ls, err := ts.ToLabels(&b, w.Symbols)
		if err != nil {
			return nil, err
		}
		one := prompb.TimeSeries{Labels: prompb.FromLabels(ls, nil)}
		for _, s := range ts.Samples {
			one.Samples = append(one.Samples, prompb.Sample{Value: s.Value, Timestamp: s.Timestamp})
		}
		all = append(all, one)
	}
	return all, nil
}

// wait waits until the sender gives up, or the connection is cut.
func (c *conn) wait() bool {
	_, _ = io.Copy(io.Discard, c.tcp)
	return false
}

func (x *Exchange) wait() bool { return x.c.wait() }

// atOnce is the shortest pause that does not hurt anything else.
const atOnce = time.Millisecond

// repeat writes a text again and again until the client has gone.
func (c *conn) repeat(text string, every time.Duration) bool {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		c.wait()
	}()
	defer func() { <-gone }()
	defer c.tcp.Close()
	for c.say(text) {
		select {
		case <-gone:
			return false
		case <-time.After(every):
		}
	}
	return false
}

func (x *Exchange) repeat(text string, every time.Duration) bool { return x.c.repeat(text, every) }

// reset ends the connection so that the sender sees ECONNRESET.
func (c *conn) reset() bool {
	_ = errors.Join(c.tcp.SetLinger(0), c.tcp.Close()) // the connection may be gone
	return false
}

func (x *Exchange) reset() bool { return x.c.reset() }
