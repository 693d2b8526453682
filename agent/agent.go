package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hwsagent/agent/control"
	"hwsagent/agent/events"
	"hwsagent/agent/history"
	"hwsagent/agent/systemd"
	"hwsagent/agent/tap"
	"hwsagent/inputs"
	"hwsagent/inputs/panics"
	"hwsagent/probes"
	"hwsagent/receivers"
	"hwsagent/remotewrite"
	"hwsagent/wal"
	"hwsagent/web"
)

// Options are what the command line decides.
type Options struct {
	ConfigFile  string
	StoragePath string
	WebListen   string // overrides web.listen if not empty
	Logger      *slog.Logger
	Env         func(string) (string, bool) // of the configuration's ${VAR}; nil: os.LookupEnv
	Manager     *systemd.Manager            // gets the agent's state; nil: no service manager started it
}

// Agent is the whole program but for its command line.
type Agent struct {
	o        Options
	logger   *slog.Logger
	hostname string
	started  time.Time

	registry *prometheus.Registry
	metrics  *metrics
	log      *wal.Log
	targets  *targets
	inputs   *inputs.Path
	runner   *probes.Runner
	scraper  scraper // nil in a build that cannot scrape
	intake   *receivers.Set
	pushed   pushed         // of the change that is under way
	pull     *receivers.Set // the pull endpoint, a listener like theirs
	unshown  atomic.Int64   // series that its last answer left out
	pulling  *panics.Guard  // contains the panics of the pull endpoint
	web      *web.Server
	socket   net.Listener
	appended rate // samples of the log
	written  rate // bytes of the log
	clock    *clock
	events   *events.Journal
	taps     tap.Hub
	history  *history.Store

	closeLog    func() error  // log.Close
	closeWithin time.Duration // see there

	lists   lists      // of the change that is under way, but for its files
	changes *changes   // a configuration is put in place by one of these
	ids     identities // of the change that is under way

	mu     sync.Mutex // guards what follows
	cfg    *Config
	status web.ConfigStatus
}

// New reads the configuration, takes the storage directory and builds everything. On
// success the caller must call Run. A configuration with mistakes is a *[ConfigErrors];
// a directory that another agent uses is wal.ErrLocked.
func New(o Options) (*Agent, error) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	cfg, warns, err := Load(o.ConfigFile, o.Env)
	if err != nil {
		return nil, err
	}
	logWarnings(o.Logger, warns)
	// The status shows where the log lies, to people who are somewhere else.
	if o.StoragePath, err = filepath.Abs(o.StoragePath); err != nil {
		return nil, fmt.Errorf("find the storage path: %w", err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find out the host's name (it becomes the label instance): %w", err)
	}
	a := &Agent{o: o, logger: o.Logger, hostname: hostname, started: time.Now(), registry: prometheus.NewRegistry(), changes: newChanges(answerWithin)}
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.metrics, a.clock = newMetrics(), newClock(o.Logger)
	if err := errors.Join(a.metrics.set.Register(a.registry), a.clock.set.Register(a.registry)); err != nil {
		return nil, err
	}

	a.log, err = wal.Open(wal.Options{Dir: o.StoragePath, Beside: besideLog(), Settings: logSettings(cfg), Logger: o.Logger, Registerer: a.registry})
	if err != nil {
		return nil, err
	}
	a.openEvents()
	a.openHistory()
	a.closeLog, a.closeWithin = a.log.Close, closeWithin
	if err := a.build(cfg); err != nil {
		return nil, errors.Join(err, a.log.Close())
	}
	return a, nil
}

// build makes everything above the log.
func (a *Agent) build(cfg *Config) error {
	followers := observer{&a.taps, panics.New("tap", a.logger)}
	a.targets = &targets{
		encoders: remotewrite.NewEncoderPool(),
		log:      a.log, dir: a.o.StoragePath, version: Version, registry: a.registry,
		logger: a.logger, running: map[string]*target{}, families: map[string]*family{}, found: make(chan struct{}, 1),
		observer: followers,
	}
	a.inputs = inputs.NewPath(a.log, a.logger)
	a.inputs.Observe(followers)
	a.runner = probes.NewRunner(a.log, a.logger) // each probe has an input of its own
	a.scraper = newScraper(cfg, a.inputs, a.registry, a.logger)
	a.intake, a.pull = receivers.NewSet(a.logger, intakeGrace), receivers.NewSet(a.logger, shownGrace)
	a.pulling = panics.New(pullName, a.logger)
	a.registry.MustRegister(newAccounts(a), newIntakeMetrics(a.intake))

	var err error
	if a.socket, err = control.Listen(a.o.StoragePath); err != nil {
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
		Metrics:        promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{Registry: a.registry}),
		Reload:         a.Reload,
		Ready:          func() error { return nil }, // it listens from when everything is built
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

// put puts a configuration in place: first everything that can fail is made, then it is
// swapped in. It is called by a change (see [changes]), or before anything runs.
func (a *Agent) put(cfg *Config) error {
	a.follow(cfg)
	if err := a.swap(cfg); err != nil {
		return err
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cfg = cfg
	a.status = web.ConfigStatus{File: cfg.File, LoadedAt: now}
	a.metrics.loaded(now)
	return nil
}

// swap is put, but for what is said of the configuration.
func (a *Agent) swap(cfg *Config) error {
	plan, err := a.targets.plan(cfg, &a.ids)
	if err != nil {
		return err
	}
	specs, err := a.probeSpecs(cfg)
	if err != nil {
		return err
	}
	applied, pushed := false, a.pushed
	defer func() {
		if !applied { // the receivers do not come, nor their inputs
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
	if err := a.targets.enroll(plan); err != nil {
		return errors.Join(err, closeProbes(specs), intake.Abandon(), pull.Abandon())
	}
	if a.scraper != nil {
		if err := a.scraper.Apply(cfg.scrape); err != nil {
			return errors.Join(err, closeProbes(specs), intake.Abandon(), pull.Abandon())
		}
	}
	applied = true
	a.log.Reconfigure(logSettings(cfg))
	a.targets.apply(plan, a.changes.at)
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

// logSettings are the settings of the log that the configuration decides.
func logSettings(cfg *Config) wal.Settings {
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

// logPending says what stays on disk for the next start.
func (a *Agent) logPending() {
	for _, t := range a.Status().Targets {
		a.logger.Info("Target stopped; what is pending stays on disk and is sent after the next start",
			"target", t.Name, "pending_samples", t.Ledger.Pending, "delivered", t.Ledger.Delivered, "lost", t.Ledger.Lost)
	}
}
