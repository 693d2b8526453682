package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/net/netutil"

	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/status"
	"hwsagent/internal/files"
	"hwsagent/internal/httpbound"
	"hwsagent/internal/loopback"
)

// Errors of [Options.Reload] that do not mean a bad configuration.
var (
	// ErrNotBegun: another change is in progress and does not end. The answer is 503.
	ErrNotBegun = errors.New("not begun")
	// ErrGoesOn: the reload waits for something that hangs, and continues when that ends. The answer is 202.
	ErrGoesOn = errors.New("has not ended yet and continues")
)

// ReloadFailed begins the answer to a failed reload; the reason follows.
const ReloadFailed = "The reload failed and changed nothing.\n"

// Options configure a [Server]. Status is required; if another function or handler is nil, its address answers 404.
type Options struct {
	// Listen is host:port; port 0 picks a free one, see [Server.Addr]. Empty: no listener, for an agent without a page.
	Listen string
	// WebConfigFile names a file in exporter-toolkit's format, with TLS settings and
	// users. It is read again for every connection. Without it, Listen must be a
	// loopback address, or InsecureListen true.
	WebConfigFile  string
	InsecureListen bool
	Pprof          bool // serve /debug/pprof/

	Homepage string // an https address of the documentation; empty: none

	Status   func() status.Status          // called for each page; must be quick and safe for concurrent use
	Events   func() []status.Event         // of the last 24 hours, oldest first, for the page; as Status
	History  func(target string) []Figures // of the last 24 hours, oldest first, for GET /plot; as Status
	Hardware func() []status.Component     // in memory, for the page; as Status
	// Device returns the hardware of one device in memory, for GET /device; as Status.
	Device  func(name string) inventory.Inventory
	Metrics http.Handler           // GET /metrics
	Reload  func() error           // POST /-/reload; the error's text is the answer, see ErrNotBegun, ErrGoesOn
	Ready   func() error           // GET /-/ready; nil when the agent is collecting
	Config  func() ([]byte, error) // GET /api/v1/config: the configuration in force, without secrets

	// Control answers below /control/, only through [Server.Serve]: clients that can reach the page's address must not
	// have its rights.
	Control http.Handler

	// ScrapeTargets answers GET /api/v1/targets as Prometheus does.
	ScrapeTargets http.Handler

	Logger *slog.Logger
}

// Limits of a connection.
const (
	answerTimeout     = time.Minute // see timed
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	maxConnections    = 64 // at a time: browsers, Prometheus and commands have a few
	shutdownTimeout   = 250 * time.Millisecond
)

// Server is the agent's own HTTP server.
type Server struct {
	o        Options
	handler  http.Handler
	listener net.Listener // nil without Options.Listen
	loopback bool
	streams  *streams
}

// New opens the listener, so that an address in use is known at once; [Server.Run] serves and closes it. It refuses an
// address that other hosts can reach unless WebConfigFile or InsecureListen is given.
func New(o Options) (*Server, error) {
	h := newHandlers(o)
	s := &Server{o: o, handler: h.routes(), streams: h.streams}
	if o.Listen == "" {
		return s, nil
	}
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for the page: %q is not host:port: %w", o.Listen, err)
	}
	s.loopback = loopback.Host(host)
	if !s.loopback && o.WebConfigFile == "" && !o.InsecureListen {
		return nil, fmt.Errorf("listen for the page: %s can be reached from other hosts without TLS or users: "+
			"listen on 127.0.0.1, give web.config_file, or set web.insecure_listen: true", o.Listen)
	}
	if o.WebConfigFile != "" {
		if err := files.Check(o.WebConfigFile); err != nil {
			return nil, fmt.Errorf("read web.config_file: %w", err)
		}
		if err := toolkit.Validate(o.WebConfigFile); err != nil {
			return nil, fmt.Errorf("read web.config_file %s: %w", o.WebConfigFile, err)
		}
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for the page: %w", err)
	}
	s.listener = netutil.LimitListener(l, maxConnections) // further clients wait, so that they cannot take the log's descriptors
	return s, nil
}

// Addr returns the listener's address, nil without a listener.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Close closes a server that will not Run.
func (s *Server) Close() error {
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}

// Run serves the page until ctx ends, then closes the listener and waits for requests in flight, shutdownTimeout at most.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		<-ctx.Done()
		return nil
	}
	handler := s.handler
	if s.loopback {
		handler = loopback.Only(handler)
	}
	noSystemd, file := false, s.o.WebConfigFile
	flags := &toolkit.FlagConfig{WebSystemdSocket: &noSystemd, WebConfigFile: &file}
	return s.serve(ctx, handler, func(srv *http.Server) error {
		if file == "" { // where the toolkit only logs that there is no TLS
			return srv.Serve(s.listener)
		}
		return toolkit.Serve(s.listener, srv, flags, s.o.Logger)
	})
}

