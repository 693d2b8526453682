package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
)

// refuser answers one status to everything and notes when, and which samples came more
// than once.
type refuser struct {
	*receiver.Receiver
	status int

	mu       sync.Mutex
	lifted   bool
	requests []time.Time
	search   int // how many requests at the beginning may repeat samples
	sent     map[string]bool
	twice    int
}

func (r *refuser) behave(q receiver.Request) receiver.Reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lifted {
		return receiver.Accept(q)
	}
	r.requests = append(r.requests, time.Now())
	for _, ts := range q.Series {
		for _, s := range ts.Samples {
			key := fmt.Sprint(ts.Labels, s.Timestamp)
			if r.sent[key] && len(r.requests) > r.search {
				r.twice++
			}
			r.sent[key] = true
		}
	}
	return receiver.Reply{Status: r.status, Text: "refused by the test"}
}

func (r *refuser) lift() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lifted = true
}

// Test4xxIsHeld: a receiver that answers any one 4xx to everything, but those that mean
// "again" or "smaller", sees at most two requests in 8 s and no sample twice; nothing
// is dropped, and what was held arrives when the refusal is lifted and the
// configuration loaded again. After a 400, 409 or 422 the samples may be at fault: the batch
// comes twice and a sample of each of eight series alone, then the receiver is left in peace.
func Test4xxIsHeld(t *testing.T) {
	t.Parallel()
	statuses := []int{400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 415, 421, 422, 451, 499}
	var targets strings.Builder
	refusers := make([]*refuser, len(statuses))
	oracles := make([]*receiver.Oracle, len(statuses))
	for i, status := range statuses {
		recv, oracle := startReceiver(t, receiver.Options{})
		r := &refuser{Receiver: recv, status: status, sent: make(map[string]bool)}
		if slices.Contains([]int{400, 409, 422}, status) {
			r.search = 2 + 8
		}
		recv.Behave(r.behave)
		refusers[i], oracles[i] = r, oracle
		targets.WriteString(entry(fmt.Sprint(status), recv.URL()))
	}
	l := newLoad(t, 10, 100*time.Millisecond, targets.String(), oracles[0]).begin()
	eventually(t, 20*time.Second, func() string {
		for _, r := range refusers {
			r.mu.Lock()
			n := len(r.requests)
			r.mu.Unlock()
			if n == 0 {
				return fmt.Sprintf("the receiver that refuses with %d has seen nothing", r.status)
			}
		}
		return ""
	})
	time.Sleep(10 * time.Second) // for so long the receivers must be left in peace

	for _, r := range refusers {
		r.mu.Lock()
		requests, twice := r.requests[min(r.search, len(r.requests)):], r.twice
		r.mu.Unlock()
		for i, at := range requests {
			if i >= 2 && at.Sub(requests[i-2]) < 8*time.Second {
				t.Errorf("%d: three requests within %s", r.status, at.Sub(requests[i-2]))
				break
			}
		}
		if twice > 0 {
			t.Errorf("%d: %d samples were sent twice", r.status, twice)
		}
		tg := l.target(fmt.Sprint(r.status))
		if tg.State != "held" || tg.Why == "" {
			t.Errorf("%d: state %q (%q), want held and why", r.status, tg.State, tg.Why)
		}
		if len(tg.Ledger.Dropped) > 0 || tg.Ledger.Lost > 0 || tg.DeadLetters > 0 || tg.PendingSamples == 0 {
			t.Errorf("%d: something was dropped: %+v", r.status, tg.Ledger)
		}
		r.lift()
	}
	l.reload(l.text(false))
	for i, r := range refusers {
		tg := l.drained(90*time.Second, fmt.Sprint(r.status))
		if v := oracles[i].Verify(l.journal(), l.series); v.Missing > 0 || v.OutOfOrder > 0 || tg.Ledger.Lost > 0 {
			t.Errorf("%d: after the refusal was lifted: %+v, ledger %+v", r.status, v, tg.Ledger)
		}
	}
}

