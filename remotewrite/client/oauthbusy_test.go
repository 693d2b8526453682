package client

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/testnet"
)

// TestOAuth2BusyIsNoAcceptance: a 503 of a program in front of the receiver is no acceptance of the token. A token that was never accepted is not
// replaced at each 401.
func TestOAuth2BusyIsNoAcceptance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		idp := &issuer{life: 3600}
		receiver, stopReceiver := testnet.Serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			if n++; n%2 == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.WriteHeader(http.StatusUnauthorized)
		})
		endpoint, stopEndpoint := testnet.Serve(t, nil, idp.ServeHTTP)
		c := newClient(t, "{url: http://h.example/, oauth2: {client_id: agent, client_secret: s, token_url: 'http://idp.example/token'}}", t.TempDir(),
			Options{Dial: dialEach(map[string]*testnet.Net{"h.example": receiver, "idp.example": endpoint})})
		begin := time.Now()
		for range 20 {
			c.Send(t.Context(), Request{Body: []byte("x")})
			time.Sleep(time.Second)
		}
		if asked := idp.count(); asked > 3 {
			t.Errorf("%d tokens in %s, for a receiver that has accepted none; %d requests for 20", asked, time.Since(begin), n)
		}
		synctest.Wait()
		c.Close()
		stopReceiver()
		stopEndpoint()
	})
}
