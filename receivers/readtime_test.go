package receivers_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// A request that is read for too long gives its place back, and the sender may try again.
func TestReadTimeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &receivertest.Log{}
		g := l.Gate("x", receivers.DefaultLimits())
		h := g.Handler(func(_ http.ResponseWriter, r *receivers.Request) error {
			b := r.Batch()
			defer b.Rollback()
			for {
				if err := b.Series(labels.FromStrings("__name__", "a"), "", metadata.Metadata{}); err != nil {
					return err
				}
				time.Sleep(time.Second) // a series that takes long
			}
		}, nil)
		began := time.Now()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")))
		if took := time.Since(began); took > 32*time.Second {
			t.Errorf("it took %s", took)
		}
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || g.Counts().RefusedRequests[receivers.Busy] != 1 {
			t.Errorf("%d %s %v; counted %v", w.Code, w.Body, w.Header(), g.Counts().RefusedRequests)
		}
	})
}
