// Command prometheus3 is a receiver made of Prometheus 3's own parts: its remote-write
// handler and its receiver of OTLP before its TSDB, and its remote-read handler and the
// exemplars, by which a test reads the data back. The end-to-end tests write to it.
//
// It is a module of its own, because storage/remote brings a hundred modules with it that
// the agent must not depend on. The version of prometheus/prometheus is the agent's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "host:port of the web server")
	data := flag.String("data", "", "directory of the TSDB")
	window := flag.Duration("window", 0, "out_of_order_time_window; 0 for none")
	accept := flag.String("accept", "prometheus.WriteRequest,io.prometheus.write.v2.Request", "accepted protobuf messages, as in --web.remote-write-receiver.accepted-protobuf-messages")
	otlp := flag.String("otlp", "{}", "the section otlp of Prometheus' configuration")
	flag.Parse()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, logger, *listen, *data, *window, *accept, *otlp); err != nil {
		logger.Error("The receiver ended", "err", err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, logger *slog.Logger, listen, data string, window time.Duration, accept, otlp string) error {
	var messages remoteapi.MessageTypes
	for name := range strings.SplitSeq(accept, ",") {
		m := remoteapi.WriteMessageType(name)
		if err := m.Validate(); err != nil {
			return err
		}
		messages = append(messages, m)
	}
	o := tsdb.DefaultOptions()
	o.OutOfOrderTimeWindow = window.Milliseconds()
	o.EnableExemplarStorage = true
	o.MaxExemplars = 100_000
	db, err := tsdb.Open(data, logger, nil, o, nil)
	if err != nil {
		return fmt.Errorf("open TSDB: %w", err)
	}
	kept := &recorder{DB: db, metadata: make(map[string]family)}

	// Bounds as Prometheus' defaults: --storage.remote.read-sample-limit and its siblings.
	const readSamples, readConcurrency, readFrame = 50_000_000, 10, 1 << 20
	traced := &tracer{DB: db}
	metrics, err := newOTLPHandler(logger, traced, otlp)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("POST /api/v1/otlp/v1/metrics", metrics)
	mux.HandleFunc("GET /api/v1/appended", traced.serve)
	mux.Handle("POST /api/v1/write", remote.NewWriteHandler(logger, nil, kept, messages, false, false, true))
	mux.Handle("POST /api/v1/read", remote.NewReadHandler(logger, nil, db, func() config.Config { return config.DefaultConfig }, readSamples, readConcurrency, readFrame))
	mux.HandleFunc("GET /api/v1/query_exemplars", kept.serveExemplars)
	mux.HandleFunc("GET /api/v1/metadata", kept.serveMetadata)
	mux.HandleFunc("GET /-/ready", func(http.ResponseWriter, *http.Request) {})

	srv := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })() // the listener's error says nothing new
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, db.Close())
	}
	return db.Close()
}
