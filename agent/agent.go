package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hwsagent/agent/beat"
	"hwsagent/agent/clock"
	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/events"
	"hwsagent/agent/follow"
	"hwsagent/agent/history"
	"hwsagent/agent/inputs"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/agent/systemd"
	"hwsagent/agent/targets"
	"hwsagent/agent/web"
	"hwsagent/internal/meter"
	"hwsagent/internal/panics"
	"hwsagent/internal/version"
	"hwsagent/probes"
	"hwsagent/receivers"
	"hwsagent/remotewrite/client"
	"hwsagent/wal"
)

// Options are the settings that come from the command line.
type Options struct {
	ConfigFile  string
	StoragePath string
	WebListen   string // overrides web.listen if not empty
	Logger      *slog.Logger
	Logged      func() []byte               // the last lines of Logger, for a report about a fault; nil: none
	Env         func(string) (string, bool) // looks up ${VAR} in the configuration; nil: os.LookupEnv
	Manager     *systemd.Manager            // receives the agent's state; nil: not started by a service manager

	dial         client.DialFunc // replaces the network to targets in tests; nil: TCP
	segmentBytes int64           // as wal.Options.SegmentBytes, smaller in tests; 0: its default

	autoReloadEvery time.Duration // shorter in tests; 0: the constant autoReloadEvery
}

// Agent is the whole program except its command line.
type Agent struct {
	o        Options
	logger   *slog.Logger
	hostname string
	started  time.Time

	registry   *prometheus.Registry
	metrics    *metrics
	log        *wal.Log
	targets    *targets.Set
	inputs     *inputs.Path
	runner     *probes.Runner
	scraper    *scraper
	intake     *receivers.Set
	pushed     pushed         // set by the change in progress
	pull       *receivers.Set // the pull endpoint; it listens as receivers do
	unshown    atomic.Int64   // series left out of the last answer of the pull endpoint
	pulling    *panics.Guard  // contains the panics of the pull endpoint
	web        *web.Server
	socket     net.Listener
	appended   meter.Rate // samples appended to the log
	written    meter.Rate // bytes written to the log
	clock      *clock.Clock
	beat       *beat.Beat // gives the ticks of all regular checks
	events     *events.Journal
	followers  follow.Hub
	history    *history.Store
	components components

	closeLog                func() error                // log.Close
	scrape                  func(context.Context) error // scraper.Run
	stopWithin, closeWithin time.Duration               // see there

	lists   lists      // set by the change in progress, except its files
	changes *changes   // every configuration is applied by one of these
	ids     identities // set by the change in progress

	mu     sync.Mutex // guards the fields below
	cfg    *config.Config
	status status.ConfigStatus
}

// New reads the configuration, locks the storage directory and builds everything. On success the caller must call Run.
// The error is a *[config.Errors] if the configuration has mistakes, and wal.ErrLocked if another agent uses the
// directory.
func New(o Options) (*Agent, error) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	cfg, warns, err := config.Load(o.ConfigFile, o.Env)
	if err != nil {
		return nil, err
	}
	logWarnings(o.Logger, warns)
	// The path appears in the status, whose readers do not know the agent's working directory.
	if o.StoragePath, err = filepath.Abs(o.StoragePath); err != nil {
		return nil, fmt.Errorf("find the storage path: %w", err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("get the host name for the label instance: %w", err)
	}
	a := &Agent{o: o, logger: o.Logger, hostname: hostname, started: time.Now(), beat: beat.New(time.Second), registry: prometheus.NewRegistry(), changes: newChanges(answerWithin)}
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.metrics, a.clock, a.written.Span = newMetrics(), clock.New(o.Logger), forecastSpan
	if err := errors.Join(a.metrics.set.Register(a.registry), a.clock.Metrics.Register(a.registry)); err != nil {
		return nil, err
	}

	a.log, err = wal.Open(wal.Options{Dir: o.StoragePath, Beside: queues.BesideLog(), Settings: logSettings(cfg), SegmentBytes: o.segmentBytes, Logger: o.Logger, Registerer: a.registry, Every: a.beat.Every})
	if err != nil {
		return nil, err
	}
	a.openEvents()
	a.openHistory()
	a.closeLog, a.stopWithin, a.closeWithin = a.log.Close, stopWithin, closeWithin
	if err := a.build(cfg); err != nil {
		return nil, errors.Join(err, a.log.Close())
	}
	return a, nil
}

