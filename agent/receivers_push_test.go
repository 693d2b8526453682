package agent

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hwsagent/probes"
	"hwsagent/receivers"
	"hwsagent/receivers/pushgateway"
	"hwsagent/receivers/receivertest"
)

// If series that left a group cannot be marked stale, the round reports it but keeps its other samples; once they are
// marked, it reports nothing.
func TestPushedSeriesThatCannotEnd(t *testing.T) {
	store, err := pushgateway.OpenStore(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l := &receivertest.Log{}
	p := pushedProbe{pushgateway.New(l.Gate("pushgateway", receivers.DefaultLimits()), store)}
	put := func(body string) {
		t.Helper()
		w := httptest.NewRecorder()
		p.receiver.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/metrics/job/j", strings.NewReader(body)))
		if w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	put("x 1\n")
	broken := errors.New("the disk is gone")
	l.Fail(broken)
	put("y 1\n") // x ends
	r := probes.NewRound(0)
	if err := p.Collect(t.Context(), r); !errors.Is(err, probes.ErrPartial) || !errors.Is(err, broken) {
		t.Errorf("%v, want that x cannot end", err)
	}
	if n := len(r.Samples()); n != 3 { // y, and the times of the group
		t.Errorf("%d samples, want 3", n)
	}
	l.Fail(nil)
	if err := p.Collect(t.Context(), probes.NewRound(0)); err != nil || len(l.Samples()) != 1 {
		t.Errorf("%v; marked stale: %v", err, l.Samples())
	}
}
