package client

import (
	"errors"
	"testing"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
)

// The outcome table, whole: every status that HTTP can bring, under every policy.
func TestClassify(t *testing.T) {
	hold := config.Policy{OnRefusal: config.RefusalHold}
	drop := config.Policy{OnRefusal: config.RefusalDrop}
	holdNo429 := config.Policy{OnRefusal: config.RefusalHold, DropRateLimited: true}
	dropNo429 := config.Policy{OnRefusal: config.RefusalDrop, DropRateLimited: true}

	special := map[int][2]Verdict{ // status: hold, drop
		400: {Suspect, Discard}, 409: {Suspect, Discard}, 422: {Suspect, Discard},
		408: {Retry, Discard}, 425: {Retry, Discard},
		413: {Split, Discard},
		429: {Retry, Retry},
	}
	for status := 100; status < 700; status++ {
		var want [2]Verdict
		switch {
		case status/100 == 2:
			want = [2]Verdict{Delivered, Delivered}
		case status/100 == 4:
			want = [2]Verdict{Hold, Discard}
		case status/100 == 5:
			want = [2]Verdict{Retry, Retry}
		default:
			want = [2]Verdict{Hold, Hold}
		}
		if w, ok := special[status]; ok {
			want = w
		}
		a := Answer{Status: status}
		if got := Classify(a, hold); got != want[0] {
			t.Errorf("%d, hold: %v, want %v", status, got, want[0])
		}
		if got := Classify(a, drop); got != want[1] {
			t.Errorf("%d, drop: %v, want %v", status, got, want[1])
		}
		if status == 429 {
			want = [2]Verdict{Discard, Discard}
		}
		if got := Classify(a, holdNo429); got != want[0] {
			t.Errorf("%d, hold, no retry on 429: %v, want %v", status, got, want[0])
		}
		if got := Classify(a, dropNo429); got != want[1] {
			t.Errorf("%d, drop, no retry on 429: %v, want %v", status, got, want[1])
		}
	}
	for _, p := range []config.Policy{hold, drop, holdNo429, dropNo429} {
		if got := Classify(Answer{Err: errors.New("connection refused")}, p); got != Retry {
			t.Errorf("no response, %+v: %v, want %v", p, got, Retry)
		}
	}
}

// An answer to zstd proves nothing about the samples if it is a refusal, or a 2xx without VictoriaMetrics'
// header.
func TestClassifyZstd(t *testing.T) {
	for _, p := range []config.Policy{{}, {DropRateLimited: true}, {OnRefusal: config.RefusalDrop}, {OnRefusal: config.RefusalDrop, DropRateLimited: true}} {
		for _, is := range []bool{false, true} {
			for status := 100; status < 700; status++ {
				snappy := Classify(Answer{Status: status}, p)
				a := Answer{Status: status, Compression: wire.Zstd, VictoriaMetrics: is}
				want := snappy
				switch {
				case status/100 == 2 && !is, status == 415, snappy == Suspect, snappy == Split, snappy == Discard && status != 429:
					want = Plain
				}
				if got := Classify(a, p); got != want {
					t.Errorf("%d, VictoriaMetrics %v, %+v: %v, want %v", status, is, p, got, want)
				}
				if got := a.Accepted(); got != (status/100 == 2 && is) {
					t.Errorf("%d, VictoriaMetrics %v is accepted: %v", status, is, got)
				}
			}
			if got := Classify(Answer{Status: 200, Page: true, Compression: wire.Zstd, VictoriaMetrics: is}, p); got != Hold {
				t.Errorf("a web page: %v, want hold", got)
			}
		}
		if got := Classify(Answer{Err: errors.New("connection refused"), Compression: wire.Zstd}, p); got != Retry {
			t.Errorf("no response: %v, want retry", got)
		}
	}
}

func TestVerdictNames(t *testing.T) {
	seen := map[string]bool{}
	for v := Delivered; v <= Plain; v++ {
		if s := v.String(); s == "" || seen[s] {
			t.Errorf("verdict %d is called %q", v, s)
		} else {
			seen[s] = true
		}
	}
}
