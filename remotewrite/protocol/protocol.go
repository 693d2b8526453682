// Package protocol decides which version of remote write a target gets, and how its requests are compressed.
//
// Each decision takes the answers of the target one by one. It lasts as long as the queue: a changed entry and a restart
// begin anew.
package protocol

import (
	"sync"
	"time"

	"hwsagent/remotewrite/wire"
)

// FallbackTime is how long a target gets 1.0 after it took samples as 1.0 that it did not take as 2.0. Then 2.0 is tried
// again, because receivers are upgraded.
const FallbackTime = time.Hour

// Versions decides which version a target gets: the one that the entry asks for, or 1.0 for an hour.
//
//	2.0 ── a 2xx with Written headers ──> 2.0, confirmed
//	 │ ── 415, or a 2xx without Written headers ──────> the same samples once as 1.0
//	 └─── 400 or a lasting 5xx, not confirmed before ─> the same samples once as 1.0
//	                         taken, or refused by the database ──> 1.0 for an hour
//	                         anything else ──────────────────────> 2.0
//
// The 2xx follows from remote write 2.0, "Required Written Response Headers": it comes from a receiver of 1.0 that ignores the
// Content-Type and finds no sample. The 400 follows from its "Protocol": senders should expect that of receivers of 1.0.
//
// Safe for concurrent use.
type Versions struct {
	newer bool // the entry asks for 2.0, or leaves the choice

	mu        sync.Mutex
	until     time.Time // 1.0 is in use until then
	why       string    // to show to people
	confirmed bool      // the target took samples as 2.0
	tried     time.Time // see SpendTry
}

// New returns the versions of an entry's target; newer is set if the entry asks for 2.0, or leaves the choice.
func New(newer bool) *Versions { return &Versions{newer: newer} }

// Newer reports whether the entry asks for 2.0, or leaves the choice.
func (p *Versions) Newer() bool { return p.newer }

// Choice is the version of a request.
type Choice struct {
	Version wire.Version
	Once    bool // sent once as 1.0 although 2.0 is in use
}

// Version returns the version in use.
func (p *Versions) Version() wire.Version {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inUse()
}

// inUse is Version; p.mu is held.
func (p *Versions) inUse() wire.Version {
	if !p.newer || time.Now().Before(p.until) {
		return wire.V1
	}
	return wire.V2
}

// Confirm records that the target took samples as 2.0. A request may end after others have shown that it does not.
func (p *Versions) Confirm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inUse() == wire.V2 {
		p.confirmed, p.why = true, ""
	}
}

// IsConfirmed reports whether the target took samples as 2.0, and did not fall back since.
func (p *Versions) IsConfirmed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.confirmed
}

// FallBack makes 1.0 the version in use for an hour. It reports whether 2.0 was in use.
func (p *Versions) FallBack(why string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.inUse()
	p.confirmed, p.why, p.until = false, why, time.Now().Add(FallbackTime)
	return was == wire.V2
}

// SpendTry reports whether a batch that was refused for good as 2.0 may be sent as 1.0: once in FallbackTime, because refused samples
// should not be sent again.
func (p *Versions) SpendTry() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.tried.IsZero() && now.Sub(p.tried) < FallbackTime {
		return false
	}
	p.tried = now
	return true
}

// Ask ends a fallback: the target does not take 1.0 any more.
func (p *Versions) Ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until, p.why = time.Time{}, ""
}

// Fallback returns why 1.0 is in use where 2.0 was asked for, and until when; why is "" if there is no fallback.
func (p *Versions) Fallback() (why string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inUse() == wire.V2 || !p.newer {
		return "", time.Time{}
	}
	return p.why, p.until
}

// Compression decides how requests to a target are compressed: with snappy, which every receiver reads, or with zstd if the entry names it. Only
// VictoriaMetrics is known to read zstd, and others may answer 2xx to a body that they did not read. So the first answer without its header, and the
// first refusal of a body with zstd, make snappy the compression until the queue ends; so do three failures in a row after each of which the same
// samples were accepted with snappy. Safe for concurrent use.
type Compression struct {
	mu     sync.Mutex
	zstd   bool
	failed int    // bodies with zstd in a row that the receiver failed at, and accepted with snappy
	why    string // why snappy is in use although the entry names zstd
}

// mostFailed is how often a receiver may fail at zstd in a row.
const mostFailed = 3

// NewCompression returns the compression of a target; zstd is set if its entry names it.
func NewCompression(zstd bool) *Compression { return &Compression{zstd: zstd} }

// InUse returns the present compression of requests that can be compressed with zstd.
func (c *Compression) InUse() wire.Compression {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.zstd {
		return wire.Zstd
	}
	return wire.Snappy
}

// Read records that the receiver accepted a body with zstd.
func (c *Compression) Read() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = 0
}

// Failed records that the receiver failed at a body with zstd and then accepted its samples with snappy. It reports whether that happened too
// often in a row.
func (c *Compression) Failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed++
	return c.failed >= mostFailed
}

// TakeBack makes snappy the compression in use. It reports whether zstd was.
func (c *Compression) TakeBack(why string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.zstd
	if was {
		c.zstd, c.why = false, why
	}
	return was
}

// Fallback returns why snappy is in use although the entry names zstd; "" if it is not.
func (c *Compression) Fallback() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}
