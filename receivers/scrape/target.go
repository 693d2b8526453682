package scrape

import (
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/internal/redact"
)

// The states of a target, as in Prometheus.
const (
	healthUnknown = "unknown"
	healthUp      = "up"
	healthDown    = "down"
)

// target is one address to scrape under one configuration of its job. It is immutable except for
// its state.
type target struct {
	labels            labels.Labels // after relabelling, with those that begin with __
	public            labels.Labels // the labels added to its samples
	url               string
	hash              uint64 // of labels and url: targets of one job with the same hash are one
	interval, timeout time.Duration
	state             *state // shared with the same target of an earlier configuration
}

// state is the outcome of the last scrape of a target. It is safe for concurrent use.
type state struct {
	mu     sync.Mutex
	health string
	start  time.Time
	took   time.Duration
	err    string    // without secrets
	failed time.Time // start of the first of the failed scrapes in a row; zero: the last one did not fail
}

// newTarget makes a target of discovered labels. It returns nil if relabelling drops the target.
func newTarget(b *labels.Builder, cfg *settings, own, group model.LabelSet) (*target, error) {
	all, err := targetLabels(b, cfg, own, group)
	if err != nil || all.IsEmpty() {
		return nil, err
	}
	t := &target{labels: all, url: targetURL(cfg, all).String(), state: &state{health: healthUnknown}}
	public := labels.NewScratchBuilder(all.Len())
	all.Range(func(l labels.Label) {
		if !strings.HasPrefix(l.Name, model.ReservedLabelPrefix) {
			public.Add(l.Name, l.Value)
		}
	})
	t.public = public.Labels()
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendUint(nil, all.Hash(), 10)) // never returns an error
	_, _ = h.Write([]byte(" " + t.url))
	t.hash = h.Sum64()
	t.interval, t.timeout = t.duration(model.ScrapeIntervalLabel, cfg.ScrapeInterval), t.duration(model.ScrapeTimeoutLabel, cfg.ScrapeTimeout)
	return t, nil
}

// duration parses a label that checkTarget has checked.
func (t *target) duration(name string, otherwise model.Duration) time.Duration {
	if d, err := model.ParseDuration(t.labels.Get(name)); err == nil {
		otherwise = d
	}
	return time.Duration(otherwise)
}

// targetURL builds the address from labels. The first value of a parameter comes from its label,
// further ones from the configuration.
func targetURL(cfg *settings, all labels.Labels) *url.URL {
	params := url.Values{}
	for name, values := range cfg.Params {
		params[name] = append([]string(nil), values...)
	}
	all.Range(func(l labels.Label) {
		name, ok := strings.CutPrefix(l.Name, model.ParamLabelPrefix)
		switch {
		case !ok:
		case len(params[name]) > 0:
			params[name][0] = l.Value
		default:
			params[name] = []string{l.Value}
		}
	})
	host := all.Get(model.AddressLabel)
	if host == "" && all.Get(socketLabel) != "" {
		host = "localhost"
	}
	return &url.URL{Scheme: all.Get(model.SchemeLabel), Host: host, Path: all.Get(model.MetricsPathLabel), RawQuery: params.Encode()}
}

// shown returns the address for people.
func (t *target) shown() string { return redact.URL(t.url) }

// flag returns the value of a label that overrides a setting of the job.
func (t *target) flag(name string, otherwise bool) bool {
	if b, err := strconv.ParseBool(t.labels.Get(name)); err == nil {
		return b
	}
	return otherwise
}

// offset is how long after now the target's scrapes begin. It spreads targets over the interval. The
// point of the interval survives restarts: it depends only on target, host (seed) and the time of
// day.
func (t *target) offset(now time.Time, interval time.Duration, seed uint64) time.Duration {
	point := time.Duration((t.hash ^ seed) % uint64(interval)) // #nosec G115 -- an interval is more than 0
	since := time.Duration(now.UnixNano() % int64(interval))
	if point < since {
		point += interval
	}
	return point - since
}

// report records the outcome of a scrape.
func (s *state) report(start time.Time, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.health, s.start, s.took, s.err, s.failed = healthUp, start, took, "", time.Time{}
		return
	}
	if s.failed.IsZero() {
		s.failed = start
	}
	s.health, s.start, s.took, s.err = healthDown, start, took, err.Error()
}

// downSince returns when the first of the failed scrapes in a row began; zero: the last one did not fail.
func (s *state) downSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// last returns the outcome recorded by report.
func (s *state) last() (health string, start time.Time, took time.Duration, err string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health, s.start, s.took, s.err
}

// hiddenLabels returns the labels of a target before relabelling, for people: without the values of
// parameters, and without passwords and queries in addresses.
func hiddenLabels(all labels.Labels) labels.Labels {
	b := labels.NewScratchBuilder(all.Len())
	all.Range(func(l labels.Label) {
		switch {
		case strings.HasPrefix(l.Name, model.ParamLabelPrefix) && l.Value != "":
			l.Value = redact.Mark
		case strings.Contains(l.Value, "://"):
			l.Value = redact.Text(l.Value)
		}
		b.Add(l.Name, l.Value)
	})
	return b.Labels()
}
