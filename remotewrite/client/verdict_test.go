package client

import (
	"errors"
	"testing"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
)

// The outcome table, whole: every status that HTTP can bring, under every policy.
func TestVerdict(t *testing.T) {
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
		if got := Judge(a, hold).Verdict; got != want[0] {
			t.Errorf("%d, hold: %v, want %v", status, got, want[0])
		}
		if got := Judge(a, drop).Verdict; got != want[1] {
			t.Errorf("%d, drop: %v, want %v", status, got, want[1])
		}
		if status == 429 {
			want = [2]Verdict{Discard, Discard}
		}
		if got := Judge(a, holdNo429).Verdict; got != want[0] {
			t.Errorf("%d, hold, no retry on 429: %v, want %v", status, got, want[0])
		}
		if got := Judge(a, dropNo429).Verdict; got != want[1] {
			t.Errorf("%d, drop, no retry on 429: %v, want %v", status, got, want[1])
		}
	}
	for _, p := range []config.Policy{hold, drop, holdNo429, dropNo429} {
		if got := Judge(Answer{Err: errors.New("connection refused")}, p).Verdict; got != Retry {
			t.Errorf("no response, %+v: %v, want %v", p, got, Retry)
		}
	}
}

// An answer to zstd proves nothing about the samples if it is a refusal, or a 2xx without VictoriaMetrics'
// header.
func TestVerdictZstd(t *testing.T) {
	for _, p := range []config.Policy{{}, {DropRateLimited: true}, {OnRefusal: config.RefusalDrop}, {OnRefusal: config.RefusalDrop, DropRateLimited: true}} {
		for _, is := range []bool{false, true} {
			for status := 100; status < 700; status++ {
				snappy := Judge(Answer{Status: status}, p).Verdict
				a := Answer{Status: status, Compression: wire.Zstd, VictoriaMetrics: is}
				want := snappy
				switch {
				case status/100 == 2 && !is, status == 415, snappy == Suspect, snappy == Split, snappy == Discard && status != 429:
					want = Plain
				}
				if got := Judge(a, p).Verdict; got != want {
					t.Errorf("%d, VictoriaMetrics %v, %+v: %v, want %v", status, is, p, got, want)
				}
				if got := a.Accepted(); got != (status/100 == 2 && is) {
					t.Errorf("%d, VictoriaMetrics %v is accepted: %v", status, is, got)
				}
			}
			if got := Judge(Answer{Status: 200, Page: true, Compression: wire.Zstd, VictoriaMetrics: is}, p).Verdict; got != Hold {
				t.Errorf("a web page: %v, want hold", got)
			}
		}
		if got := Judge(Answer{Err: errors.New("connection refused"), Compression: wire.Zstd}, p).Verdict; got != Retry {
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

// TestVerdictOfWords: the words of a receiver's database count whatever the status, but those of an answer about credentials or size.
func TestVerdictOfWords(t *testing.T) {
	drop := config.Policy{OnRefusal: config.RefusalDrop}
	for _, tc := range []struct {
		answer     Answer
		hold, drop Verdict
		reason     Reason
	}{
		{Answer{Status: 400, Text: "out of order sample"}, Suspect, Discard, ReasonLate},
		{Answer{Status: 500, Text: "native histograms are disabled"}, Suspect, Discard, ReasonFault},
		{Answer{Status: 500, Text: "too old sample"}, Suspect, Discard, ReasonTooOld},
		{Answer{Status: 503, Text: "duplicate sample for timestamp"}, Suspect, Discard, ReasonDuplicate},
		{Answer{Status: 400, Text: "out of bounds: timestamp is too far in the future"}, Suspect, Discard, ReasonFuture},
		{Answer{Status: 429, Text: "per-user series limit of 5 exceeded, please contact administrator to raise it"}, Suspect, Discard, ReasonFault},
		{Answer{Status: 400, Text: "too many unhealthy instances in the ring"}, Retry, Retry, ReasonPartlyDown},
		{Answer{Status: 500, Text: "empty ring"}, Retry, Retry, ReasonPartlyDown},
		{Answer{Status: 400, Text: "too big data size exceeding -maxInsertRequestSize=33554432 bytes"}, Split, Discard, ReasonTooLarge},
		{Answer{Status: 413, Text: "out of order sample"}, Split, Discard, ReasonLate},
		{Answer{Status: 403, Text: "out of order sample"}, Hold, Discard, ReasonUnknown},
		{Answer{Status: 400, Text: "out of order sample", HTML: true}, Suspect, Discard, ReasonUnknown},
		{Answer{Status: 500, Text: "panic"}, Retry, Retry, ReasonUnknown},
		{Answer{Status: 204, Text: "out of order sample"}, Delivered, Delivered, ReasonUnknown},
	} {
		h := Judge(tc.answer, config.Policy{})
		if d := Judge(tc.answer, drop); h.Verdict != tc.hold || d.Verdict != tc.drop || h.Reason != tc.reason {
			t.Errorf("%d %q: %v, with on_refusal: drop %v, %v; want %v, %v, %v", tc.answer.Status, tc.answer.Text, h.Verdict, d.Verdict, h.Reason, tc.hold, tc.drop, tc.reason)
		}
	}
}