// Serve serves the same addresses on l, such as a Unix socket, in plain HTTP and without authentication, until ctx
// ends. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	handler := s.handler
	if s.o.Control != nil {
		mux := http.NewServeMux()
		mux.Handle("/", s.handler)
		mux.Handle("/control/", s.o.Control)
		handler = mux
	}
	return s.serve(ctx, handler, func(srv *http.Server) error { return srv.Serve(l) })
}

func (s *Server) serve(ctx context.Context, handler http.Handler, run func(*http.Server) error) error {
	srv := &http.Server{
		Handler: httpbound.CloseAfterChunked(timed(handler)), ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- run(srv) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve the page: %w", err)
	case <-ctx.Done():
	}
	s.streams.end()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := srv.Shutdown(stop); err != nil {
		// Only profiles, or clients that do not read, are still running.
		if err := srv.Close(); err != nil {
			s.o.Logger.Debug("Cannot close the web server", "err", err)
		}
	}
	if err := <-served; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// timed bounds how long a client may take to read an answer: one that does not read would keep the answer in memory
// forever. Profiles, and answers to commands, have no limit; streams set limits of their own.
func timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end := time.Now().Add(answerTimeout)
		if r.Method != http.MethodGet && r.Method != http.MethodHead || strings.HasPrefix(r.URL.Path, "/debug/") || strings.HasPrefix(r.URL.Path, "/control/") {
			end = time.Time{} // none, also where an earlier request of the connection has set one
		}
		// Every connection of this server has deadlines; a test's may not.
		_ = http.NewResponseController(w).SetWriteDeadline(end)
		next.ServeHTTP(w, r)
	})
}

func newHandlers(o Options) *handlers {
	return &handlers{o: o, streams: &streams{ending: make(chan struct{})}}
}

// routes returns the handler of the page and its API. It checks only that a POST does not come from another site's
// page.
func (h *handlers) routes() http.Handler {
	mux, o := http.NewServeMux(), h.o
	mux.HandleFunc("GET /{$}", h.page)
	mux.HandleFunc("GET /targets", h.page)
	mux.HandleFunc("GET /device", h.page)
	mux.HandleFunc("GET /search", h.page)
	mux.HandleFunc("GET /assets/{name}", h.asset)
	mux.HandleFunc("GET /api/v1/status", h.status)
	mux.HandleFunc("GET /api/v1/stream", h.stream)
	if o.History != nil {
		mux.HandleFunc("GET /plot", h.plot)
	}
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "hwsagent is healthy\n") })
	if o.Ready != nil {
		mux.HandleFunc("GET /-/ready", h.ready)
	}
	if o.Reload != nil {
		mux.HandleFunc("POST /-/reload", h.reload)
	}
	if o.Config != nil {
		mux.HandleFunc("GET /api/v1/config", h.config)
	}
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	if o.ScrapeTargets != nil {
		mux.Handle("GET /api/v1/targets", o.ScrapeTargets)
	}
	if o.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return secured(http.NewCrossOriginProtection().Handler(mux))
}

// secured sets headers that forbid the browser everything that the page does not need.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
			"img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

type handlers struct {
	o       Options
	streams *streams
}

func (h *handlers) status(w http.ResponseWriter, _ *http.Request) {
	body, err := json.MarshalIndent(h.o.Status(), "", "  ")
	if err != nil {
		writeText(w, http.StatusInternalServerError, fmt.Sprintf("encode status: %v\n", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	write(w, append(body, '\n'))
}

func (h *handlers) ready(w http.ResponseWriter, _ *http.Request) {
	if err := h.o.Ready(); err != nil {
		writeText(w, http.StatusServiceUnavailable, "hwsagent is not ready: "+err.Error()+"\n")
		return
	}
	writeText(w, http.StatusOK, "hwsagent is ready\n")
}

func (h *handlers) reload(w http.ResponseWriter, _ *http.Request) {
	if err := h.o.Reload(); err != nil {
		AnswerReload(w, err)
		return
	}
	writeText(w, http.StatusOK, "reloaded\n")
}

// AnswerReload answers for a reload that failed, by its error.
func AnswerReload(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, ErrNotBegun):
		writeText(w, http.StatusServiceUnavailable, err.Error()+"\n")
	case errors.Is(err, ErrGoesOn):
		writeText(w, http.StatusAccepted, err.Error()+"\n")
	default:
		writeText(w, http.StatusBadRequest, ReloadFailed+strings.TrimRight(err.Error(), "\n")+"\n")
	}
}

func (h *handlers) config(w http.ResponseWriter, _ *http.Request) {
	body, err := h.o.Config()
	if err != nil {
		writeText(w, http.StatusInternalServerError, err.Error()+"\n")
		return
	}
	writeText(w, http.StatusOK, string(body))
}

func writeText(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	write(w, []byte(body))
}

// write sends the last part of an answer. An error means that the client has gone, and needs no handling.
func write(w http.ResponseWriter, body []byte) {
	if _, err := w.Write(body); err != nil {
		return
	}
}
