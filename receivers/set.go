package receivers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"hwsagent/internal/httpbound"
	"hwsagent/internal/loopback"
	"hwsagent/internal/panics"
	"hwsagent/internal/watchdog"
)

// Spec configures one listener.
type Spec struct {
	Name string // unique: remote_write, otlp_http, …

	// Identity is equal for two specs exactly if one may replace the other at a reload without a restart.
	Identity string

	// Listen is host:port. WebConfigFile is in exporter-toolkit's format, read again for
	// each connection; without one, an address that other hosts can reach needs Insecure.
	Listen        string
	WebConfigFile string
	Insecure      bool
	guard         Protection // by WebConfigFile, as read when planned

	Gate    *Gate
	Handler http.Handler
	HTTP2   bool // also without TLS, as gRPC requires

	// Run runs beside the server until its context ends; may be nil.
	Run func(ctx context.Context)
}

// Set runs receivers until its context ends.
type Set struct {
	log   *slog.Logger
	grace time.Duration // time for requests in flight when a receiver ends; after it they are cut

	mu      sync.Mutex
	ctx     context.Context // set while Run runs
	closed  bool            // set by Close: no receiver runs after that
	servers map[string]*server
	order   []string

	// shown is what Status reads: it must not wait for mu, which is held while receivers end their requests and while
	// files are read that may hang.
	shown atomic.Pointer[[]shown]
}

// NewSet returns a set without receivers. When a receiver ends, requests in flight may take up to grace to end; then
// their connections are closed.
func NewSet(logger *slog.Logger, grace time.Duration) *Set {
	return &Set{log: logger, grace: grace, servers: map[string]*server{}}
}

// Plan is a set of receivers with open sockets.
type Plan struct {
	specs  []Spec
	opened map[string]*socket // by address; sockets that no running receiver has
}

// Plan opens the sockets of the receivers, so that everything that can fail fails before anything changes. The caller
// must end the plan with Apply or Abandon before it makes another.
func (s *Set) Plan(specs []Spec) (*Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Plan{specs: specs, opened: map[string]*socket{}}
	var errs []error
	for i := range specs {
		if err := s.prepare(p, &specs[i]); err != nil {
			errs = append(errs, fmt.Errorf("receiver %s: %w", specs[i].Name, err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, p.Abandon())...)
	}
	return p, nil
}

func (s *Set) prepare(p *Plan, spec *Spec) error {
	host, _, err := net.SplitHostPort(spec.Listen)
	if err != nil {
		return fmt.Errorf("%q is not host:port: %w", spec.Listen, err)
	}
	if !loopback.Host(host) && spec.WebConfigFile == "" && !spec.Insecure {
		return fmt.Errorf("%s can be reached from other hosts without TLS or users: listen on 127.0.0.1 or give web_config_file", spec.Listen)
	}
	if spec.WebConfigFile != "" {
		check := spec.Listen
		if spec.Insecure {
			check = "localhost:0" // who can reach it is not checked
		}
		if err := CheckWebConfig(spec.WebConfigFile, check); err != nil {
			return err
		}
		if spec.guard, err = ReadProtection(spec.WebConfigFile); err != nil {
			return err
		}
	}
	for _, running := range s.servers {
		if running.spec.Listen == spec.Listen {
			return nil // its socket is passed on
		}
	}
	l, err := listen(spec.Listen)
	if old := s.leaves(p, spec.Listen); err != nil && old != nil {
		l, err = listenBeside(old, spec.Listen)
	}
	if err != nil {
		return err
	}
	p.opened[spec.Listen] = l
	return nil
}

// leaves returns the socket of a receiver that listens on the port of address and will stop, nil if there is none. s.mu
// must be held.
func (s *Set) leaves(p *Plan, address string) *socket {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	for _, running := range s.servers {
		_, own, err := net.SplitHostPort(running.socket.tcp.Addr().String())
		stays := slices.ContainsFunc(p.specs, func(spec Spec) bool { return spec.Listen == running.spec.Listen })
		if err == nil && own == port && !stays {
			return running.socket
		}
	}
	return nil
}

// Names returns the names of the receivers in the plan.
func (p *Plan) Names() []string {
	names := make([]string, 0, len(p.specs))
	for _, s := range p.specs {
		names = append(names, s.Name)
	}
	return names
}

// Names returns the names of the receivers of the latest Apply.
func (s *Set) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.order)
}

// Abandon closes the sockets that the plan opened.
func (p *Plan) Abandon() error {
	var errs []error
	for _, l := range p.opened {
		errs = append(errs, l.tcp.Close())
	}
	return errors.Join(errs...)
}

