package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	neturl "net/url"
	"syscall"
	"time"

	"hwsagent/internal/pages"
	"hwsagent/internal/panics"
	"hwsagent/internal/redact"
	"hwsagent/probes"
	"hwsagent/probes/exposition"
)

// tryAgain is the pause before scraping again while a new exporter does not listen yet.
const tryAgain = 50 * time.Millisecond

// Probe implements [probes.Probe].
type Probe struct {
	config   Config
	hide     *redact.Secrets
	log      *slog.Logger
	guard    *panics.Guard
	client   *http.Client
	pages    pages.Buffers
	exporter *exporter // nil until the first round, and for a command without scrape_url
}

// New returns the probe. It runs nothing before the first round: only then is a replaced probe certain to have ended.
//
// The guard contains the panics of the goroutines that run a command; it may be nil.
func New(c Config, logger *slog.Logger, guard *panics.Guard) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	// No proxy, no redirects, no compression: the exporter is another program on this host.
	client := &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Probe{config: c, hide: c.secrets(), log: logger, guard: guard, client: client}, nil
}

// Collect runs the command, or scrapes the exporter. The output of a failing command, and malformed text, adds no
// samples. No error repeats a secret, whatever the command or exporter prints.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	return p.hide.Error(p.collect(ctx, r))
}

func (p *Probe) collect(ctx context.Context, r *probes.Round) error {
	if p.config.ScrapeURL == "" {
		out, err := Run(ctx, &p.config, p.guard)
		if err != nil {
			return err
		}
		if err := exposition.Parse(ctx, out, exposition.Options{}, r); err != nil {
			return fmt.Errorf("read the output of %s: %w", p.config.Command[0], err)
		}
		return nil
	}
	if p.exporter == nil {
		p.exporter = startExporter(p.config, p.log, p.guard)
	}
	return p.scrape(ctx, r)
}

// Close ends the exporter.
func (p *Probe) Close() error {
	if p.exporter != nil {
		p.exporter.close()
	}
	p.client.CloseIdleConnections()
	return nil
}

// scrape scrapes the exporter; if it has just been started, scrape retries as long as the round lasts.
func (p *Probe) scrape(ctx context.Context, r *probes.Round) error {
	for {
		url, err := p.exporter.address()
		if err == nil {
			err = p.get(ctx, url, r)
		}
		if !errors.Is(err, errStarting) && !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		wait := time.NewTimer(tryAgain)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return err
		}
	}
}

func (p *Probe) get(ctx context.Context, url URL, r *probes.Round) (failed error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, string(url), nil)
	if err != nil {
		return fmt.Errorf("scrape exporter: %w", err)
	}
	req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.8,*/*;q=0.1")
	resp, err := p.client.Do(req)
	var full *neturl.Error
	if errors.As(err, &full) {
		err = fmt.Errorf("%s: %w", url, full.Err) // an address without its query
	}
	if err != nil {
		return fmt.Errorf("scrape exporter: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("scrape exporter: %s answers %s", url, resp.Status)
	}
	page := p.pages.Take()
	defer func() { p.pages.Give(page, failed != nil) }()
	switch n, err := p.pages.Read(page, resp.Body, int64(p.config.limit())+1, 0); {
	case err != nil:
		return fmt.Errorf("scrape exporter: %w", err)
	case n > int64(p.config.limit()):
		return fmt.Errorf("scrape exporter: %w (%d bytes)", errTooMuch, p.config.limit())
	}
	if err := exposition.Parse(ctx, page.Bytes(), exposition.Options{ContentType: resp.Header.Get("Content-Type")}, r); err != nil {
		return fmt.Errorf("read the metrics of %s: %w", p.config.Command[0], err)
	}
	return nil
}
