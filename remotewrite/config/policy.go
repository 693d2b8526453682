package config

// Refusal is the hwsagent.on_refusal key: how a target treats samples whose request was answered with a
// 4xx.
type Refusal string

// The refusal policies.
const (
	RefusalHold Refusal = "hold" // keep them until the receiver accepts them, or proof shows that they are bad
	RefusalDrop Refusal = "drop" // follow the specification to the letter: never retry a 4xx
)

// CatchUp is the hwsagent.catch_up key: the order in which a target gets its backlog.
type CatchUp string

// The orders.
const (
	InOrder   CatchUp = "in_order"   // oldest first
	LiveFirst CatchUp = "live_first" // new samples at once, the backlog in parallel
)

// Compression is the hwsagent.compression key: how requests to a target are compressed.
type Compression string

// The compressions.
const (
	CompressionSnappy Compression = "snappy" // as specified
	CompressionZstd   Compression = "zstd"   // until an answer lacks the header by which VictoriaMetrics is known; then snappy
)

// StartAt is the hwsagent.start_at key: where in the log a new target begins.
type StartAt string

// The places to start at.
const (
	StartNow    StartAt = "now"    // the end of the log
	StartOldest StartAt = "oldest" // the oldest sample in the log
)

// Policy is the part of an entry that decides the outcome of refused samples. The zero Policy gives up none of them without proof.
type Policy struct {
	OnRefusal       Refusal
	DropRateLimited bool // give up samples that a 429 refuses: queue_config.retry_on_http_429 is false
}

// Policy returns the entry's policy.
func (c *Config) Policy() Policy {
	return Policy{OnRefusal: c.Target.OnRefusal, DropRateLimited: !c.Queue.RetryOnRateLimit}
}
