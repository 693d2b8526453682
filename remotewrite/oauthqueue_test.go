package remotewrite

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/client"
	"hwsagent/wal/queue"
)

// TestOAuth2LosesNothing: no sample is lost, whatever the token endpoint does: all arrive once it is healthy. A refusal
// holds the target and gives the reason.
func TestOAuth2LosesNothing(t *testing.T) {
	for _, policy := range []string{"hold", "drop"} {
		synctest.Test(t, func(t *testing.T) {
			receiver, stopReceiver := testnet.Serve(t, nil, (&testnet.Guard{}).Handler(testnet.Bearer))
			defer stopReceiver()
			var status atomic.Int64 // of the token endpoint; 0: it gives a token
			status.Store(503)       // before the first request
			endpoint, stopEndpoint := testnet.Serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
				if s := int(status.Load()); s != 0 {
					w.WriteHeader(s)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"access_token": "token-1", "token_type": "Bearer", "expires_in": 3600}`)
			})
			defer stopEndpoint()
			dial := func(ctx context.Context, network, address string) (net.Conn, error) {
				if strings.HasPrefix(address, "idp.example") {
					return endpoint.Dial(ctx, network, address)
				}
				return receiver.Dial(ctx, network, address)
			}
			cfg := mustLoad(t, "{url: http://h.example/, oauth2: {client_id: agent, client_secret: x, token_url: 'http://idp.example/token'}, hwsagent: {on_refusal: "+policy+", future_limit: 0s}}")
			c, err := client.New(cfg, client.Options{Dial: dial})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			defer synctest.Wait()
			log := newMemLog(t)
			secondsOf(100, 20)(log)
			q, err := New(Options{Name: "t", Config: *cfg, Source: log, Sender: c, DeadLetters: &memLetters{}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); q.Run(ctx) }()
			for _, refused := range []int{503, 400, 401, 302, 404} {
				status.Store(int64(refused))
				time.Sleep(20 * time.Minute)
				want := "held"
				if refused == 503 {
					want = "retrying"
				}
				if s := q.Status(); s.State != want || !strings.Contains(s.Why, fmt.Sprint("get OAuth2 token from http://idp.example/token: ", refused)) {
					t.Errorf("%d: %s, %s", refused, s.State, s.Why)
				}
			}
			status.Store(0)
			time.Sleep(20 * time.Minute)
			cancel()
			<-done
			if o := log.outcome(); o.Delivered != 2000 || o.Sum() != 2000 || o.Dropped != [queue.NumReasons]uint64{} {
				t.Errorf("%s: %+v", policy, o)
			}
		})
	}
}
