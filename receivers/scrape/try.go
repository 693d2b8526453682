package scrape

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"golang.org/x/sync/errgroup"

	"hwsagent/internal/pages"
	"hwsagent/internal/panics"
	"hwsagent/receivers/scrape/kubernetes"
)

// Bounds of [Jobs.Try].
const (
	lookTime  = 15 * time.Second // to find the targets of a job
	tryTime   = 15 * time.Second // to scrape them
	tryMost   = 50               // targets of a job
	tryAtOnce = 10               // of these
)

// Tried is the outcome of looking for the targets of a job and scraping them once. Its texts contain no secrets.
type Tried struct {
	Looked  bool          // the targets were looked for elsewhere: in files, or by asking other servers
	Found   int           // targets before relabelling
	Kept    int           // after relabelling
	Problem string        // why not all targets could be found; "" if they could
	Targets []TriedTarget // those that were scraped, in the order in which they were found
}

// TriedTarget is the outcome of scraping a target once.
type TriedTarget struct {
	URL     string
	Took    time.Duration
	Samples int    // that the target showed
	Error   string // "" if the scrape succeeded
	Try     string // what to do about the error
}

// Try looks for the targets of the named job and scrapes each of them once, at most 50. It stores nothing. It ends with ctx, at
// the latest after 30 s; targets whose turn does not come within that time are left out.
func (j *Jobs) Try(ctx context.Context, name string) Tried {
	for _, s := range j.settings() {
		if s.JobName == name {
			return newTrial(s).run(ctx)
		}
	}
	return Tried{Problem: fmt.Sprintf("there is no job %q", name)}
}

// trial tries one job.
type trial struct {
	cfg   *settings
	guard *panics.Guard
	quiet *slog.Logger
	done  Tried
}

func newTrial(s *settings) *trial {
	quiet := slog.New(slog.DiscardHandler)
	return &trial{cfg: s, guard: panics.New("scrape "+s.JobName, quiet), quiet: quiet}
}

func (t *trial) run(ctx context.Context) Tried {
	look, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var groups []*targetgroup.Group
	for _, place := range t.cfg.places() {
		_, static := place.([]*listed)
		t.done.Looked = t.done.Looked || !static
		found, err := t.find(look, place)
		groups = append(groups, found...)
		t.fails(err)
	}
	t.scrape(ctx, t.targets(groups))
	return t.done
}

// fails records the first problem.
func (t *trial) fails(err error) {
	if err != nil && t.done.Problem == "" {
		t.done.Problem = brief(err.Error())
	}
}

// find asks one source of targets once. With an error it returns what could be found.
func (t *trial) find(ctx context.Context, place any) (found []*targetgroup.Group, err error) {
	m := newSDMetrics()
	switch c := place.(type) {
	case []*listed:
		return staticGroups(c), nil
	case *fileSettings:
		r := &reader{patterns: c.Files, failed: m.fileFailed, logger: t.quiet, guard: t.guard, files: map[string]*listFile{}}
		found = r.look(time.Now())
		if r.unlisted != "" {
			return found, errors.New(r.unlisted)
		}
		for _, name := range slices.Sorted(maps.Keys(r.files)) {
			if f := r.files[name]; f.failed != "" {
				return found, errors.New(f.failed)
			}
		}
		return found, nil
	case *httpSettings:
		return (&finder{config: c, failed: m.httpFailed, guard: t.guard, pages: new(pages.Buffers)}).refresh(ctx)
	case *dnsSettings:
		return (&lookups{config: c, metrics: m, guard: t.guard}).refresh(ctx)
	case *kubernetes.Config:
		return t.list(ctx, c)
	}
	return nil, fmt.Errorf("a source of targets of unknown kind %T", place)
}

