package scrape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/common/model"

	"hwsagent/internal/pages"
)

const userAgent = "hwsagent"

// errBodySize means that a page exceeds body_size_limit.
var errBodySize = errors.New("body size limit exceeded")

// statusError is an answer without a page.
type statusError struct {
	code   int
	status string
}

func (e *statusError) Error() string { return "server returned HTTP status " + e.status }

// requester gets the page of one target. It belongs to one goroutine.
type requester struct {
	client *client
	url    string
	header http.Header
	limit  int64 // of the page, uncompressed, in bytes
	last   int   // size of the last page that was not empty
}

func newRequester(c *client, t *target, cfg *settings) *requester {
	h := http.Header{}
	h.Set("Accept", accepted(cfg.ScrapeProtocols, cfg.escaping()))
	h.Set("Accept-Encoding", "identity")
	if cfg.EnableCompression {
		h.Set("Accept-Encoding", "gzip")
	}
	h.Set("User-Agent", userAgent)
	h.Set("X-Prometheus-Scrape-Timeout-Seconds", strconv.FormatFloat(t.timeout.Seconds(), 'f', -1, 64))
	return &requester{client: c, url: t.url, header: h, limit: int64(cfg.BodySizeLimit)}
}

// accepted returns the Accept header (RFC 9110, 12.5.1) for formats in order of preference.
func accepted(protocols []protocol, escaping model.EscapingScheme) string {
	types := mediaTypes()
	var all []string
	weight := len(types) + 1
	add := func(format string) {
		all = append(all, fmt.Sprintf("%s;q=0.%d", format, weight))
		weight--
	}
	for _, p := range protocols {
		format := types[p]
		if p == text100 || p == openMetrics1 { // the older formats have no escaping
			format += ";" + model.EscapingKey + "=" + escaping.String()
		}
		add(format)
	}
	add("*/*")
	return strings.Join(all, ",")
}

// get reads the target's page into buf, which is empty, and returns its content type. It ends with ctx.
// Its errors contain no secrets.
func (r *requester) get(ctx context.Context, buf *bytes.Buffer, memory *pages.Buffers) (contentType string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, http.NoBody)
	if err != nil {
		return "", r.hidden(err)
	}
	req.Header = r.header.Clone()
	resp, err := r.client.http.Do(req)
	if err != nil {
		return "", r.hidden(err)
	}
	defer func() {
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
		_ = resp.Body.Close()
	}()
	if resp.StatusCode != http.StatusOK {
		return "", r.hidden(&statusError{resp.StatusCode, resp.Status})
	}
	if err := readBody(resp, buf, r.limit, r.last, memory); err != nil {
		if errors.Is(err, errBodySize) {
			return "", err
		}
		return "", r.hidden(err)
	}
	if buf.Len() > 0 {
		r.last = buf.Len()
	}
	return resp.Header.Get("Content-Type"), nil
}

// hidden returns an error about the target for people.
func (r *requester) hidden(err error) error { return r.client.hidden(err, r.url) }

// readBody reads an answer of less than limit bytes uncompressed, and probably of about expected bytes.
func readBody(resp *http.Response, to *bytes.Buffer, limit int64, expected int, memory *pages.Buffers) error {
	var from io.Reader = resp.Body
	switch encoding := resp.Header.Get("Content-Encoding"); encoding {
	case "gzip":
		unzip, err := gzip.NewReader(resp.Body)
		if err != nil {
			return fmt.Errorf("decompress the answer: %w", err)
		}
		defer unzip.Close()
		from = unzip
	case "zstd":
		return errors.New("the answer is compressed with zstd, which was not asked for")
	}
	switch n, err := memory.Read(to, from, limit, expected); {
	case err != nil:
		return fmt.Errorf("read the answer: %w", err)
	case n >= limit:
		return errBodySize
	}
	return nil
}
