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

	"hwsagent/inputs/panics"
	"hwsagent/redact"
)

// How an exporter is started again: after 1 s, doubled to a minute; from the beginning if it ran
// for a minute. When it is to end it gets SIGTERM, and SIGKILL if it is still there then.
const (
	leastPause  = time.Second
	mostPause   = time.Minute
	ranWell     = time.Minute
	endPatience = time.Second
)

// errStarting is why nothing can be scraped in the very first moment.
var errStarting = errors.New("the exporter is being started")

// exporter keeps a command running.
type exporter struct {
	config Config
	hide   *redact.Secrets
	log    *slog.Logger
	guard  *panics.Guard
	stop   context.CancelFunc
	done   chan struct{} // closed when nothing of it runs any more

	mu  sync.Mutex
	url URL   // where the one that runs is scraped, "" while none does
	why error // why none runs
}

// startExporter starts the command, and starts it again whenever it ends, until close.
func startExporter(c Config, log *slog.Logger, guard *panics.Guard) *exporter {
	ctx, cancel := context.WithCancel(context.Background())
	e := &exporter{config: c, hide: c.secrets(), log: log, guard: guard, stop: cancel, done: make(chan struct{}), why: errStarting}
	go func() {
		defer close(e.done)
		_ = e.guard.Run(func() { e.run(ctx) }) // the guard tells people
	}()
	return e
}

// close ends the exporter and returns when it has.
func (e *exporter) close() {
	e.stop()
	<-e.done
}

// address is where to scrape, or why there is nothing to scrape.
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
		e.log.Warn("The exporter ended and is started again", "command", e.hide.Cut(e.config.Command[0]), "err", e.hide.Error(err), "pause", pause)
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
		pause = min(2*pause, mostPause)
	}
}

// once runs the command until it ends or ctx does, and says how it ended.
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

// attend waits until the command ends or ctx does, and leaves nothing of its group behind.
func (e *exporter) attend(ctx context.Context, cmd *exec.Cmd, url URL, exited <-chan struct{}, finish func() error) (err error) {
	defer func() {
		signalGroup(cmd.Process, syscall.SIGKILL) // also what it has started
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

// end asks the exporter to end, and gives it a moment.
func end(cmd *exec.Cmd, exited <-chan struct{}) {
	signalGroup(cmd.Process, syscall.SIGTERM)
	wait := time.NewTimer(endPatience)
	defer wait.Stop()
	select {
	case <-exited:
	case <-wait.C:
	}
}