// list queries one API server until everything has been listed, or a list fails.
func (t *trial) list(ctx context.Context, c *kubernetes.Config) ([]*targetgroup.Group, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // guards the variables below
	groups := map[string]*targetgroup.Group{}
	problem, listed := "", false
	k := newCluster(c, newSDMetrics(), t.guard, t.quiet, func(all []*targetgroup.Group) {
		mu.Lock()
		defer mu.Unlock()
		for _, g := range all {
			groups[g.Source] = g
		}
	}, func(text string) {
		mu.Lock()
		defer mu.Unlock()
		problem = text
		cancel()
	}, func() {
		mu.Lock()
		defer mu.Unlock()
		listed = true
		cancel()
	})
	if err := t.guard.Do(func() error { k.Run(ctx); return nil }); err != nil {
		return nil, err
	}
	switch {
	case problem != "":
		return nil, errors.New(problem)
	case !listed:
		return nil, fmt.Errorf("the API server has not listed everything within %v", lookTime)
	}
	all := make([]*targetgroup.Group, 0, len(groups))
	for _, source := range slices.Sorted(maps.Keys(groups)) {
		all = append(all, groups[source])
	}
	return all, nil
}

// targets returns what relabelling makes of the groups, each target once.
func (t *trial) targets(groups []*targetgroup.Group) (kept []*target) {
	b := labels.NewBuilder(labels.EmptyLabels())
	have := map[uint64]bool{}
	for _, g := range groups {
		for i, own := range g.Targets {
			t.done.Found++
			made, err := newTarget(b, t.cfg, own, g.Labels)
			switch {
			case err != nil:
				t.fails(fmt.Errorf("target %d of %s: %w", i+1, place(g), err))
			case made != nil && !have[made.hash]:
				have[made.hash] = true
				kept = append(kept, made)
			}
		}
	}
	t.done.Kept = len(kept)
	if limit := t.cfg.TargetLimit; limit > 0 && uint(len(kept)) > limit {
		t.fails(fmt.Errorf("target_limit exceeded (number of targets: %d, limit: %d): the agent scrapes none", len(kept), limit))
	}
	return kept[:min(len(kept), tryMost)]
}

// scrape scrapes targets, several at a time.
func (t *trial) scrape(ctx context.Context, targets []*target) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	nowhere := newSink(func(string, time.Duration) storage.AppendableV2 { return &discard{} }, t.quiet)
	all := &shared{sink: nowhere, metrics: newMetrics(), logger: t.quiet, guards: &guards{func(string) *panics.Guard { return t.guard }}, requests: ctx}
	tried := make([]*TriedTarget, len(targets))
	var group errgroup.Group
	group.SetLimit(tryAtOnce)
	for i, to := range targets {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			if err := t.guard.Do(func() error { tried[i] = t.one(all, to); return nil }); err != nil {
				tried[i] = &TriedTarget{URL: to.shown(), Error: err.Error(), Try: "report this as a bug"}
			}
			return nil
		})
	}
	_ = group.Wait() // each target has its own error
	for _, one := range tried {
		if one != nil {
			t.done.Targets = append(t.done.Targets, *one)
		}
	}
}

// one scrapes one target, by the code of a scheduled scrape.
func (t *trial) one(all *shared, to *target) *TriedTarget {
	done := &TriedTarget{URL: to.shown()}
	start := time.Now()
	c, err := newClient(t.cfg.HTTPClientConfig, t.cfg.Params, to.labels.Get(socketLabel))
	if err == nil {
		defer c.close()
		l := &loop{
			shared: all, target: to, job: t.cfg.JobName, reading: newReading(t.cfg, to, false), request: newRequester(c, to, t.cfg),
			cache: newCache(), guard: t.guard, refusal: new(atomic.Pointer[error]), failures: new(atomic.Pointer[failureLog]),
		}
		batch := l.begin()
		o := l.page(batch, start.UnixMilli())
		batch.rollback()
		done.Samples, err = o.scraped, o.err
	}
	done.Took = time.Since(start)
	if err != nil {
		done.Error, done.Try = explain(err, to, t.cfg)
	}
	return done
}

// discard is a destination that keeps nothing. Its references are never 0, as those of accepted series.
type discard struct{ last storage.SeriesRef }

// AppenderV2 implements storage.AppendableV2.
func (*discard) AppenderV2(context.Context) storage.AppenderV2 { return &discard{} }

// Append implements storage.AppenderV2.
func (d *discard) Append(_ storage.SeriesRef, _ labels.Labels, _, _ int64, _ float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	d.last++
	return d.last, nil
}

// Commit implements storage.AppenderV2.
func (*discard) Commit() error { return nil }

// Rollback implements storage.AppenderV2.
func (*discard) Rollback() error { return nil }
