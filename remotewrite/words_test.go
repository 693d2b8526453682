package remotewrite

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
)

// TestWords: only the words of a receiver's database say that a sample is late or too old, whatever the
// status but those about credentials and size.
func TestWords(t *testing.T) {
	type says struct{ order, tooOld, database bool }
	late, old := says{order: true, database: true}, says{order: true, tooOld: true, database: true}
	for _, tc := range []struct {
		answer client.Answer
		want   says
	}{
		{client.Answer{Status: 400, Text: "out of order sample"}, late},
		{client.Answer{Status: 409, Text: "store locally for endpoint a:1: add 2 samples: out of order sample"}, late},
		{client.Answer{Status: 400, Text: `user=1: err: out of order sample. timestamp=2021-06-11T15:44:36Z, series={a="b"}`}, late},
		{client.Answer{Status: 400, Text: "out of bounds"}, old},
		{client.Answer{Status: 400, Text: "too old sample"}, old},
		{client.Answer{Status: 500, Text: "too old sample"}, old},
		{client.Answer{Status: 400, Text: `timestamp too old: 5 metric: "up"`}, old},

		{client.Answer{Status: 400, Text: "duplicate sample for timestamp"}, says{database: true}},
		{client.Answer{Status: 400, Text: "the sample has been rejected because another sample with the same timestamp, but a different value, has already been ingested (err-mimir-sample-duplicate-timestamp). The affected"}, says{database: true}},

		{client.Answer{Status: 400, Text: "out of bounds: timestamp is too far in the future"}, says{}},
		{client.Answer{Status: 409, Text: "store locally for endpoint a:1: add 2 series: out of order labels"}, says{}},
		{client.Answer{Status: 409, Text: "store locally for endpoint a:1: add 2 exemplars: out of order exemplar"}, says{}},
		{client.Answer{Status: 400, Text: "received a series whose label value length exceeds the limit, label: 'a', value: 'out of order sample' (truncated)"}, says{}},
		{client.Answer{Status: 400, Text: "Out of order: the service is being repaired"}, says{}},
		{client.Answer{Status: 403, Text: "out of order sample"}, says{}},
		{client.Answer{Status: 404, Text: "too old sample"}, old},
		{client.Answer{Status: 500, Text: "out of order sample"}, late},
		{client.Answer{Status: 413, Text: "out of order sample"}, late},
		{client.Answer{Status: 200, Text: "out of order sample"}, says{}},
		{client.Answer{Status: 400, Text: "empty ring"}, says{}},
		{client.Answer{Status: 400, Text: "out of order sample", HTML: true}, says{}},
	} {
		a := client.Judge(tc.answer, config.Policy{})
		if got := (says{a.SaysLate(), a.Reason == client.ReasonTooOld, a.AboutTime()}); got != tc.want {
			t.Errorf("%d %q, a page: %t: %+v, want %+v", a.Status, a.Text, a.HTML, got, tc.want)
		}
	}
}

// TestPageIsNotTheDatabase: a web page does not count as the receiver, whatever its title says.
func TestPageIsNotTheDatabase(t *testing.T) {
	for body, want := range map[string]bool{
		"out of order sample\n": true,
		"<html><head><title>out of order sample</title></head></html>": false,
		"<!doctype html>\n<title>400 out of order sample</title>":      false,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, body)
		}))
		defer s.Close()
		c, err := client.New(mustLoad(t, "url: "+s.URL), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		a := client.Judge(c.Send(t.Context(), client.Request{Body: []byte("x")}), config.Policy{})
		if a.SaysLate() != want || a.Text != "out of order sample" {
			t.Errorf("%q: late: %t, text %q", body, a.SaysLate(), a.Text)
		}
	}
}

// TestBorrowedWords: a target that refuses everything in words similar to a database's loses no sample.
func TestBorrowedWords(t *testing.T) {
	for _, a := range []client.Answer{
		{Status: 400, Text: "Out of order: the service is being repaired"},
		{Status: 409, Text: "the plan is too old, contact sales"},
		{Status: 400, Text: "out of order sample", HTML: true},
		{Status: 400, Text: "received a series whose label value length exceeds the limit, label: 'a', value: 'out of order sample' (truncated) series: 'up' (err-mimir-label-value-too-long)"},
	} {
		t.Run(fmt.Sprint(a.Status, " ", a.Text), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &fakeReceiver{latency: 5 * time.Millisecond}
				r := newRig(t, to).timed()
				ill := true
				to.script = func(q fakeRequest) (client.Answer, bool) { return a, ill && len(q.samples) > 0 }
				r.start()
				for range 20 {
					r.round(20)
					time.Sleep(15 * time.Second)
				}
				if o := r.log.outcome(); o.GivenUp() != 0 {
					t.Errorf("while everything is refused: outcomes %+v", o)
				}
				to.set(func() { ill = false })
				r.drained(2 * time.Minute)
				r.end()
				r.everySampleIsStored()
			})
		})
	}
}
