package demo

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hwsagent/agent/demo/receiver"
)

// target is the name of the demo's one remote_write entry.
const target = "receiver"

// stage is the setup of a script: a receiver and an agent that pushes to it.
type stage struct {
	o       Options
	dir     string
	page    string // where the agent's page listens; empty for none
	journal string
	started time.Time
	second  time.Duration // the scripts' unit of time; shorter in tests

	pki      *receiver.PKI
	oracle   *receiver.Oracle
	receiver *receiver.Receiver
	agent    *process
}

// newStage starts the receiver and writes the agent's files below dir.
func newStage(o Options, dir string) (*stage, error) {
	s := &stage{
		o: o, dir: dir, started: time.Now(), second: o.second,
		journal: filepath.Join(dir, "canary.journal"),
		oracle:  receiver.NewOracle(),
	}
	binary := o.Binary
	var err error
	if binary == "" {
		if binary, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
	}
	if s.page, err = listenAddress(o); err != nil {
		return nil, err
	}
	if s.pki, err = receiver.NewPKI(dir); err != nil {
		return nil, err
	}
	token, err := os.ReadFile(s.pki.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	s.agent = &process{binary: binary, dir: dir}
	s.receiver = receiver.New(receiver.Options{
		TLS: s.pki.ServerTLS(), Tokens: []string{strings.TrimSpace(string(token))}, Sink: s.oracle.Add,
	})
	if err := s.receiver.Start(); err != nil {
		return nil, err
	}
	if err := s.writeConfig(true); err != nil {
		s.receiver.Stop()
		return nil, err
	}
	return s, nil
}

// close ends the processes that the script left running.
func (s *stage) close() {
	s.agent.kill()
	s.receiver.Stop()
}

// writeConfig writes the agent's configuration; without load no probe runs.
func (s *stage) writeConfig(load bool) error {
	text := fmt.Sprintf(`# Written by hwsagent demo.
global: {scrape_interval: 2s, scrape_timeout: 2s, external_labels: {site: demo}}
wal: {max_bytes: 256MiB, min_free_bytes: 16MiB}
web: {listen: %q}
probes:
  - {name: host, type: host, enabled: %[2]t}
  - {name: hwsagent, type: self, enabled: %[2]t}
  # %[3]d series that count up, each %[4]s: what arrives tells what was lost on the way.
  - {name: canary, type: canary, enabled: %[2]t, interval: %[4]s, timeout: %[4]s, series: %[3]d, journal_file: %[5]q}
remote_write:
  - name: %[6]s
    url: %[7]s
    bearer_token_file: %[8]q
    tls_config: {ca_file: %[9]q, cert_file: %[10]q, key_file: %[11]q}
    queue_config: {batch_send_deadline: 200ms, max_backoff: 1s}
`, s.page, load, series, interval, s.journal, target, s.receiver.URL(), s.pki.TokenFile, s.pki.CAFile, s.pki.CertFile, s.pki.KeyFile)
	if err := os.WriteFile(s.agent.configFile(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the agent's configuration: %w", err)
	}
	return nil
}

// say prints one line of progress with the time since the start.
func (s *stage) say(format string, args ...any) {
	w := s.o.Stdout
	if s.o.JSON {
		w = s.o.Stderr
	}
	fmt.Fprintf(w, "%5.1fs  %s\n", time.Since(s.started).Seconds(), fmt.Sprintf(format, args...))
}

// tour runs the script for people.
func (s *stage) tour(ctx context.Context) error {
	w := s.o.Stdout
	if s.o.JSON {
		w = io.Discard
	}
	fmt.Fprintf(w, `hwsagent demo: the ordinary agent pushes to a receiver that demands mutual TLS and a
bearer token. The receiver goes away, the agent is killed with SIGKILL, and then we count.
  the agent's page while this runs: http://%s

`, s.page)
	if err := s.warmUp(ctx); err != nil {
		return err
	}
	if err := s.watch(ctx, 4*s.second); err != nil {
		return err
	}
	return s.fail(ctx, 8*s.second, true)
}

func (s *stage) outage(ctx context.Context) error {
	if err := s.warmUp(ctx); err != nil {
		return err
	}
	return s.fail(ctx, 10*s.second, false)
}

func (s *stage) crash(ctx context.Context) error {
	if err := s.warmUp(ctx); err != nil {
		return err
	}
	return s.fail(ctx, 10*s.second, true)
}

// warmUp starts the agent and waits until samples arrive.
func (s *stage) warmUp(ctx context.Context) error {
	s.say("a receiver listens at %s", s.receiver.URL())
	if err := s.agent.start(); err != nil {
		return err
	}
	s.say("the agent runs, pid %d; %d samples a second of known number, and this host's own", s.agent.pid(), series*int(time.Second/interval))
	if err := s.until(ctx, func() bool { return s.oracle.Received() >= 5*series }); err != nil {
		return fmt.Errorf("wait for the first samples to arrive: %w", err)
	}
	s.say("samples arrive")
	return s.pause(ctx, 2*s.second)
}

// fail stops the receiver for d, with or without killing the agent meanwhile, and waits until samples that were
// collected after its return have arrived.
func (s *stage) fail(ctx context.Context, d time.Duration, kill bool) error {
	s.receiver.Stop()
	s.say("the receiver is gone")
	if kill {
		if err := s.watch(ctx, d/2); err != nil {
			return err
		}
		pid := s.agent.pid()
		s.agent.kill()
		s.say("kill -9 %d: the agent is dead, %s", pid, s.backlog())
		if err := s.agent.start(); err != nil {
			return err
		}
		s.say("the agent is started again, pid %d", s.agent.pid())
		d -= d / 2
	}
	if err := s.watch(ctx, d); err != nil {
		return err
	}
	journal, err := receiver.ReadJournal(s.journal)
	if err != nil {
		return err
	}
	if err := s.receiver.Start(); err != nil {
		return err
	}
	s.say("the receiver is back")
	if err := s.until(ctx, func() bool { return s.oracle.Last() > journal.Tried }); err != nil {
		return fmt.Errorf("wait for new samples to arrive after the outage: %w", err)
	}
	s.say("the agent has caught up")
	return s.watch(ctx, 2*s.second)
}

// drain stops the load and waits until nothing is pending; if ctx ends first, it returns how much is.
func (s *stage) drain(ctx context.Context) (pending uint64, err error) {
	if err := s.writeConfig(false); err != nil {
		return 0, err
	}
	if err := s.agent.reload(ctx); err != nil {
		return 0, err
	}
	pending = 1
	err = s.until(ctx, func() bool {
		st, serr := s.agent.status(ctx)
		if serr != nil {
			return false
		}
		for _, t := range st.Targets {
			if t.Name == target {
				pending = t.PendingSamples
			}
		}
		return pending == 0
	})
	if err != nil && ctx.Err() == nil {
		return pending, err
	}
	return pending, nil
}

// backlog describes the samples that were collected but not delivered.
func (s *stage) backlog() string {
	journal, err := receiver.ReadJournal(s.journal)
	if err != nil {
		return err.Error()
	}
	collected, arrived := uint64(len(journal.Acked))*series, s.oracle.Received()
	return fmt.Sprintf("%s collected, %s arrived, %s wait on disk",
		thousands(collected), thousands(arrived), thousands(collected-min(collected, arrived)))
}

// watch prints the backlog each second for d.
func (s *stage) watch(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if err := s.pause(ctx, min(left, s.second)); err != nil {
			return err
		}
		s.say("%s", s.backlog())
	}
}

// until waits until done, ctx ends or the agent does.
func (s *stage) until(ctx context.Context, done func() bool) error {
	for !done() {
		if err := s.pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for d, or until ctx ends or the agent does; both are errors.
func (s *stage) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.agent.done:
		return fmt.Errorf("the agent ended by itself: %s", s.agent.cmd.ProcessState)
	}
}

// listenAddress returns where the page of a tour listens: the requested address, or 127.0.0.1:9464 if that is free, or
// else a free port. The other scripts need no page.
func listenAddress(o Options) (string, error) {
	try := func(addr string) (string, error) {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return "", fmt.Errorf("find an address for the agent's page: %w", err)
		}
		defer l.Close()
		return l.Addr().String(), nil
	}
	switch {
	case o.Listen != "":
		return try(o.Listen)
	case o.Script != Tour:
		return "", nil
	}
	if addr, err := try("127.0.0.1:9464"); err == nil {
		return addr, nil
	}
	return try("127.0.0.1:0")
}

// thousands formats n with commas.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
