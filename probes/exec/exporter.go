package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"hwsagent/internal/panics"
	"hwsagent/internal/redact"
)

// An exporter is restarted after 1 s, doubled up to a minute; the delay starts again at 1 s if the exporter ran for a
// minute. To stop, it gets SIGTERM, and SIGKILL if it has not ended by then.
const (
	leastPause  = time.Second
	mostPause   = time.Minute
	ranWell     = time.Minute
	endPatience = time.Second
)

// errStarting is the error of a scrape right after the start.
var errStarting = errors.New("the exporter is being started")

// exporter keeps a command running.
type exporter struct {
	config Config
	hide   *redact.Secrets
	log    *slog.Logger
	guard  *panics.Guard
	stop   context.CancelFunc
	done   chan struct{} // closed when none of its processes is left

	mu  sync.Mutex
	url URL   // address of the running exporter, "" if none runs
	why error // why none runs
}

// startExporter starts the command, and restarts it whenever it ends, until close.
func startExporter(c Config, log *slog.Logger, guard *panics.Guard) *exporter {
	ctx, cancel := context.WithCancel(context.Background())
	e := &exporter{config: c, hide: c.secrets(), log: log, guard: guard, stop: cancel, done: make(chan struct{}), why: errStarting}
	go func() {
		defer close(e.done)
		_ = e.guard.Run(func() { e.run(ctx) }) // the guard reports a panic
	}()
	return e
}

// close stops the exporter and returns when it has ended.
func (e *exporter) close() {
	e.stop()
	<-e.done
}

// address returns where to scrape, or why that is not possible.
func (e *exporter) address() (URL, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.url, e.why
}

func (e *exporter) set(url URL, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.url, e.why = url, why
}

func (e *exporter) run(ctx context.Context) {
	pause := leastPause
	for ctx.Err() == nil {
		begin := time.Now()
		err := e.guard.Do(func() error { return e.once(ctx) })
		if ctx.Err() != nil {
			return
		}
		if time.Since(begin) >= ranWell {
			pause = leastPause
		}
		e.set("", fmt.Errorf("%w; it is started again after %s", err, pause))
		e.log.Warn("The exporter ended and is restarted", "command", e.hide.Cut(e.config.Command[0]), "err", e.hide.Error(err), "pause", pause)
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
		pause = min(2*pause, mostPause)
	}
}

// once runs the command until it or ctx ends, and returns how it ended.
func (e *exporter) once(ctx context.Context) error {
	number, err := freePort()
	if err != nil {
		return err
	}
	c := e.config.with(number)
	said := &tail{hide: c.secrets()}
	out := guarded{said, e.guard}
	cmd := command(&c, out, out)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start exporter: %w", err)
	}
	exited, finish := watch(cmd)
	if err := e.attend(ctx, cmd, c.ScrapeURL, exited, finish); err != nil {
		return fmt.Errorf("exporter %s ended: %w%s", c.Command[0], err, said)
	}
	return fmt.Errorf("exporter %s ended: exit status 0%s", c.Command[0], said)
}

// attend waits until the command or ctx ends, and leaves no process of its group behind.
func (e *exporter) attend(ctx context.Context, cmd *exec.Cmd, url URL, exited <-chan struct{}, finish func() error) (err error) {
	defer func() {
		signalGroup(cmd.Process, syscall.SIGKILL) // also the processes that it started
		<-exited
		err = finish()
	}()
	e.log.Info("The exporter was started", "command", e.hide.Cut(e.config.Command[0]), "pid", cmd.Process.Pid, "scrape_url", e.hide.Cut(url.String()))
	e.set(url, nil)
	select {
	case <-exited:
	case <-ctx.Done():
		end(cmd, exited)
	}
	return nil
}

// end asks the exporter to stop, and kills it if it does not end in time.
func end(cmd *exec.Cmd, exited <-chan struct{}) {
	signalGroup(cmd.Process, syscall.SIGTERM)
	wait := time.NewTimer(endPatience)
	defer wait.Stop()
	select {
	case <-exited:
	case <-wait.C:
	}
}
