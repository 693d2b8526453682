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
	// PlainTime is how long a target gets snappy after an answer without VictoriaMetrics' header, since the
	// address may lead to several receivers, or after it refused zstd, which may have had other reasons. If it
	// accepts the same samples as snappy after a 4xx, the time is FallbackTime.
	PlainTime = 5 * time.Minute

	// maxFailures is how many times in a row zstd may fail and snappy succeed right after it, without a
	// statement of the receiver. After an outage, one request of each shard may do so once.
	maxFailures = 3
)

// Compression decides how requests to a target are compressed. It uses zstd only while
// all answers carry VictoriaMetrics' header; an answer proves something about its own request only. The knowledge
// lasts as long as the queue. Safe for concurrent use.
type Compression struct {
	allowed bool // the entry allows zstd
	wanted  bool // the entry names zstd, so snappy needs a reason

	mu       sync.Mutex
	says     bool      // the last accepted request was answered by VictoriaMetrics
	until    time.Time // snappy is in use until then, whatever the answers show
	why      string    // why snappy is in use, to show to people
	failures int       // see maxFailures
}

// NewCompression returns the compression of a target; allowed and wanted are set if its entry allows zstd or names it.
func NewCompression(allowed, wanted bool) *Compression {
	return &Compression{allowed: allowed, wanted: wanted}
}

// InUse returns the present compression of requests that can be compressed with zstd.
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

// Saw evaluates the answer to any request; v is its verdict. tookBack reports that this answer ended the use of
// zstd, or gave an entry that names zstd its first reason for snappy; why is the reason.
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

// PassedPlain records that samples were delivered with snappy after zstd had failed with the answer a. A 4xx
// was about zstd then.
func (c *Compression) PassedPlain(a client.Answer) (why string, tookBack bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case a.Status/100 == 2:
		return "", false // Saw took zstd back already, for the missing header
	case a.Status/100 == 4:
		return c.takeBack("answers "+status(a)+" to zstd", FallbackTime)
	case a.Status == 0 || a.Status >= http.StatusInternalServerError:
		if c.failures++; c.failures < maxFailures {
			return "", false // the failure may have been temporary
		}
	}
	return c.takeBack("accepts with snappy the samples that failed with zstd ("+status(a)+")", PlainTime)
}

// status summarises an answer in a short text without varying parts.
func status(a client.Answer) string {
	if a.Status == 0 {
		return "no answer"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status)))
}

// takeBack makes snappy the compression in use, for at least that long. c.mu is held.
func (c *Compression) takeBack(why string, atLeast time.Duration) (string, bool) {
	before := c.inUse()
	news := before == wire.Zstd || c.wanted && c.why == ""
	if news || c.why != "" { // another receiver than VictoriaMetrics is no news if the entry does not name zstd
		c.why = why
	}
	c.says, c.failures = false, 0
	if until := time.Now().Add(atLeast); until.After(c.until) {
		c.until = until
	}
	return why, news
}

// Fallback returns why snappy is in use where zstd was used or named, and until when at least; why is "" if there is no such fallback.
func (c *Compression) Fallback() (why string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inUse() == wire.Zstd || c.why == "" {
		return "", time.Time{}
	}
	return c.why, c.until
}