// TestPoisonSample sends 2,000 series in one batch of which one is refused.
func TestPoisonSample(t *testing.T) {
	for _, keepGood := range []bool{false, true} {
		t.Run(fmt.Sprintf("keepGood=%t", keepGood), func(t *testing.T) {
			t.Parallel()
			recv, oracle := startReceiver(t, receiver.Options{})
			const words = "series 1234 is poison" // no database's: they show nothing about the sample's time
			recv.Behave(receiver.RefuseSeries(func(ts prompb.TimeSeries) bool {
				if receiver.Label(ts, "__name__") != receiver.CanaryName || receiver.Label(ts, "series") != "1234" {
					return false
				}
				for _, s := range ts.Samples {
					if s.Value == 1 {
						return true
					}
				}
				return false
			}, words, keepGood))
			l := newLoad(t, 2000, 2*time.Second, entry("receiver", recv.URL()), oracle).begin()
			l.arrived(30 * time.Second)
			r := l.settle(30*time.Second, "receiver")
			if r.Missing != 1 || r.OutOfOrder != 0 {
				t.Errorf("missing %d, out of order %d; want exactly the poison sample", r.Missing, r.OutOfOrder)
			}
			if v := oracle.Verify(receiver.Journal{Acked: []uint64{1}}, 2000); v.Delivered != 1999 {
				t.Errorf("of the poisoned round %d samples arrived, want 1,999", v.Delivered)
			}
			tg := l.target("receiver")
			if tg.Ledger.Dropped["rejected"] != 1 || tg.Ledger.Lost != 1 || tg.DeadLetters != 1 {
				t.Errorf("the ledger says %+v with %d dead letters, want one of each", tg.Ledger, tg.DeadLetters)
			}
			if letters := grep(t, l.storage, words); letters != 1 {
				t.Errorf("%d files below the storage directory have the server's words, want one", letters)
			}
			refused := 0
			for _, s := range recv.Seen() {
				if s.Status == 400 {
					refused++
				}
			}
			t.Logf("%d requests were refused", refused)
			if refused == 0 || refused > 64 {
				t.Errorf("%d requests were refused, want 1 to 64", refused)
			}
		})
	}
}

// grep counts the files below dir that hold a text.
func grep(t *testing.T, dir, text string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), text) {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHoldEndsByItself: a receiver that refuses empty writes always, and everything
// with a 401 for a while, and one poison sample for good.
func TestHoldEndsByItself(t *testing.T) {
	t.Parallel()
	recv, oracle := startReceiver(t, receiver.Options{})
	poison := func(ts prompb.TimeSeries) bool {
		if receiver.Label(ts, "series") != "7" {
			return false
		}
		for _, s := range ts.Samples {
			if s.Value == 3 {
				return true
			}
		}
		return false
	}
	var mu sync.Mutex
	locked := true
	recv.Behave(func(q receiver.Request) receiver.Reply {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case locked:
			return receiver.Reply{Status: 401, Text: "token expired"}
		case q.Empty:
			return receiver.Reply{Status: 400, Text: "empty write"}
		default:
			return receiver.RefuseSeries(poison, "poison", false)(q)
		}
	})
	l := newLoad(t, 20, 500*time.Millisecond, entry("receiver", recv.URL()), oracle).begin()
	eventually(t, 20*time.Second, func() string {
		if tg := l.target("receiver"); tg.State != "held" {
			return "the target is " + tg.State + ", not held"
		}
		return ""
	})
	l.acked(5)
	mu.Lock()
	locked = false
	mu.Unlock()
	l.arrived(150 * time.Second)
	l.reload(l.text(false))
	l.drained(150*time.Second, "receiver")
	r := oracle.Verify(l.journal(), l.series)
	if r.Missing != 1 || r.OutOfOrder != 0 {
		t.Errorf("missing %d, out of order %d; want exactly the poison sample", r.Missing, r.OutOfOrder)
	}
	if tg := l.target("receiver"); tg.Ledger.Lost != 1 || tg.DeadLetters != 1 {
		t.Errorf("the ledger says %+v with %d dead letters", tg.Ledger, tg.DeadLetters)
	}
}
