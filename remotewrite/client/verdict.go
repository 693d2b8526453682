package client

import (
	"net/http"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
)

// Verdict is the meaning of an answer for the samples of the request.
type Verdict uint8

// The verdicts.
const (
	// Delivered: the receiver has the samples.
	Delivered Verdict = iota
	// Retry: the fate of the samples is unknown; send the same request again after a
	// growing pause or Retry-After.
	Retry
	// Split: the request is too large; halve it and remember the smaller limit.
	Split
	// Suspect: the receiver refuses these samples, or a device on the route refuses
	// all requests; only other requests can show which.
	Suspect
	// Hold: the target accepts no requests at present; stop sending, drop nothing.
	Hold
	// Discard: do not send the samples again; they count as rejected.
	Discard
	// Older: the receiver does not accept remote write 2.0; send the samples as 1.0.
	Older
	// Plain: the receiver does not accept zstd, or may not have read it; send the same samples as snappy.
	Plain
)

// String returns the verdict's name in lower case.
func (v Verdict) String() string {
	return [...]string{"delivered", "retry", "split", "suspect", "hold", "discard", "older", "plain"}[v]
}

// verdict decides what an answer means for the samples of its request. It is pure.
//
//	answer                                hold (default)   on_refusal: drop
//	2xx                                   Delivered        Delivered
//	2xx with a web page                   Hold             Hold
//	400 409 422                           Suspect          Discard
//	408 425                               Retry            Discard
//	413                                   Split            Discard
//	429                                   Retry            Retry
//	429, retry_on_http_429: false         Discard          Discard
//	other 4xx                             Hold             Discard
//	1xx 3xx                               Hold             Hold
//	5xx, no response                      Retry            Retry
//	refused on the way (Blocked)          Hold             Hold
//	anything else                         Hold             Hold
//	in the words of a receiver's database, whatever the status but 401, 403, 407 and 413:
//	why it refuses samples                as 400           as 400
//	a part of it is down                  Retry            Retry
//	the request is too large              as 413           as 413, a 5xx Split
//	to a request of version 2.0:
//	2xx without Written headers           Older            Older
//	2xx, fewer samples written            as 400           as 400
//	415                                   Older            Older
//	to a body of zstd:
//	2xx, not of VictoriaMetrics           Plain            Plain
//	400 409 413 415 422                   Plain            Plain
//	other 4xx                             as above         Plain, but for 429
//
// The specification (remote write 1.0, "Retries & Backoff") demands that 5xx is
// retried and that a 4xx other than 429 is not. Holding deviates on purpose: otherwise
// an expired token would cost data. Thanos answers 409 to samples that
// it already has or that are out of order; 413, 408 and 425 say nothing about the samples. A
// redirect is never followed, whatever the policy, and causes no drop.
//
// The database's words come before the status, because receivers choose the status badly: Prometheus answers 500 to native
// histograms that it does not take, and Cortex 400 where too few of its ingesters live.
//
// Remote write 2.0, "Required Written Response Headers": a 2xx without any Written header
// counts as 415. It comes from receivers of 1.0 that ignore the
// Content-Type and find no samples in the message.
//
// Except for 429, samples are given up only for an answer to snappy, which every receiver must accept: a 2xx
// to zstd may come from a receiver that did not read the body, and a refusal may be due to zstd.
func verdict(a Answer, p config.Policy) Verdict {
	v := plainVerdict(a, p)
	if a.Compression != wire.Zstd || a.Page || a.Blocked {
		return v
	}
	switch {
	case a.Status/100 == 2 && a.unread(), a.Status == StatusUnsupported, v == Suspect, v == Split,
		v == Discard && a.Status != http.StatusTooManyRequests:
		return Plain
	}
	return v
}

// plainVerdict is verdict for a snappy body.
func plainVerdict(a Answer, p config.Policy) Verdict {
	switch s := a.Status; {
	case a.Blocked, a.Page:
		return Hold
	case s == 0:
		return Retry
	case a.Version == wire.V2 && s == http.StatusUnsupportedMediaType,
		a.Version == wire.V2 && s/100 == 2 && a.Samples > 0 && !a.Written.Known:
		return Older
	case a.Version == wire.V2 && s/100 == 2 && a.Written.Stored(a.Samples) < a.Samples:
		if p.OnRefusal == config.RefusalDrop {
			return Discard
		}
		return Suspect
	case s/100 == 2:
		return Delivered
	case s < 400 || s > 599:
		return Hold
	}
	v := ofRefusal(a.Status, a.Reason)
	if a.Status == http.StatusTooManyRequests && v == Retry {
		if p.DropRateLimited {
			return Discard
		}
		return Retry
	}
	if p.OnRefusal == config.RefusalDrop && a.Reason != ReasonPartlyDown && (a.Status/100 == 4 || v == Suspect) {
		return Discard
	}
	return v
}

// ofRefusal returns the verdict on a 4xx or 5xx without a policy.
func ofRefusal(status int, why Reason) Verdict {
	if status != http.StatusRequestEntityTooLarge {
		switch why {
		case ReasonUnknown:
		case ReasonPartlyDown:
			return Retry
		case ReasonTooLarge:
			return Split
		default:
			return Suspect
		}
	}
	switch status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
		return Suspect
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return Retry
	case http.StatusRequestEntityTooLarge:
		return Split
	}
	if status >= 500 {
		return Retry
	}
	return Hold
}