// Apply replaces the running receivers by those of the plan. One with an unchanged Identity continues undisturbed; the
// others finish their requests first, and requests that arrive meanwhile wait. After Close it abandons the plan: a stop
// can overtake a reload, and the sockets that the plan would have taken over are closed.
func (s *Set) Apply(p *Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		if err := p.Abandon(); err != nil {
			s.log.Warn("Cannot close the sockets of receivers that were not started", "err", err)
		}
		return
	}
	next, sockets, order := map[string]*server{}, p.opened, []string{}
	for _, spec := range p.specs {
		if old := s.servers[spec.Name]; old != nil && old.spec.Identity == spec.Identity {
			old.spec.guard = spec.guard // the server reads the file again for each connection
			next[spec.Name] = old
		}
	}
	for name, old := range s.servers {
		if next[name] == nil {
			old.stop()
			sockets[old.spec.Listen] = old.socket
		}
	}
	for _, spec := range p.specs {
		order = append(order, spec.Name)
		if next[spec.Name] != nil {
			continue
		}
		v := &server{spec: spec, log: s.log.With("receiver", spec.Name), grace: s.grace, socket: sockets[spec.Listen]}
		delete(sockets, spec.Listen)
		next[spec.Name] = v
		if s.ctx != nil {
			v.start(s.ctx)
		}
	}
	for address, left := range sockets {
		if err := left.tcp.Close(); err != nil {
			s.log.Warn("Cannot close the socket of a receiver", "address", address, "err", err)
		}
	}
	s.servers, s.order = next, order
	s.publish()
}

// Run runs the receivers of the latest Apply until ctx ends, and returns when their
// requests have been answered or cut.
func (s *Set) Run(ctx context.Context) {
	s.mu.Lock()
	s.ctx = ctx
	for _, v := range s.servers {
		v.start(ctx)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.Close()
}

// Close ends all receivers for good, including one that never ran.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.closed = nil, true
	var wg sync.WaitGroup
	for _, v := range s.servers {
		wg.Go(func() {
			v.stop()
			_ = v.socket.tcp.Close() // no other receiver takes it over
		})
	}
	wg.Wait()
	s.servers, s.order = map[string]*server{}, nil
	s.publish()
}

// server serves one receiver.
type server struct {
	spec   Spec
	log    *slog.Logger
	grace  time.Duration // as in Set
	socket *socket

	cancel context.CancelFunc // nil before start
	done   chan struct{}
}

func (v *server) start(ctx context.Context) {
	ctx, v.cancel = context.WithCancel(ctx)
	v.done = make(chan struct{})
	go func() {
		defer close(v.done)
		watchdog.Do(ctx, "receiver "+v.spec.Name, func(ctx context.Context) {
			var beside sync.WaitGroup
			defer beside.Wait()
			if v.spec.Run != nil {
				beside.Go(func() { _ = v.guard().Run(func() { v.spec.Run(ctx) }) }) // the guard reports a panic
			}
			_ = v.guard().Run(func() { v.serve(ctx) }) // likewise
		})
	}()
}

// guard contains the panics of the receiver.
func (v *server) guard() *panics.Guard { return v.spec.Gate.o.Guard }

// stop ends the server and waits until it has ended. The socket stays open.
func (v *server) stop() {
	if v.cancel != nil {
		v.cancel()
		<-v.done
	}
}

// retryServe is the pause before a failed server is restarted.
const retryServe = time.Second

func (v *server) serve(ctx context.Context) {
	for ctx.Err() == nil {
		if err := v.guard().Do(func() error { return v.serveOnce(ctx) }); err != nil {
			v.log.Error("The receiver cannot serve; retrying", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(retryServe):
			}
		}
	}
}

func (v *server) serveOnce(ctx context.Context) error {
	l, err := v.socket.share(v.spec.Gate.o.Limits.Connections, func() {
		v.spec.Gate.Refused(later(Busy, time.Second, "limits.connections (%d) connections are open", v.spec.Gate.o.Limits.Connections))
	})
	if err != nil {
		return err
	}
	srv := v.http()
	noSystemd, file := false, v.spec.WebConfigFile
	flags := &toolkit.FlagConfig{WebSystemdSocket: &noSystemd, WebConfigFile: &file}
	served := make(chan error, 1)
	go func() {
		served <- v.guard().Do(func() error { return toolkit.Serve(l, srv, flags, quiet(v.log)) })
	}()
	defer srv.Close() // also after a panic
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.grace)
	defer cancel()
	if srv.Shutdown(stop) != nil {
		_ = srv.Close() // cuts slow clients; without an answer nothing was promised to them
	}
	if err := <-served; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// http returns the server without its listener.
func (v *server) http() *http.Server {
	handler := http.NewCrossOriginProtection().Handler(v.spec.Handler)
	if loopback.Address(v.spec.Listen) {
		handler = loopback.Only(handler)
	}
	handler = httpbound.CloseAfterChunked(contained(v.guard(), handler))
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		// For bodies that no handler reads: the server reads them to the end before it answers.
		ReadTimeout:    unreadTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(v.log.Handler(), slog.LevelDebug),
		// These bound the bytes of bodies that wait to be read.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 64, MaxReceiveBufferPerConnection: 256 << 10, MaxReceiveBufferPerStream: 128 << 10},
	}
	if v.spec.HTTP2 {
		srv.Protocols = new(http.Protocols)
		srv.Protocols.SetHTTP1(true)
		srv.Protocols.SetHTTP2(true)
		srv.Protocols.SetUnencryptedHTTP2(true)
	}
	return srv
}

// quiet returns the logger for the toolkit, which logs each start of a listener.
func quiet(l *slog.Logger) *slog.Logger { return slog.New(debugOnly{l.Handler()}) }

// debugOnly lowers messages at the info level to debug.
type debugOnly struct{ slog.Handler }

// Handle implements [slog.Handler].
func (d debugOnly) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelInfo {
		r.Level = slog.LevelDebug
		if !d.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return d.Handler.Handle(ctx, r)
}
