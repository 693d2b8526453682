package scrape

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/logging"
)

const (
	// settle bounds how often targets that were found are taken up; Prometheus' own.
	settle = 5 * time.Second
	// lastScrapes is how long scrapes that are under way when the agent stops get to end.
	lastScrapes = 500 * time.Millisecond
)

// Options are what a Scraper needs from its surroundings.
type Options struct {
	// Out is where a job's samples go, one that is scraped at that interval. It is called
	// for each scrape.
	Out        func(job string, interval time.Duration) storage.AppendableV2
	Registerer prometheus.Registerer // of Prometheus' own metrics of scraping and discovery
	Logger     *slog.Logger
	// StartTimestamps keeps them where a target has them. In OpenMetrics text they are
	// series whose names end in _created, which then are no series of their own.
	StartTimestamps bool
	// Settle bounds how often targets that were found are taken up; a job that could not
	// be started is tried again after three times that. 0: five seconds, as in Prometheus.
	Settle time.Duration
}

// Scraper scrapes the targets of jobs. Until it has had a job it costs nothing. It is safe
// for concurrent use.
type Scraper struct {
	o    Options
	sink *sink
	jobs chan *Jobs // the newest that is to be put in place
	// busy says that the manager's lock may be held for as long as a scrape takes;
	// meanwhile what shown has is told.
	busy atomic.Bool

	mu      sync.Mutex
	scrapes *scrape.Manager // nil until there was a job
	finder  *discovery.Manager
	find    context.Context    // of finder
	endFind context.CancelFunc // nil until there was a job
	latest  *Jobs
	shown   snapshot
}

// New makes a scraper.
func New(o Options) *Scraper {
	if o.Settle <= 0 {
		o.Settle = settle
	}
	return &Scraper{o: o, sink: newSink(o.Out, o.Logger), jobs: make(chan *Jobs, 1)}
}

// Apply makes jobs those that run; there may be none. A job whose configuration is unchanged
// goes on undisturbed. It returns before the jobs have begun: that a scrape under way ends,
// or a name server answers, is not waited for.
func (s *Scraper) Apply(jobs *Jobs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scrapes == nil {
		if len(jobs.Names()) == 0 {
			return nil
		}
		if err := s.build(); err != nil {
			return err
		}
	}
	s.latest = jobs
	select {
	case <-s.jobs: // overtaken
	default:
	}
	s.jobs <- jobs
	return nil
}

// build makes the managers. The caller holds the lock.
func (s *Scraper) build() error {
	sd, err := discovery.CreateAndRegisterSDMetrics(s.o.Registerer)
	if err != nil {
		return fmt.Errorf("prepare discovery: %w", err)
	}
	find, end := context.WithCancel(context.Background())
	finder := discovery.NewManager(find, s.o.Logger, s.o.Registerer, sd, discovery.Name("scrape"), discovery.Updatert(s.o.Settle))
	if finder == nil {
		end()
		return errors.New("prepare discovery: the reason is logged")
	}
	scrapes, err := scrape.NewManager(&scrape.Options{
		AppendMetadata:           true,
		PassMetadataInContext:    true, // the sink wants the target
		ParseST:                  s.o.StartTimestamps,
		DiscoveryReloadInterval:  model.Duration(s.o.Settle),
		DiscoveryReloadOnStartup: true,
	}, s.o.Logger, logging.NewJSONFileLogger, nil, s.sink, s.o.Registerer)
	if err != nil {
		end()
		return fmt.Errorf("prepare scraping: %w", err)
	}
	if err := s.o.Registerer.Register(s.sink.refused); err != nil {
		end()
		return fmt.Errorf("prepare scraping: %w", err)
	}
	s.scrapes, s.finder, s.find, s.endFind = scrapes, finder, find, end
	return nil
}

// Run scrapes until ctx ends. Scrapes that are under way then get half a second; one that
// hangs for longer is left behind, and nothing of it is appended any more. It is called
// once.
func (s *Scraper) Run(ctx context.Context) error {
	var jobs *Jobs
	select {
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.endFind != nil {
			s.endFind()
		}
		return nil
	case jobs = <-s.jobs: // from here on there are managers
	}
	targets := make(chan map[string][]*targetgroup.Group)
	var parts sync.WaitGroup
	failed := make(chan error, 2)
	parts.Go(func() { failed <- s.scrapes.Run(targets) })
	parts.Go(func() {
		if err := s.finder.Run(); !errors.Is(err, context.Canceled) {
			failed <- err
		}
	})
	found := s.finder.SyncCh()
	var latest map[string][]*targetgroup.Group
	s.put(ctx, jobs)
	retry := time.NewTicker(3 * s.o.Settle)
	defer retry.Stop()
	for {
		select {
		case jobs = <-s.jobs:
			s.put(ctx, jobs)
		case latest = <-found:
			s.hand(ctx, targets, latest)
		case <-retry.C:
			if s.canStart(jobs, latest) {
				s.hand(ctx, targets, latest)
			}
		case <-ctx.Done():
			return s.stop(&parts, failed)
		}
	}
}

// canStart reports whether a job could not be started when its targets were found, since
// its client could not be made, and can be now. It is started when its targets come again.
func (s *Scraper) canStart(jobs *Jobs, found map[string][]*targetgroup.Group) bool {
	started := s.scrapes.ScrapePools()
	if len(started) >= len(found) {
		return false
	}
	bad := jobs.clientErrors()
	for name := range found {
		if bad[name] == nil && !slices.Contains(started, name) {
			return true
		}
	}
	return false
}

func (s *Scraper) hand(ctx context.Context, to chan<- map[string][]*targetgroup.Group, targets map[string][]*targetgroup.Group) {
	select {
	case to <- targets:
	case <-ctx.Done():
	}
}

// put gives the managers their jobs. It may take as long as a scrape: one that is under way
// is not given up for a new configuration, but it is for the end of ctx.
func (s *Scraper) put(ctx context.Context, jobs *Jobs) {
	s.snapshot()
	s.busy.Store(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.scrapes.ApplyConfig(jobs.config); err != nil {
			s.o.Logger.Error("Not every scrape job could be changed; those go on as they were", "err", err)
		}
		if err := s.finder.ApplyConfig(jobs.discoveries()); err != nil && ctx.Err() == nil {
			s.o.Logger.Error("Not every discovery of targets could be started", "err", err)
		}
	}()
	select {
	case <-done:
		s.busy.Store(false)
	case <-ctx.Done(): // and the managers are busy to the end
	}
}

// stop ends everything.
func (s *Scraper) stop(parts *sync.WaitGroup, failed <-chan error) error {
	s.snapshot()
	s.busy.Store(true)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.scrapes.Stop()
	}()
	hung := time.NewTimer(lastScrapes)
	defer hung.Stop()
	select {
	case <-stopped:
	case <-hung.C:
		s.o.Logger.Info("Scrapes that have not ended are left behind")
	}
	s.sink.close()
	s.endFind()
	select {
	case <-stopped:
		parts.Wait()
	default:
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
