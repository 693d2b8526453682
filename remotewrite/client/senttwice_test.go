package client

import (
	"net/http"
	"sync/atomic"
	"testing"
)

// A receiver takes a request and ends its kept connection without an answer. The client sends the request again, and the answer says so: the
// refusal of the second may be due to the first.
func TestAnswerSaysThatARequestWasSentTwice(t *testing.T) {
	var requests atomic.Int32
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		switch requests.Add(1) {
		case 2:
			panic(http.ErrAbortHandler) // it has stored the samples
		case 3:
			http.Error(w, "out of order sample", http.StatusBadRequest)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	c := newClient(t, "url: "+s.URL, "", Options{})
	for i, want := range []struct {
		status int
		again  bool
	}{{204, false}, {400, true}, {204, false}} {
		if a := c.Send(t.Context(), Request{Body: []byte("x")}); a.Status != want.status || a.Again != want.again {
			t.Errorf("request %d: status %d, sent again: %t (%v)", i+1, a.Status, a.Again, a.Err)
		}
	}
	if n := requests.Load(); n != 4 {
		t.Errorf("the receiver got %d requests", n)
	}
}
