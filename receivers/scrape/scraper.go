package scrape

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/panics"
)

const (
	// settle is the minimum time between two applications of discovered targets, as in Prometheus.
	settle = 5 * time.Second
	// lastScrapes is how long scrapes in progress may go on when the agent stops.
	lastScrapes = 500 * time.Millisecond
	// lastMoment is how long they may take to end after their requests were canceled.
	lastMoment = time.Second
)

// Options are the dependencies and settings of a Scraper.
type Options struct {
	// Out returns the destination of the samples of a job that is scraped at that interval. It
	// is called for each scrape.
	Out        func(job string, interval time.Duration) storage.AppendableV2
	Registerer prometheus.Registerer // of the metrics of scraping and discovery
	Logger     *slog.Logger
	// Guard returns the guard that contains the panics of a job's work. Nil means a guard that only logs them.
	Guard func(job string) *panics.Guard
	// StartTimestamps keeps start timestamps where a target has them. In OpenMetrics text these
	// are series whose names end in _created; then they are not stored as series.
	StartTimestamps bool
	// Settle is the minimum time between two applications of discovered targets. A job that
	// could not be started is tried again after three times that. 0 means five seconds, as in Prometheus.
	Settle time.Duration
}

// Scraper scrapes the targets of jobs. It costs nothing until it has had a job. It is safe for
// concurrent use.
type Scraper struct {
	o       Options
	sink    *sink
	changed chan struct{} // holds a value if latest is to be applied

	loops       sync.WaitGroup     // everything that runs for a job
	agent       context.Context    // of the jobs
	endJobs     context.CancelFunc // no scrape begins after it
	endRequests context.CancelFunc // and scrapes in progress end

	// Owned by the goroutine of Run.
	guard    *panics.Guard
	found    map[string][]*targetgroup.Group // newest, by job
	failures map[string]*failureLog          // by path

	mu       sync.Mutex
	shared   *shared // nil until the first job, as are the next three
	finder   *discovery
	latest   *Jobs
	pools    map[string]*pool
	problems map[string]error // why a job could not be started or changed
}

// New makes a scraper.
func New(o Options) *Scraper {
	if o.Settle <= 0 {
		o.Settle = settle
	}
	if o.Guard == nil {
		o.Guard = func(job string) *panics.Guard { return panics.New("scrape "+job, o.Logger) }
	}
	return &Scraper{o: o, guard: panics.New("scrape jobs", o.Logger), sink: newSink(o.Out, o.Logger), changed: make(chan struct{}, 1), pools: map[string]*pool{}, problems: map[string]error{}}
}

// Apply sets the jobs to run; there may be none. A job whose configuration is unchanged continues
// undisturbed. Apply returns before the jobs have begun.
func (s *Scraper) Apply(jobs *Jobs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil {
		if len(jobs.Names()) == 0 {
			return nil
		}
		if err := s.build(); err != nil {
			return err
		}
	}
	s.latest = jobs
	select {
	case s.changed <- struct{}{}:
	default: // Run will read the latest
	}
	return nil
}

// build makes the state that jobs share. The caller holds the lock.
func (s *Scraper) build() error {
	m, sd := newMetrics(), newSDMetrics()
	if err := errors.Join(m.set.Register(s.o.Registerer), s.sink.set.Register(s.o.Registerer), sd.of.Register(s.o.Registerer), sd.set.Register(s.o.Registerer)); err != nil {
		return fmt.Errorf("prepare scraping: %w", err)
	}
	s.agent, s.endJobs = context.WithCancel(context.Background())
	s.shared = &shared{sink: s.sink, metrics: m, logger: s.o.Logger, guards: &guards{s.o.Guard}, seed: hostSeed(), startTimes: s.o.StartTimestamps, firsts: firsts{begun: time.Now()}}
	s.shared.requests, s.endRequests = context.WithCancel(context.Background())
	s.finder = newDiscovery(s.o.Settle, s.shared.guards, sd, &s.loops, s.o.Logger)
	return nil
}

// hostSeed returns a seed that differs between hosts, so that agents with the same targets scrape
// them at different moments, and that stays the same across restarts.
func hostSeed() uint64 {
	h := fnv.New64a()
	if name, err := os.Hostname(); err == nil {
		_, _ = h.Write([]byte(name)) // never returns an error
	}
	return h.Sum64()
}

