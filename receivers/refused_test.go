package receivers_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// TestRefusedTakesNoPlace: the series of a request refused as a whole, for any reason, do not count as active;
// otherwise others would be refused for an hour because of series that were never stored.
func TestRefusedTakesNoPlace(t *testing.T) {
	limits := receivers.DefaultLimits()
	limits.ActiveSeries = 10
	l := &receivertest.Log{}
	g := l.Gate("x", limits)
	send := func(prefix string, n int, end error) int {
		return post(g.Handler(func(_ http.ResponseWriter, r *receivers.Request) error {
			b := r.Batch()
			defer b.Rollback()
			for i := range n {
				if err := b.Series(labels.FromStrings("__name__", prefix+string(rune('a'+i))), "", metadata.Metadata{}); err != nil {
					return err
				}
				if err := b.Append(0, 1, 1, nil, nil); err != nil {
					return err
				}
			}
			if end != nil {
				return end
			}
			_, err := b.Commit()
			return err
		}, nil), "", nil).Code
	}
	active := func(want int) {
		t.Helper()
		if n := g.Counts().ActiveSeries; n != want {
			t.Errorf("%d series are active, want %d", n, want)
		}
	}
	if code := send("good", 4, nil); code != 200 {
		t.Fatal(code)
	}
	for range 3 {
		if code := send("bad", 10, errors.New("the end of the message is missing")); code != 400 {
			t.Fatal(code)
		}
		active(4)
	}
	l.Fail(receivertest.ErrFull)
	if code := send("full", 6, nil); code != 503 {
		t.Fatal(code)
	}
	active(4)
	l.Fail(nil)
	if code := send("good", 4, errors.New("malformed")); code != 400 { // was active before
		t.Fatal(code)
	}
	active(4)
	if code := send("many", 8, nil); code != 400 { // two of them are too many
		t.Fatal(code)
	}
	active(10)
}

// TestPanic: a request whose handling panics is refused and counted, nothing of it is stored,
// and the log has where.
func TestPanic(t *testing.T) {
	var said bytes.Buffer
	l := &receivertest.Log{}
	g := receivers.NewGate(receivers.GateOptions{Name: "x", Limits: receivers.DefaultLimits(), Out: l, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	h := g.Handler(func(_ http.ResponseWriter, r *receivers.Request) error {
		b := r.Batch()
		defer b.Rollback()
		if err := b.Series(labels.FromStrings("__name__", "x"), "", metadata.Metadata{}); err != nil {
			return err
		}
		_ = r.Body[len(r.Body)]
		_, err := b.Commit()
		return err
	}, nil)
	for range receivers.DefaultLimits().Requests + 1 { // it gives its place back
		if w := post(h, "", []byte("ab")); w.Code != 400 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if c := g.Counts(); c.RefusedRequests[receivers.Panicked] != 5 || c.ActiveSeries != 0 || len(l.Samples()) != 0 || !strings.Contains(said.String(), "refused_test.go") {
		t.Errorf("%+v; %s", c, said.String())
	}
}