// build constructs everything above the log.
func (a *Agent) build(cfg *config.Config) error {
	followers := observer{&a.followers, panics.New("tap", a.logger)}
	a.targets = targets.New(targets.Options{
		Log: a.log, Dir: a.o.StoragePath, Registry: a.registry, Logger: a.logger,
		Observer: followers, Every: a.beat.Every, Dial: a.o.dial,
	})
	a.inputs = inputs.NewPath(a.log, a.logger)
	a.inputs.Observe(followers)
	a.runner = probes.NewRunner(a.log, a.logger) // only a default: each probe has its own input
	a.scraper = newScraper(cfg, a.inputs, a.registry, a.logger)
	a.scrape = a.scraper.Run
	a.intake, a.pull = receivers.NewSet(a.logger, intakeGrace), receivers.NewSet(a.logger, shownGrace)
	a.pulling = panics.New(pullName, a.logger)
	a.registry.MustRegister(newAccounts(a), newIntakeMetrics(a.intake))

	var err error
	if a.socket, err = control.Listen(a.o.StoragePath, a.logger); err != nil {
		return err
	}
	if err := a.put(cfg); err != nil {
		return errors.Join(err, a.socket.Close())
	}
	listen := cfg.Web.Listen
	if a.o.WebListen != "" {
		listen = a.o.WebListen
	}
	o := web.Options{
		Listen:         listen,
		WebConfigFile:  cfg.Web.ConfigFile,
		InsecureListen: cfg.Web.InsecureListen,
		Pprof:          cfg.Web.Pprof,
		Status:         a.Status,
		Events:         a.shownEvents,
		History:        a.figures,
		Homepage:       version.Homepage,
		Hardware:       a.hardware,
		Device:         a.device,
		Metrics:        promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{Registry: a.registry}),
		Reload:         a.Reload,
		Ready:          func() error { return nil }, // the listener starts only after everything is built
		Config:         a.config,
		Control:        a.control(),
		ScrapeTargets:  a.scraper,
		Logger:         a.logger,
	}
	if a.web, err = web.New(o); err != nil {
		a.intake.Close()
		a.pull.Close()
		return errors.Join(err, a.socket.Close())
	}
	return nil
}

// put applies a configuration: it first constructs everything that can fail, and only then swaps it in. Only a change
// (see [changes]) calls it, or New, before anything runs.
func (a *Agent) put(cfg *config.Config) error {
	shown := a.lists.shown
	a.expandLists(cfg)
	if err := a.swap(cfg); err != nil {
		a.forgetLists(shown)
		return err
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cfg = cfg
	a.status = status.ConfigStatus{File: cfg.File, LoadedAt: now}
	a.metrics.loaded(now)
	return nil
}

// swap does the work of put, without recording the outcome in the status.
func (a *Agent) swap(cfg *config.Config) error {
	applied, known := false, maps.Clone(a.ids.known)
	defer func() {
		if !applied { // the running parts keep their identities
			a.ids.known = known
		}
	}()
	plan, err := a.targets.Plan(cfg, a.ids.of)
	if err != nil {
		return err
	}
	specs, err := a.probeSpecs(cfg)
	if err != nil {
		return err
	}
	pushed := a.pushed
	defer func() {
		if !applied { // the new receivers do not start, so forget their inputs
			pushed.store = a.pushed.store
			a.pushed = pushed
			a.inputs.Keep(receiverKind, a.intake.Names())
		}
	}()
	received, push, err := a.receiverSpecs(cfg)
	if err != nil {
		return errors.Join(err, closeProbes(specs))
	}
	intake, err := a.intake.Plan(received)
	if err != nil {
		return errors.Join(err, closeProbes(specs))
	}
	pull, err := a.pull.Plan(a.pullSpecs(cfg))
	if err != nil {
		return errors.Join(err, closeProbes(specs), intake.Abandon())
	}
	a.changes.at("writing the targets to the log")
	if err := a.targets.Enroll(plan); err != nil {
		return errors.Join(err, closeProbes(specs), intake.Abandon(), pull.Abandon())
	}
	if err := a.scraper.Apply(cfg.ScrapeJobs()); err != nil {
		return errors.Join(err, closeProbes(specs), intake.Abandon(), pull.Abandon())
	}
	applied = true
	a.log.Reconfigure(logSettings(cfg))
	a.inputs.Become(cfg.Global.Labels())
	a.targets.Apply(plan, a.changes.at)
	a.changes.at("ending the rounds of probes that change")
	connectProbes(a.inputs, cfg, specs)
	if push != nil {
		specs = append(specs, *push)
	}
	a.runner.Apply(specs)
	keepProbes(a.inputs, specs)
	a.changes.at("ending the requests to receivers that change")
	a.intake.Apply(intake)
	keepReceivers(a.inputs, intake)
	a.pull.Apply(pull)
	return nil
}

// logSettings returns the log settings that the configuration controls.
func logSettings(cfg *config.Config) wal.Settings {
	s := wal.Settings{
		Sync:         cfg.WAL.Sync.Every,
		MaxBytes:     int64(cfg.WAL.MaxBytes),
		MinFreeBytes: int64(cfg.WAL.MinFreeBytes),
		OnFull:       wal.OnFull(cfg.WAL.OnFull),
		Retain:       time.Duration(cfg.WAL.Retain),
		OrphanTTL:    time.Duration(cfg.WAL.OrphanTTL),
	}
	if cfg.WAL.Sync.Always {
		s.Sync = wal.SyncAlways
	}
	return s
}

// config is the configuration in force, without secrets.
func (a *Agent) config() ([]byte, error) {
	a.mu.Lock()
	cfg := a.cfg
	a.mu.Unlock()
	return cfg.Redacted()
}

// logPending logs, for each target, how many samples stay on disk for the next start.
func (a *Agent) logPending() {
	for _, t := range a.Status().Targets {
		a.logger.Info("Target stopped; samples that wait stay on disk for the next start",
			"target", t.Name, "pending_samples", t.Ledger.Pending, "delivered", t.Ledger.Delivered, "lost", t.Ledger.Lost)
	}
}