// Run scrapes until ctx ends. Scrapes in progress then get half a second; the requests of slower
// scrapes are canceled and append nothing. Run is called once.
func (s *Scraper) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.shared != nil {
			s.finder.end()
			s.endJobs()
			s.endRequests()
		}
		return nil
	case <-s.changed: // from here on everything is built
	}
	s.loops.Go(s.finder.run)
	contained := func(f func()) { _ = s.guard.Run(f) } // the guard counts and logs a panic
	contained(s.put)
	retry := time.NewTicker(3 * s.o.Settle)
	defer retry.Stop()
	for {
		select {
		case <-s.changed:
			contained(s.put)
		case <-s.finder.due:
			s.found = s.finder.found()
			contained(s.sync)
		case <-retry.C:
			contained(s.retry)
		case <-ctx.Done():
			s.stop()
			return nil
		}
	}
}

// jobs returns the jobs that should run and those that do.
func (s *Scraper) jobs() (*Jobs, map[string]*pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pools := make(map[string]*pool, len(s.pools))
	for name, p := range s.pools {
		pools[name] = p
	}
	return s.latest, pools
}

// put applies the latest configuration.
func (s *Scraper) put() {
	jobs, pools := s.jobs()
	s.openFailureLogs(jobs, pools)
	wanted := map[string]bool{}
	for _, cfg := range jobs.settings() {
		wanted[cfg.JobName] = true
		if p := pools[cfg.JobName]; p != nil {
			if err := p.reload(cfg, s.found[cfg.JobName]); s.noteFailure(cfg.JobName, err) {
				s.o.Logger.Error("A scrape job cannot be changed; it continues unchanged", "job", cfg.JobName, "err", err)
			}
		}
	}
	s.mu.Lock()
	for name := range s.problems {
		if !wanted[name] {
			delete(s.problems, name)
		}
	}
	for name := range s.pools {
		if !wanted[name] {
			delete(s.pools, name)
		}
	}
	s.mu.Unlock()
	for name, p := range pools {
		if !wanted[name] {
			p.stop()
		}
	}
	s.finder.apply(jobs)
}

// sync applies the discovered targets, and starts jobs that do not run yet.
func (s *Scraper) sync() {
	jobs, pools := s.jobs()
	for _, cfg := range jobs.settings() {
		groups, known := s.found[cfg.JobName]
		switch p := pools[cfg.JobName]; {
		case !known:
		case p != nil:
			p.sync(groups)
		default:
			s.start(cfg, groups)
		}
	}
}

// retry starts and reloads jobs that failed to before.
func (s *Scraper) retry() {
	jobs, pools := s.jobs()
	for _, cfg := range jobs.settings() {
		groups, known := s.found[cfg.JobName]
		switch p := pools[cfg.JobName]; {
		case p != nil:
			_ = s.noteFailure(cfg.JobName, p.reload(cfg, groups)) // the first failure was logged
		case known:
			s.start(cfg, groups)
		}
	}
}

func (s *Scraper) start(cfg *settings, groups []*targetgroup.Group) {
	p, err := newPool(s.shared, &s.loops, s.agent, cfg)
	if s.noteFailure(cfg.JobName, err) {
		s.o.Logger.Error("A scrape job cannot be started; it is tried again", "job", cfg.JobName, "err", err)
	}
	if err != nil {
		return
	}
	p.failures.Store(s.failures[cfg.ScrapeFailureLogFile])
	p.sync(groups)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pools[cfg.JobName] = p
}

// noteFailure records why a job could not be started or changed, nil if it could. It reports whether the
// error is new.
func (s *Scraper) noteFailure(job string, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.problems[job]
	delete(s.problems, job)
	if err == nil {
		return false
	}
	s.problems[job] = err
	return before == nil || before.Error() != err.Error()
}

// stop ends all scraping.
func (s *Scraper) stop() {
	s.endJobs()
	s.finder.end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.loops.Wait()
	}()
	within := func(d time.Duration) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ended:
			return true
		case <-timer.C:
			return false
		}
	}
	within(lastScrapes)
	s.sink.close()
	s.endRequests()
	if !within(lastMoment) {
		s.o.Logger.Error("Scrapes continue although their requests have ended; their samples are not stored")
	}
	_, pools := s.jobs()
	for _, p := range pools {
		p.closeClients()
	}
	for _, f := range s.failures {
		f.close()
	}
}
