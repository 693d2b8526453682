package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
)

// tenant takes a limited number of series and keeps the good part of a request, as Mimir does, and answers in its words.
type tenant struct {
	mu     sync.Mutex
	limit  int
	has    map[string]bool
	asked  int  // requests with samples
	raised bool // the limit is
}

// tenantWords are Mimir's, of pkg/ingester/limiter.go and its error catalogue.
const tenantWords = "per-user series limit of 100 exceeded (err-mimir-max-series-per-user). To adjust the related per-tenant limit, configure -ingester.max-global-series-per-user, or contact your service administrator."

func (n *tenant) behave(q receiver.Request) receiver.Reply {
	n.mu.Lock()
	defer n.mu.Unlock()
	if q.Empty {
		return receiver.Accept(q)
	}
	n.asked++
	var good []prompb.TimeSeries
	for _, ts := range q.Series {
		key := fmt.Sprint(ts.Labels)
		if !n.has[key] && (n.raised || len(n.has) < n.limit) {
			n.has[key] = true
		}
		if n.has[key] {
			good = append(good, ts)
		}
	}
	if len(good) < len(q.Series) {
		return receiver.Reply{Status: http.StatusBadRequest, Text: tenantWords, Stored: good}
	}
	return receiver.Accept(q)
}

func (n *tenant) requests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// TestSeriesLimit: a tenant's limit of series is reached. The agent mutes the others, tells of that on the page, in the
// status, as an event and in a metric, spends next to no requests on them, and delivers all of them when the limit was raised.
func TestSeriesLimit(t *testing.T) {
	t.Parallel()
	const room, series = 100, 600
	recv, oracle := startReceiver(t, receiver.Options{})
	n := &tenant{limit: room, has: map[string]bool{}}
	recv.Behave(n.behave)
	l := newLoad(t, series, time.Second, entry("mimir", recv.URL()), oracle).begin()
	eventually(t, time.Minute, func() string {
		tg := l.target("mimir")
		if len(tg.Muted) != 1 || tg.Muted[0].Series < series-room { // and a few of the probe's own
			return fmt.Sprintf("muted: %+v", tg.Muted)
		}
		return ""
	})
	q := l.target("mimir").Muted[0]
	if q.Reason != "series-limit" || q.Words != tenantWords || q.Example == "" || q.Text == "" || time.Since(q.Since) > time.Minute {
		t.Errorf("status: %+v", q)
	}
	before := n.requests()
	l.acked(20)
	if asked := n.requests() - before; asked > 50 { // one a round, and a probe
		t.Errorf("%d requests in 20 rounds", asked)
	}
	q = l.target("mimir").Muted[0] // with those of the probe itself
	text, metric := fmt.Sprintf("%d series are not sent", q.Series), fmt.Sprintf(`hwsagent_remotewrite_series_muted{reason="series-limit",target="mimir"} %d`, q.Series)
	if tg := l.target("mimir"); tg.PendingSamples > 3*series || tg.State != "ok" || tg.DeadLetters == 0 {
		t.Errorf("target %+v", tg)
	}
	out, _, code := hwsagent(t, "status", "--storage.path", l.storage, "--web.listen-address", l.web)
	if code != 4 || !strings.Contains(out, "limit of series is reached") || !strings.Contains(out, text) {
		t.Errorf("status ends with %d:\n%s", code, out)
	}
	if _, body, err := l.ask(http.MethodGet, "/"); err != nil || !strings.Contains(body, text) {
		t.Errorf("the page does not tell of it (%v)", err)
	}
	if _, body, err := l.ask(http.MethodGet, "/metrics"); err != nil || !strings.Contains(body, metric) {
		t.Errorf("the metrics do not tell of it (%v): want %s in\n%s", err, metric, body)
	}

	n.mu.Lock()
	n.raised = true
	n.mu.Unlock()
	eventually(t, 2*time.Minute, func() string {
		if tg := l.target("mimir"); len(tg.Muted) > 0 {
			return fmt.Sprintf("muted: %+v", tg.Muted)
		}
		return ""
	})
	lost := l.target("mimir").Ledger.Lost
	l.acked(3)
	l.reload(l.text(false))
	if tg := l.drained(20*time.Second, "mimir"); tg.Ledger.Lost != lost || !tg.Ledger.Balanced || tg.Ledger.Dropped["rejected"] == 0 {
		t.Errorf("after the limit was raised, with %d lost: %+v", lost, tg.Ledger)
	}
	eventually(t, 20*time.Second, func() string {
		out, _, _ := hwsagent(t, "events", "--storage.path", l.storage)
		if !strings.Contains(out, "muted") || !strings.Contains(out, "released") {
			return out
		}
		return ""
	})
}
