package demo

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/control"
	"hwsagent/agent/demo/receiver"
	"hwsagent/agent/status"
)

// asForgetful makes this test binary an agent without a log: it says that it has a
// sample, tries once to send it, and forgets it.
const asForgetful = "HWSAGENT_DEMO_FORGETFUL"

// TestForgetfulAgentIsFoundOut proves that the demo can fail: it detects an agent that loses samples in an outage.
func TestForgetfulAgentIsFoundOut(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asForgetful, "1")
	for _, script := range []string{Outage, Crash} {
		t.Run(script, func(t *testing.T) {
			var stdout, stderr strings.Builder
			err := Run(t.Context(), Options{Script: script, JSON: true, Binary: self, Stdout: &stdout, Stderr: &stderr, second: 100 * time.Millisecond})
			if !errors.Is(err, ErrLost) {
				t.Errorf("error %v, want ErrLost\n%s", err, stderr.String())
			}
			var r Result
			if err := json.Unmarshal([]byte(stdout.String()), &r); err != nil {
				t.Fatalf("%v in %s", err, stdout.String())
			}
			if r.Lost < series || r.Delivered < 5*series || r.Appended != r.Delivered+r.Lost || r.Pending != 0 || r.Duplicated != 0 {
				t.Errorf("result %+v", r)
			}
			if !strings.Contains(stderr.String(), "the receiver is gone") || strings.Contains(stderr.String(), "kill -9") != (script == Crash) {
				t.Errorf("the faults did not happen:\n%s", stderr.String())
			}
		})
	}
}

// forgetful runs until SIGTERM.
func forgetful() error {
	dir := filepath.Dir(os.Args[3]) // run --config.file FILE --storage.path DIR
	storage := os.Args[5]
	config, err := os.ReadFile(os.Args[3])
	if err != nil {
		return err
	}
	url := regexp.MustCompile(`url: (\S+)`).FindStringSubmatch(string(config))[1]
	token, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key"))
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{cert}}}}

	if err := os.MkdirAll(storage, 0o700); err != nil {
		return err
	}
	l, err := control.Listen(storage, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	reloaded := make(chan struct{}, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/-/reload", func(http.ResponseWriter, *http.Request) { reloaded <- struct{}{} })
	mux.HandleFunc("/api/v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(status.Status{Targets: []status.TargetStatus{{Name: target}}})
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()

	file := filepath.Join(dir, "canary.journal")
	old, err := receiver.ReadJournal(file)
	if err != nil {
		return err
	}
	journal, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer journal.Close()
	tick := time.NewTicker(20 * time.Millisecond)
	for n := old.Tried + 1; ; n++ {
		select {
		case <-stop:
			return nil
		case <-reloaded:
			tick.Stop()
			<-stop
			return nil
		case <-tick.C:
		}
		fmt.Fprintf(journal, "try %d\nack %[1]d\n", n)
		var wr prompb.WriteRequest
		for i := range series {
			wr.Timeseries = append(wr.Timeseries, prompb.TimeSeries{
				Labels:  []prompb.Label{{Name: "__name__", Value: receiver.CanaryName}, {Name: "series", Value: fmt.Sprint(i)}},
				Samples: []prompb.Sample{{Value: float64(n), Timestamp: time.Now().UnixMilli()}},
			})
		}
		raw, err := wr.Marshal()
		if err != nil {
			return err
		}
		req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(snappy.Encode(nil, raw)))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Encoding", "snappy")
		req.Header.Set("Content-Type", "application/x-protobuf")
		req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
		}
	}
}
