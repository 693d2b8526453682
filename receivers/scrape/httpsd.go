package scrape

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"hwsagent/internal/pages"
	"hwsagent/internal/panics"
	"hwsagent/internal/redact"
)

// finder finds targets by a http_sd_configs entry. It belongs to one goroutine.
type finder struct {
	config *httpSettings
	failed prometheus.Counter
	guard  *panics.Guard
	pages  *pages.Buffers
	client *client // nil until it has been made
	before int     // groups of the last list
}

// refresh queries once, for at most the refresh interval. Its errors contain no secrets.
func (f *finder) refresh(ctx context.Context) (found []*targetgroup.Group, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(f.config.RefreshInterval))
	defer cancel()
	err = f.guard.Do(func() error {
		found, err = f.ask(ctx)
		return err
	})
	if err != nil {
		f.failed.Inc()
		return nil, err
	}
	return found, nil
}

func (f *finder) ask(ctx context.Context) ([]*targetgroup.Group, error) {
	if f.client == nil {
		c, err := newClient(f.config.HTTPClientConfig, nil, "")
		if err != nil {
			return nil, err
		}
		f.client = c
	}
	defer f.client.close() // not needed until the next refresh, after a minute by default
	list, err := f.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("get the targets from %s: %w", redact.URL(f.config.URL), f.client.hidden(err, f.config.URL))
	}
	all := groups(list, redact.URL(f.config.URL), model.MetaLabelPrefix+"url", f.config.URL, f.before)
	f.before = len(list)
	return all, nil
}

// list gets the list.
func (f *finder) list(ctx context.Context) (all []listed, failed error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.config.URL, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("X-Prometheus-Refresh-Interval-Seconds", strconv.FormatFloat(time.Duration(f.config.RefreshInterval).Seconds(), 'f', -1, 64))
	resp, err := f.client.http.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		return nil, e.Err // refresh adds the address
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("server returned HTTP status %s", resp.Status)
	}
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" || params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8") {
		return nil, fmt.Errorf("unsupported content type %q", resp.Header.Get("Content-Type"))
	}
	text := f.pages.Take()
	defer func() { f.pages.Give(text, failed != nil) }()
	if n, err := f.pages.Read(text, resp.Body, maxListBytes+1, 0); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	} else if n > maxListBytes {
		return nil, fmt.Errorf("the list has more than %d bytes", maxListBytes)
	}
	list, err := readJSON(text.Bytes())
	if err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	return list, nil
}
