package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"hwsagent/agent/clock"
	"hwsagent/agent/status"
	"hwsagent/internal/version"
	"hwsagent/internal/watchdog"
)

// Bounds of a stop, counted from its beginning. The parts of an orderly stop have bounds of their own and end within
// stopWithin; the agent leaves behind those that have not ended by then. So the process ends within two seconds,
// whatever hangs.
const (
	lastLook     = 100 * time.Millisecond  // for the last status from which events are taken
	inputsWithin = 200 * time.Millisecond  // then the queues begin to stop, even if an input has not ended
	intakeGrace  = time.Second             // for requests that bring samples
	webUntil     = time.Second             // the page and the pull endpoint are served until then at most
	shownGrace   = 250 * time.Millisecond  // then, for their requests in flight: they end no later than the queues, after 1.25 s
	stopWithin   = 1600 * time.Millisecond // the rest is for a busy machine, and for a slow disk when the log is closed
	closeWithin  = 200 * time.Millisecond  // for closing the log, after stopWithin
)

// LeftBehind is the error of a stop that abandoned a hanging part. No acknowledged sample is lost: samples are written
// to the log's files before they are acknowledged.
type LeftBehind struct {
	Within time.Duration // its time
	Parts  string        // the parts that still ran, with a place in the code for each
	Log    error         // why the log was not closed in order; nil if it was
}

// Error names the parts that still ran, and says whether the log was closed.
func (e *LeftBehind) Error() string {
	log := "the log was closed in order"
	if e.Log != nil {
		log = "the log was not closed in order (" + e.Log.Error() + "), but all acknowledged samples are written to its files"
	}
	return fmt.Sprintf("the stop did not end within %s; parts left behind: %s; %s", e.Within, e.Parts, log)
}

// Unwrap returns why the log was not closed.
func (e *LeftBehind) Unwrap() error { return e.Log }

// errLogHangs means that closing the log did not end in its time.
var errLogHangs = errors.New("closing it did not end in its time: the disk does not answer")

// Run runs the agent until ctx ends, then stops it in order, within two seconds. It returns an error if the agent could
// not continue or did not close cleanly, and a *[LeftBehind] if a part did not end; after that the process must exit.
func (a *Agent) Run(ctx context.Context) error {
	stopping, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- a.run(ctx, stopping) }()
	select {
	case err := <-ended:
		return err
	case <-stopping:
	}
	late := time.NewTimer(a.stopWithin)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return a.leave()
	}
}

// leave finishes a stop that does not end in order: it logs what hangs, and closes the log.
func (a *Agent) leave() error {
	running := watchdog.Look()
	closed := make(chan error, 1)
	go func() { closed <- a.closeLog() }()
	late := time.NewTimer(a.closeWithin)
	defer late.Stop()
	left := &LeftBehind{Within: a.stopWithin, Parts: running.Names(), Log: errLogHangs}
	select {
	case left.Log = <-closed:
	case <-late.C:
	}
	a.logger.Error("The stop did not end in its time; the parts that still run are left behind",
		"within", a.stopWithin, "parts", left.Parts, "log_closed", left.Log == nil)
	a.logger.Error("The stacks of the parts that were left behind", "stacks", running.Stacks)
	return left
}

