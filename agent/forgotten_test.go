//go:build unix

package agent

import (
	"bytes"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/agent/inputs"
	"hwsagent/receivers"
	"hwsagent/receivers/otlp"
	remotewritein "hwsagent/receivers/remotewrite"
	"hwsagent/wal"
)

// TestRareSenders: what a sender sends so rarely that the log has forgotten its series arrives each time, under the same labels.
func TestRareSenders(t *testing.T) {
	for _, of := range []struct {
		handler           func(*receivers.Gate) http.Handler
		path, contentType string
		body              func(testing.TB, []seriesOf, int64, *rand.Rand) []byte
		encoding          string
	}{
		{remotewritein.New, remotewritein.Path, "application/x-protobuf", body1, "snappy"},
		{remotewritein.New, remotewritein.Path, "application/x-protobuf;proto=io.prometheus.write.v2.Request", body2, "snappy"},
		{otlp.New(otlp.Settings{}, 1000).HTTP, otlp.Path, "application/x-protobuf", bodyOTLP, "gzip"},
	} {
		t.Run(of.path+" "+of.contentType, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, err := wal.Open(wal.Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := log.Close(); err != nil {
						t.Error(err)
					}
				}()
				path := inputs.NewPath(log, slog.New(slog.DiscardHandler))
				h := of.handler(receivers.NewGate(receivers.GateOptions{
					Name: "x", Limits: receivers.DefaultLimits(), Out: path.Input(receiverKind, "x", inputs.Settings{}), Logger: slog.New(slog.DiscardHandler),
				}))
				series, r := realisticSeries(100), rand.New(rand.NewPCG(1, 2))
				var before map[string]bool
				for i := range 4 {
					now := time.Now().UnixMilli()
					q := httptest.NewRequest(http.MethodPost, of.path, bytes.NewReader(of.body(t, series, now, r)))
					q.Header.Set("Content-Type", of.contentType)
					q.Header.Set("Content-Encoding", of.encoding)
					w := httptest.NewRecorder()
					h.ServeHTTP(w, q)
					got := map[string]bool{}
					for _, s := range path.Newest(nil) {
						if s.T == now {
							got[s.Labels.String()] = true
						}
					}
					if w.Code/100 != 2 || len(got) < len(series) || before != nil && !maps.Equal(got, before) {
						t.Fatalf("request %d: %d %s, %d series have its time, %d had the time of the one before", i, w.Code, w.Body, len(got), len(before))
					}
					before = got
					one := path.Newest(nil)[0].Labels
					time.Sleep(2 * time.Hour)
					if log.Ref(one) != 0 {
						t.Fatalf("the log has not forgotten %s", one)
					}
				}
			})
		})
	}
}
