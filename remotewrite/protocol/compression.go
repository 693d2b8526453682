package protocol

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/wire"
)

const (
	// PlainTime is how long a target gets snappy of which an answer came that was not VictoriaMetrics', as the
	// address may lead to several receivers, or that did not take zstd, which may have had other reasons. If it
	// takes the same samples as snappy after a 4xx, it is FallbackTime.
	PlainTime = 5 * time.Minute

	// maxFailures is how many times in a row zstd may fail where snappy is taken right after it, without a
	// word of the receiver on it. After an outage each shard's request does so once.
	maxFailures = 3
)

// Compression decides how the requests to a target are compressed. zstd is used only while
// all answers say that they are VictoriaMetrics', and an answer counts for its own request only. What is known
// lives as long as the queue. Safe for concurrent use.
type Compression struct {
	allowed bool // the entry allows zstd
	wanted  bool // it names zstd: snappy needs a reason

	mu       sync.Mutex
	says     bool      // the last accepted request was answered by VictoriaMetrics
	until    time.Time // snappy is in use until then, whatever the target says
	why      string    // for people: why snappy is in use
	failures int       // see maxFailures
}

// NewCompression returns the compression of a target whose entry allows zstd, or names it.
func NewCompression(allowed, wanted bool) *Compression {
	return &Compression{allowed: allowed, wanted: wanted}
}

// InUse is how requests that can be compressed with zstd are compressed at present.
func (c *Compression) InUse() wire.Compression {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inUse()
}

// inUse is InUse; c.mu is held.
func (c *Compression) inUse() wire.Compression {
	if !c.allowed || !c.says || time.Now().Before(c.until) {
		return wire.Snappy
	}
	return wire.Zstd
}

// Saw takes what an answer to any request says about the compression; v is its verdict. tookBack reports that
// zstd was in use until this answer, or that an entry which asks for zstd has a reason for snappy that it did not have, why.
func (c *Compression) Saw(a client.Answer, v client.Verdict) (why string, tookBack bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.allowed:
	case v == client.Plain && a.Status/100 == 2:
		return c.takeBack("answers "+status(a)+" to zstd, without the header by which VictoriaMetrics is known", PlainTime)
	case v == client.Plain:
		return c.takeBack("answers "+status(a)+" to zstd", PlainTime)
	case !a.Accepted():
	case !a.VictoriaMetrics:
		return c.takeBack("does not say that it is VictoriaMetrics, by the header "+client.ServerHeader, PlainTime)
	default:
		c.says = true
		if a.Compression == wire.Zstd {
			c.failures, c.why = 0, ""
		}
	}
	return "", false
}

// PassedPlain takes that samples were delivered with snappy which were not with zstd, whose answer was a: a 4xx
// was about zstd then.
func (c *Compression) PassedPlain(a client.Answer) (why string, tookBack bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case a.Status/100 == 2:
		return "", false // taken back for the header that it lacks
	case a.Status/100 == 4:
		return c.takeBack("answers "+status(a)+" to zstd", FallbackTime)
	case a.Status == 0 || a.Status >= http.StatusInternalServerError:
		if c.failures++; c.failures < maxFailures {
			return "", false // it may have passed by itself
		}
	}
	return c.takeBack("takes with snappy what failed with zstd ("+status(a)+")", PlainTime)
}

// status is an answer in few words, which are the same each time.
func status(a client.Answer) string {
	if a.Status == 0 {
		return "no answer"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status)))
}

// takeBack makes snappy the compression in use, for so long at least. c.mu is held.
func (c *Compression) takeBack(why string, atLeast time.Duration) (string, bool) {
	before := c.inUse()
	news := before == wire.Zstd || c.wanted && c.why == ""
	if news || c.why != "" { // that it is not VictoriaMetrics is no news where zstd was not asked for
		c.why = why
	}
	c.says, c.failures = false, 0
	if until := time.Now().Add(atLeast); until.After(c.until) {
		c.until = until
	}
	return why, news
}

// Fallback is why snappy is in use where zstd was, or was asked for, and until when at least; "" if it is not.
func (c *Compression) Fallback() (why string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inUse() == wire.Zstd || c.why == "" {
		return "", time.Time{}
	}
	return c.why, c.until
}