// run runs the agent until ctx ends, then stops it in order. It closes stopping when the stop
// begins.
func (a *Agent) run(ctx context.Context, stopping chan<- struct{}) error {
	webCtx, stopWeb := context.WithCancel(context.WithoutCancel(ctx))
	queueCtx, stopQueues := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWeb()
	defer stopQueues()

	// A failing web server ends the agent: without it, operators could not see the agent's state.
	g, ctx := errgroup.WithContext(ctx)
	runPart(g, webCtx, "the page", a.web.Run)
	runPart(g, webCtx, "the control socket", func(ctx context.Context) error { return a.web.Serve(ctx, a.socket) })
	runPart(g, webCtx, "the pull endpoint", func(ctx context.Context) error { a.pull.Run(ctx); return nil })
	runPart(g, ctx, "the rates", func(ctx context.Context) error { a.watchRates(ctx); return nil })
	runPart(g, ctx, "the lists of devices", func(ctx context.Context) error { a.watchLists(ctx); return nil })
	runPart(g, ctx, "the configuration's files", func(ctx context.Context) error { a.watchConfig(ctx); return nil })
	runPart(g, ctx, "the figures for plots", func(ctx context.Context) error { a.watchHistory(ctx); return nil })
	runPart(g, ctx, "the events", func(ctx context.Context) error { a.watchEvents(ctx); return nil })
	runPart(g, ctx, "the clock", func(ctx context.Context) error {
		ticks, stop := a.beat.Every(clock.Tick)
		defer stop()
		a.clock.Run(ctx, ticks)
		return nil
	})
	queues := make(chan struct{})
	go func() {
		defer close(queues)
		watchdog.Do(queueCtx, "the targets", a.targets.Run)
	}()
	a.logStart()
	a.o.Manager.Ready()
	runPart(g, webCtx, "the service manager", func(ctx context.Context) error { a.o.Manager.Run(ctx, a.verdict); return nil })

	inputs := make(chan error, 1)
	go func() { inputs <- a.runInputs(ctx) }()
	g.Go(func() error {
		var err error
		select {
		case err = <-inputs: // an input failed, or ctx ended
			inputs <- err
		case <-ctx.Done():
		}
		close(stopping)
		a.observeLast()
		a.o.Manager.Stopping()
		a.changes.refuse()
		return a.stop(inputs, queues, stopQueues, stopWeb)
	})
	err := g.Wait()
	a.changes.end()
	a.logPending()
	a.endEvents()
	watchdog.Do(context.WithoutCancel(ctx), "closing the log", func(context.Context) { err = errors.Join(err, a.closeLog()) })
	watchdog.Do(context.WithoutCancel(ctx), "saving the events", func(context.Context) { a.saveEvents() })
	watchdog.Do(context.WithoutCancel(ctx), "saving the figures for plots", func(context.Context) { a.saveHistory() })
	return err
}

// logStart says what runs, where the page is, and how long nothing happens.
func (a *Agent) logStart() {
	a.mu.Lock()
	file := a.cfg.Web.ConfigFile
	a.mu.Unlock()
	page := "off"
	if addr := a.web.Addr(); addr != nil {
		page = addr.String()
		if file == "" { // else the page may use TLS
			page = "http://" + page
		}
	}
	a.logger.Info("The agent is running", "version", version.Version, "config", a.o.ConfigFile, "storage", a.o.StoragePath, "page", page,
		"targets", len(a.targets.All()), "probes", len(a.runner.Status()), "receivers", len(a.intake.Status()))
	if wait, ok := a.runner.FirstRound(time.Now()); ok {
		a.logger.Info("Waiting for the first round of probes", "in", wait.Round(100*time.Millisecond))
	}
}

// observeLast takes events from the status for the last time, because targets that the stop itself ends must not count
// as down. On a busy machine a status may take longer than a stop can wait. Such a status is dropped, because it may
// describe parts that have stopped meanwhile; changes of the last five seconds then cause no event.
func (a *Agent) observeLast() {
	seen := make(chan status.Status, 1)
	go func() { seen <- a.Status() }()
	late := time.NewTimer(lastLook)
	defer late.Stop()
	select {
	case s := <-seen:
		a.events.Observe(s)
	case <-late.C:
	}
}

// runPart runs a part of the agent under its name in g.
func runPart(g *errgroup.Group, ctx context.Context, name string, run func(context.Context) error) {
	g.Go(func() (err error) {
		watchdog.Do(ctx, name, func(ctx context.Context) { err = run(ctx) })
		return err
	})
}

// verdict describes the agent's state in one line. Like the whole status it waits for no disk, target or probe; the
// service manager's watchdog depends on that.
func (a *Agent) verdict() string { return a.Status().Verdict.Text }

// runInputs runs the sources of data until ctx ends.
func (a *Agent) runInputs(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	runPart(g, ctx, "the probes", a.runner.Run)
	runPart(g, ctx, "the receivers", func(ctx context.Context) error { a.intake.Run(ctx); return nil })
	runPart(g, ctx, "the scrape jobs", a.scrape)
	return g.Wait()
}

// stop stops the agent in the direction of the data: inputs, queues, page. The queues keep sending even if an input
// does not end in time: samples that it still appends are on disk for the next start.
func (a *Agent) stop(inputs <-chan error, queues <-chan struct{}, stopQueues, stopWeb func()) error {
	var err error
	ended := false
	select {
	case err = <-inputs:
		ended = true
		a.logger.Info("Stopping: inputs stopped, waiting for requests in flight")
	case <-time.After(inputsWithin):
		a.logger.Info("Stopping: waiting for requests in flight; an input has not stopped yet")
	}
	stopQueues()
	shown := time.NewTimer(webUntil - inputsWithin)
	defer shown.Stop()
	select {
	case <-queues:
	case <-shown.C:
	}
	stopWeb()
	<-queues
	if !ended {
		err = <-inputs
	}
	return err
}
